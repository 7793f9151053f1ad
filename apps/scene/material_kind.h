// The kinds of materials and boundaries that a scene may name, and kernels tell apart.
//
// Device-clean.
#pragma once
#include <cstdint>

namespace coppice::scene {

enum class MaterialKind : std::int32_t { kJelly = 0, kSnow = 1, kWater = 2, kSand = 3, kClay = 4, kMud = 5 };

// A wall or collider does this to the material's velocity relative to it (mpm::respond_to_collider()).
enum class BoundaryKind : std::int32_t { kStick = 0, kSlip = 1, kSeparate = 2 };

}  // namespace coppice::scene
