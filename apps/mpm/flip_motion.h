// AFLIP (Fei et al. 2021, "Revisiting integration in the material point method: a scheme for easier
// separation and less dissipation"): a particle keeps a part of its own motion, which the grid is too coarse
// for.
//
// With v_i the grid's velocities before the step's forces, v_i' those after forces and contact, and C the
// gradient of either (APIC's),
//
//     own v = v_p - sum w_i v_i,           own spin = skew part of (C_p - C of the v_i)
//     v_p   = sum w_i v_i' + flip own v,   C_p = C of the v_i' + flip own spin,   x_p += dt sum w_i v_i'
//
// The deformation and the position follow the grid alone. The sums over the particles of m own v, and of x
// cross m own v + m dx^2/4 curl, are 0, as APIC's transfers keep both momenta; what is lost as a particle
// moves without its own velocity goes to its spin (excess_moment()). The paper has no own spin, and lets its
// ASFLIP move particles with their own velocity where the material expands, which shifts the centre of mass.
// Where all do always, bodies that meet run into each other: two discs of jelly part with 0.83 of their
// speed, and here with 0.97. Beside a wall or a collider a particle has no own motion, or only along it where
// it is without friction: what they stopped must not go on.
//
// Device-clean.
#pragma once
#include "apps/mpm/collider_impulse.h"
#include "apps/mpm/particle_batch.h"
#include "apps/mpm/settle_particle.h"

namespace coppice::mpm {

// About each axis: one number in the plane.
template <int D>
using Spin = SmallVec<float, D == 2 ? 1 : 3>;

template <int D>
struct OwnMotion {
  SmallVec<float, D> velocity;  // m/s
  Spin<D> spin;                 // 1/s, half of the curl
};

// A particle takes this from its nodes' values before the step's forces.
struct TakenBefore {
  Taken taken;
  Float4 moment;  // m^2/s^2, of the velocities after forces by these
};

// A particle sees this of its nodes before it moves.
template <int D>
struct SeenBefore {
  OwnMotion<D> own;
  Float4 velocity;            // m/s, of the nodes before forces
  Float4 moment;              // m^2/s^2, of the nodes' velocities after forces by those before
  SmallMat<float, D> affine;  // 1/s, the particle's
};

COPPICE_INLINE Float4 cross_of(Float4 a, Float4 b) { return a.yzxw * b.zxyw - a.zxyw * b.yzxw; }
// The same for each node of a row.
COPPICE_INLINE NodeRow turned(NodeRow a) {
  return __builtin_shufflevector(a, a, 1, 2, 0, 3, 5, 6, 4, 7, 9, 10, 8, 11, 13, 14, 12, 15);
}
COPPICE_INLINE NodeRow cross_of(NodeRow a, NodeRow b) { return turned(a * turned(b) - turned(a) * b); }

// Returns half of the curl of a gradient, (row, column) = (component, axis).
template <int D>
COPPICE_INLINE Spin<D> spin_of(const SmallMat<float, D>& c) {
  if constexpr (D == 2)
    return {{0.5f * (c(1, 0) - c(0, 1))}};
  else
    return {{0.5f * (c(2, 1) - c(1, 2)), 0.5f * (c(0, 2) - c(2, 0)), 0.5f * (c(1, 0) - c(0, 1))}};
}

// Adds so many times a spin to a gradient.
template <int D>
COPPICE_INLINE void add_spin(SmallMat<float, D>& c, float times, const Spin<D>& spin) {
  const float about_z = times * spin.v[D == 2 ? 0 : 2];
  c(0, 1) -= about_z, c(1, 0) += about_z;
  if constexpr (D == 3) {
    c(1, 2) -= times * spin.v[0], c(2, 1) += times * spin.v[0];
    c(2, 0) -= times * spin.v[1], c(0, 2) += times * spin.v[1];
  }
}

template <int D>
COPPICE_INLINE SmallMat<float, D> affine_of(const Particle& p) {
  SmallMat<float, D> c{};
  COPPICE_UNROLL for (int k = 0; k < D * D; ++k) c.m[k] = p[Attribute<D>::kAffine + k];
  return c;
}

// The wide nodes around a particle as a GPU's thread sees them, whose second values are in a tile behind the
// first. Nothing is kept from one call to the next, for want of registers.
template <int D>
struct WideNodes {
  const StepArguments<D>& a;
  const Particle& p;
  const std::int32_t* first;
  const NodeValue* tile;

