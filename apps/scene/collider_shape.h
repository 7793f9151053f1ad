// The shapes of colliders that a scene may name, kernels tell apart, and pictures show.
//
// Device-clean.
#pragma once
#include <cstdint>

namespace coppice::scene {

enum class ColliderShape : std::int32_t { kSphere = 0, kBox = 1, kPlane = 2, kCapsule = 3, kMesh = 4 };

}  // namespace coppice::scene
