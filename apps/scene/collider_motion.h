// Where a collider is at a time, and how it moves then.
//
// Without keyframes it has constant velocities. With them it has constant velocities between each two,
// and rests before the first and behind the last.
#pragma once

#include "apps/scene/scene.h"

namespace coppice::scene {

// A motion with constant velocity of the centre, and constant spin about it, from a time on.
struct RigidMotion {
  double start_s = 0.0;
  Vec3d center = Vec3d::Zero();                  // m, then
  Mat3f world_from_local = Mat3f::Identity();    // then
  Vec3d velocity = Vec3d::Zero();                // m/s
  Vec3d angular_velocity_rad_s = Vec3d::Zero();  // in the world
};

// The motion that the collider has from `time_s` up to its next keyframe.
RigidMotion motion_at(const Collider& collider, double time_s);

struct RigidPose {
  Vec3d center = Vec3d::Zero();  // m
  Mat3f world_from_local = Mat3f::Identity();
};
RigidPose pose_at(const Collider& collider, double time_s);

// Returns when the first of all colliders comes to its next keyframe behind `time_s`; infinity where none
// does. Times that differ by `tolerance_s` are one.
double next_keyframe_s(const SceneConfig& scene, double time_s, double tolerance_s);

// The largest speed that a point of the collider has from `time_s` up to its next keyframe, m/s; of a
// plane's points those in the domain count.
double fastest_point_m_s(const SceneConfig& scene, const Collider& collider, double time_s);

}  // namespace coppice::scene