  COPPICE_INLINE TileStencil<D> stencil() const { return tile_stencil<D>(p, a.inv_dx, first); }
  COPPICE_INLINE Taken now() const {
    return take_from_nodes<D>(stencil(), tile, [](const NodeValue*, Float4) __attribute__((always_inline)){});
  }
  COPPICE_INLINE TakenBefore before() const {
    TakenBefore b{};
    const auto visit = [&](const NodeValue* node, Float4 part) __attribute__((always_inline)) {
      b.moment += cross_of(load(node - kTileNodes<D>), part);
    };
    b.taken = take_from_nodes<D>(stencil(), tile + kTileNodes<D>, visit);
    return b;
  }
  // Returns only how full the space around the particle is.
  COPPICE_INLINE float filled() const {
    const TileStencil<D> s = stencil();
    const NodeValue* const before = tile + kTileNodes<D> + tile_index<D>(s.base[0], s.base[1], s.base[2]);
    float filled = 0.0f;
    COPPICE_UNROLL
    for (int n = 0; n < kStencilRows<D>; ++n) {
      const float w_xy = D == 3 ? s.w[0][n / 3] * s.w[1][n % 3] : s.w[1][n];
      COPPICE_UNROLL
      for (int iz = 0; iz < 3; ++iz) filled += w_xy * s.w[2][iz] * before[row_index<D>(n) + iz].v[3];
    }
    return filled;
  }
};

// The same as a CPU's thread sees them, from the stencil's first node on.
template <int D>
struct WideRows {
  const float* stencil;
  const NodeValue* nodes;

  static COPPICE_INLINE Taken parts(NodeRow row) { return {row.lo.lo, {row.lo.hi, row.hi.lo, row.hi.hi}}; }
  COPPICE_INLINE Taken now() const {
    return parts(
        take_from_rows<D>(stencil, nodes, [](const NodeValue*, float) __attribute__((always_inline)){}));
  }
  COPPICE_INLINE TakenBefore before() const {
    NodeRow moments = 0.0f;
    const auto visit = [&](const NodeValue* row, float w_xy) __attribute__((always_inline)) {
      moments += cross_of(load_row(row - kTileNodes<D>), load_row(row) * w_xy);
    };
    const Taken taken = parts(take_from_rows<D>(stencil, nodes + kTileNodes<D>, visit));
    return {taken, sum_of_nodes(moments * weights_in_z(stencil))};
  }
  COPPICE_INLINE float filled() const {
    NodeRow sum = 0.0f;
    COPPICE_UNROLL
    for (int n = 0; n < kStencilRows<D>; ++n)
      sum += load_row(nodes + kTileNodes<D> + row_index<D>(n)) * row_weight<D>(stencil, n);
    return sum_of_nodes(sum * weights_in_z(stencil))[3];
  }
};

// Compares a particle with its nodes before it is given its new velocity.
template <int D>
COPPICE_INLINE SeenBefore<D> see_before(const StepArguments<D>& a, const Particle& p,
                                        const TakenBefore& before) {
  using A = Attribute<D>;
  SeenBefore<D> seen{};
  seen.velocity = before.taken.value, seen.moment = before.moment;
  SmallMat<float, D> lost = seen.affine = affine_of<D>(p);
  const float gradient_scale = 4.0f * a.inv_dx;
  COPPICE_UNROLL
  for (int k = 0; k < D; ++k) {
    seen.own.velocity.v[k] = p[A::kVelocity + k] - before.taken.value[k];
    COPPICE_UNROLL
    for (int r = 0; r < D; ++r) lost.m[r * D + k] -= before.taken.along[3 - D + k][r] * gradient_scale;
  }
  seen.own.spin = spin_of<D>(lost);
  return seen;
}

// Returns, per dt flip and mass, how much angular momentum comes from a particle that moves with the grid's
// velocity v' alone and has an own one: v' x own v, in the sum over all particles. With m_i v_i written as
// the sum over particles of m_p w (v_p + C_p (x_i - x_p)), that is the sum over a particle's nodes of w v_i'
// x v_i, less v' x v and dx^2/4 of the gradients' columns' products: local, and the same in a frame that
// moves.
template <int D>
COPPICE_INLINE Float4 excess_moment(const StepArguments<D>& a, const Particle& p, const SeenBefore<D>& seen) {
  using A = Attribute<D>;
  Float4 now{0, 0, 0, 0};
  COPPICE_UNROLL for (int k = 0; k < D; ++k) now[k] = p[A::kVelocity + k];
  Float4 moment = seen.moment - cross_of(now, seen.velocity);
  COPPICE_UNROLL
  for (int k = 0; k < D; ++k) {
    Float4 column{0, 0, 0, 0}, column_before{0, 0, 0, 0};
    COPPICE_UNROLL
    for (int r = 0; r < D; ++r)
      column[r] = p[A::kAffine + r * D + k], column_before[r] = seen.affine.m[r * D + k];
    moment -= cross_of(column, column_before) * (0.25f * a.dx * a.dx);
  }
  return moment;
}

// A particle's spin beyond the grid's lies here until its deformation has followed the grid: behind the
// density that gather_particle() leaves, where its stress was.
template <int D>
inline constexpr int kOwnSpin = Attribute<D>::kStress + 1;

template <int D>
COPPICE_INLINE Spin<D> own_spin(const Particle& p) {
  Spin<D> spin{};
  COPPICE_UNROLL for (int k = 0; k < (D == 2 ? 1 : 3); ++k) spin.v[k] = p[kOwnSpin<D> + k];
  return spin;
}

// Takes from own motion what a boundary of that kind stops: along the normal only, where nothing holds the
// material along the surface.
template <int D>
COPPICE_INLINE OwnMotion<D> stopped_part(BoundaryKind kind, float friction, const SmallVec<float, D>& normal,
                                         OwnMotion<D>& own) {
  OwnMotion<D> stopped = own;
  if (kind != BoundaryKind::kStick && friction == 0.0f) stopped.velocity = dot(own.velocity, normal) * normal;
  own.velocity = own.velocity - stopped.velocity;
  own.spin = {};
  return stopped;
}

// Takes from a particle's own motion what walls and colliders stop that are so near that nodes which they act
// on are the particle's. Colliders get its momentum.
template <int D>
COPPICE_INLINE void stop_own_motion(const StepArguments<D>& a, const Group<D>& group, const Particle& p,
                                    std::int64_t block_number, const Surroundings& beside,
                                    OwnMotion<D>& own) {
  const float near = 1.5f * a.dx;
  SmallVec<float, D> x{};
  COPPICE_UNROLL
  for (int k = 0; k < D; ++k) {
    x.v[k] = p[Attribute<D>::kPosition + k];
    SmallVec<float, D> normal{};
    normal.v[k] = 1.0f;
    const float from_low = x.v[k] - kPad * a.dx, from_high = a.high_wall[k] * a.dx - x.v[k];
    if (from_low < near) stopped_part<D>(a.walls[2 * k], a.wall_friction, normal, own);
    if (from_high < near) stopped_part<D>(a.walls[2 * k + 1], a.wall_friction, normal, own);
  }
  for (std::uint32_t c = 0; beside.colliders >> c != 0; ++c) {
    if ((beside.colliders >> c & 1u) == 0) continue;
    const ColliderState<D>& collider = a.control->next[c];
    const ColliderSample<float, D> surface = sample(collider, x);
    if (!(surface.distance < near)) continue;
    const OwnMotion<D> stopped = stopped_part<D>(collider.boundary, collider.friction, surface.normal, own);
    const SmallVec<float, D> impulse = group.mass * stopped.velocity;
    SmallVec<float, 3> turn = torque_of(x - center_of(a.control->now[c]), impulse);
    // A gradient's curl is twice its spin, and m dx^2/4 is what a particle has of inertia.
    const float inertia = 0.5f * group.mass * a.dx * a.dx;
    COPPICE_UNROLL
    for (int k = D == 2 ? 2 : 0; k < 3; ++k) turn.v[k] += inertia * stopped.spin.v[D == 2 ? 0 : k];
    add_impulse<D>(a, block_number, c, impulse, turn, surface.normal);
  }
}

// Returns the part of its own motion that a particle keeps which has the grid's new motion.
template <int D>
COPPICE_INLINE OwnMotion<D> kept_motion(const StepArguments<D>& a, const Particle& p,
                                        const SeenBefore<D>& seen) {
  const Float4 excess = excess_moment<D>(a, p, seen) * (2.0f * a.dt * a.inv_dx * a.inv_dx);
  OwnMotion<D> own{};
  COPPICE_UNROLL for (int k = 0; k < D; ++k) own.velocity.v[k] = a.flip * seen.own.velocity.v[k];
  COPPICE_UNROLL
  for (int k = 0; k < (D == 2 ? 1 : 3); ++k)
    own.spin.v[k] = a.flip * (seen.own.spin.v[k] - excess[D == 2 ? 2 : k]);
  return own;
}

// Gives a particle own motion, of which walls and colliders leave what they do not stop.
template <int D>
COPPICE_INLINE void add_own_motion(const StepArguments<D>& a, const Group<D>& group, const Particle& p,
                                   std::int64_t block_number, const Surroundings& beside, OwnMotion<D> own,
                                   BlockFindings& found) {
  using A = Attribute<D>;
  if (beside.colliders != 0 || beside.has_walls) stop_own_motion<D>(a, group, p, block_number, beside, own);
  float speed2 = 0.0f;
  COPPICE_UNROLL
  for (int k = 0; k < D; ++k) {
    const float v = p[A::kVelocity + k] + own.velocity.v[k];
    p[A::kVelocity + k] = v;
    speed2 += v * v;
  }
  SmallMat<float, D> c = affine_of<D>(p);
  add_spin<D>(c, 1.0f, own.spin);
  COPPICE_UNROLL for (int k = 0; k < D * D; ++k) p[A::kAffine + k] = c.m[k];
  COPPICE_UNROLL for (int k = 0; k < (D == 2 ? 1 : 3); ++k) p[kOwnSpin<D> + k] = own.spin.v[k];
  found.not_finite = found.not_finite || !(speed2 < 1e30f);
  found.max_speed2 = speed2 > found.max_speed2 ? speed2 : found.max_speed2;
}

}  // namespace coppice::mpm
