// The four stages of an MLS-MPM step, written once for 2-D and 3-D: particles to grid, grid update, grid
// to particles, bookkeeping (Hu et al. 2018, "A Moving Least Squares Material Point Method"; transfers
// after Jiang et al. 2015, APIC).
//
// Device-clean. Each stage works on one block; blocks do not write to each other: particles scatter
// into their block's own tile, and the grid update gathers from the tiles that overlap the block. On a
// CPU one thread has a block, and sums in a fixed order, so that results do not depend on the number of
// threads. On a GPU the threads of a thread block share it, and sum in any order.
#pragma once
#include "apps/mpm/grid_to_particles.h"
#include "apps/mpm/particles_to_grid.h"

namespace coppice::mpm {

// A node so little before a wall, in cells, is as good as at it; the next one is almost a cell behind, where
// material would be held too late.
inline constexpr float kBeforeWall = 0.15f;

// Wall and collider response of one node of a block; `node` is (x, y, z) right-aligned, velocity in
// (x, y, z).
template <int D>
COPPICE_INLINE Float4 apply_boundaries(const StepArguments<D>& a, std::int64_t block_number,
                                       const std::int32_t* node, Float4 value) {
  SmallVec<float, D> v{}, x{};
  COPPICE_UNROLL
  for (int k = 0; k < D; ++k) v.v[k] = value[k], x.v[k] = static_cast<float>(node[3 - D + k]) * a.dx;
  for (std::uint32_t c = 0; c < a.control->n_colliders; ++c) {
    const ColliderState<D>& collider = a.control->now[c];
    const ColliderSample<float, D> hit = sample(collider, x);
    if (!(hit.distance <= 0.0f) || is_seen_from_behind(collider, hit, a.dx)) continue;
    const SmallVec<float, D> before = v;
    v = respond_to_collider(collider.boundary, collider.friction, v, hit.velocity, hit.normal);
    const SmallVec<float, D> impulse = value[3] * (before - v);
    add_impulse<D>(a, block_number, c, impulse, torque_of(x - center_of(collider), impulse), hit.normal);
  }
  COPPICE_UNROLL
  for (int k = 0; k < D; ++k) {
    const std::int32_t at = node[3 - D + k];
    SmallVec<float, D> normal{}, still{};
    if (at <= kPad) {
      normal.v[k] = 1.0f;
      v = respond_to_collider(a.walls[2 * k], a.wall_friction, v, still, normal);
    }
    if (static_cast<float>(at) >= a.high_wall[k] - kBeforeWall) {
      normal.v[k] = -1.0f;
      v = respond_to_collider(a.walls[2 * k + 1], a.wall_friction, v, still, normal);
    }
  }
  return D == 3 ? Float4{v.v[0], v.v[1], v.v[D - 1], value[3]} : Float4{v.v[0], v.v[1], 0.0f, value[3]};
}

// Momentum and mass of a node become its velocity after forces and contact.
template <int D>
COPPICE_INLINE void update_node(const StepArguments<D>& a, const Block<D>& block, int i, int j, int k,
                                Float4 momentum, NodeValue* out) {
  const float mass = momentum[3];
  if (!(mass > 1e-37f)) return store(out, Float4{0, 0, 0, 0});  // below, the inverse is not finite
  const Float4 kick = Float4{a.gravity[0], a.gravity[1], D == 3 ? a.gravity[2] : 0.0f, 0.0f} * a.dt;
  Float4 value = momentum * (1.0f / mass) + kick;
  value[3] = mass;
  const std::int32_t node[3] = {block.origin[0] + i, block.origin[1] + j, block.origin[2] + k};
  store(out, apply_boundaries<D>(a, block.number, node, value));
}

// The tile of the block that lies so many blocks before this one, which reaches into it.
template <int D>
COPPICE_INLINE const NodeValue* tile_before(const Read<NodeValue>& tiles, const Block<D>& block, int ox,
                                            int oy, int oz) {
  if constexpr (D == 3)
    return tiles.neighbour_data(block, {-ox, -oy, -oz});
  else
    return tiles.neighbour_data(block, {-oy, -oz});
}

// Sums the tiles that overlap the block, in a fixed order: all nodes, row by row.
template <int D>
COPPICE_INLINE void sum_tiles(const Read<NodeValue>& tiles, const Block<D>& block, NodeValue* sum) {
  constexpr int b = kBlockSize<D>, t = kTileSize<D>, bx = D == 3 ? b : 1;
  __builtin_memset(sum, 0, sizeof(NodeValue) * kBlockNodes<D>);
  for (int ox = 0; ox < (D == 3 ? 2 : 1); ++ox) {
    for (int oy = 0; oy < 2; ++oy) {
      for (int oz = 0; oz < 2; ++oz) {
        const NodeValue* tile = tile_before<D>(tiles, block, ox, oy, oz);
        const int ex = ox ? t - b : bx, ey = oy ? t - b : b, ez = oz ? t - b : b;
        for (int i = 0; i < ex; ++i) {
          for (int j = 0; j < ey; ++j) {
            const NodeValue* row = tile + tile_index<D>(i + ox * b, j + oy * b, oz * b);
            NodeValue* to = sum + (i * b + j) * b;
            for (int k = 0; k < ez; ++k) store(to + k, load(to + k) + load(row + k));
          }
        }
      }
    }
  }
}
// The same for one node.
template <int D>
COPPICE_INLINE Float4 sum_at(const Read<NodeValue>& tiles, const Block<D>& block, int i, int j, int k) {
  constexpr int b = kBlockSize<D>, over = kTileSize<D> - b;  // nodes that a tile reaches beyond its block
  Float4 sum{0, 0, 0, 0};
  for (int ox = 0; ox < (D == 3 && i < over ? 2 : 1); ++ox) {
    for (int oy = 0; oy < (j < over ? 2 : 1); ++oy) {
      for (int oz = 0; oz < (k < over ? 2 : 1); ++oz)
        sum += load(tile_before<D>(tiles, block, ox, oy, oz) +
                    tile_index<D>(i + ox * b, j + oy * b, k + oz * b));
    }
  }
  return sum;
}

template <int D>
COPPICE_INLINE void update_grid(const Read<NodeValue>& tiles, const Write<NodeValue>& grid,
                                const BlockTeam<D>& block, const StepArguments<D>& a) {
  if (a.control->stop) return;
  constexpr int b = kBlockSize<D>;
  NodeValue* out = grid.data(block);
  if (block.lanes() == 1) {
    NodeValue sum[kBlockNodes<D>];
    sum_tiles<D>(tiles, block, sum);
    for (int n = 0; n < kBlockNodes<D>; ++n)
      update_node<D>(a, block, n / b / b, n / b % b, n % b, load(sum + n), out + n);
    return;
  }
  for (int n = static_cast<int>(block.lane()); n < kBlockNodes<D>; n += static_cast<int>(block.lanes())) {
    const int i = n / b / b, j = n / b % b, k = n % b;
    update_node<D>(a, block, i, j, k, sum_at<D>(tiles, block, i, j, k), out + n);
  }
}

// The same for wide nodes. The second value becomes the velocity before forces, of the same mass, and the
// share of the cell that is filled.
template <int D>
COPPICE_INLINE void update_grid_wide(const Read<NodeValue>& tiles, const Read<NodeValue>& tiles_before,
                                     const Write<NodeValue>& grid, const Write<NodeValue>& grid_before,
                                     const BlockTeam<D>& block, const StepArguments<D>& a) {
  if (a.control->stop) return;
  constexpr int b = kBlockSize<D>;
  NodeValue *const out = grid.data(block), *const before = grid_before.data(block);
  const auto update = [&](int n, Float4 momentum, Float4 momentum_before) {
    update_node<D>(a, block, n / b / b, n / b % b, n % b, momentum, out + n);
    const float mass = momentum[3], filled = momentum_before[3];
    Float4 value = momentum_before * (mass > 1e-37f ? 1.0f / mass : 0.0f);
    value[3] = filled;
    store(before + n, value);
  };
  if (block.lanes() == 1) {
    NodeValue sum[kBlockNodes<D>], sum_before[kBlockNodes<D>];
    sum_tiles<D>(tiles, block, sum);
    sum_tiles<D>(tiles_before, block, sum_before);
    for (int n = 0; n < kBlockNodes<D>; ++n) update(n, load(sum + n), load(sum_before + n));
    return;
  }
  for (int n = static_cast<int>(block.lane()); n < kBlockNodes<D>; n += static_cast<int>(block.lanes())) {
    const int i = n / b / b, j = n / b % b, k = n % b;
    update(n, sum_at<D>(tiles, block, i, j, k), sum_at<D>(tiles_before, block, i, j, k));
  }
}

// Sets the colliders' poses at a time; from those at the beginning of their motions no error accumulates.
template <int D>
COPPICE_INLINE void move_colliders(const StepControl<D>& control, ColliderState<D>* to, double time_s) {
  for (std::uint32_t c = 0; c < control.n_colliders; ++c) {
    const ColliderState<D>& start = control.start[c];
    const auto after_s = static_cast<float>(time_s - control.start_s[c]);
    switch (start.kind) {
      case ColliderKind::kSphere:
        to[c].sphere = moved(start.sphere, after_s);
        break;
      case ColliderKind::kPlane:
        to[c].plane = moved(start.plane, after_s);
        break;
      case ColliderKind::kCapsule:
        to[c].capsule = moved(start.capsule, after_s);
        break;
      case ColliderKind::kBox:
      case ColliderKind::kMesh:
        to[c].box = moved(start.box, after_s);
        break;
    }
  }
}

// Closes the step; the launch has one item. Decides whether the rest of the batch runs and moves the
// colliders.
template <int D>
COPPICE_INLINE void finish_step(const StepArguments<D>& a) {
  StepControl<D>* control = a.control;
  if (control->stop) return;
  control->steps_done += 1;
  control->time_s += a.dt;
  if (control->drifted || control->too_fast || control->too_stiff || control->not_finite) control->stop = 1;
  move_colliders(*control, control->now, control->time_s);
}

// Runs before a step, as one item: the maxima are of one step only.
template <int D>
COPPICE_INLINE void begin_step(const StepArguments<D>& a) {
  if (a.control->stop) return;
  a.control->max_speed_bits = 0;
  a.control->max_modulus_bits = 0;
  move_colliders(*a.control, a.control->next, a.control->time_s + static_cast<double>(a.dt));
}

// ---- sorting particles by block

// The block a particle belongs to: where the second node of its stencil lies.
template <int D>
COPPICE_INLINE void home_block(const ParticleArrays& particles, std::int64_t i, float inv_dx,
                               std::int32_t (&coord)[D]) {
  COPPICE_UNROLL
  for (int k = 0; k < D; ++k) {
    const float x = particles.base[(Attribute<D>::kPosition + k) * particles.stride + i] * inv_dx;
    coord[k] = static_cast<std::int32_t>(bspline_base(x)) - 1;
  }
}

// Returns the key that sorts a particle: its block's position in the list, then its group.
template <int D>
COPPICE_INLINE std::uint32_t block_key(const Read<std::uint32_t>& number, const Item& i,
                                       const ParticleArrays& particles, std::int64_t particle, float inv_dx,
                                       std::uint32_t n_groups) {
  std::int32_t c[D];
  home_block<D>(particles, particle, inv_dx, c);
  COPPICE_UNROLL for (int k = 0; k < D; ++k) c[k] /= kBlockSize<D>;
  const float group = particles.base[Attribute<D>::kGroup * particles.stride + particle];
  return number.at(i, c) * n_groups + static_cast<std::uint32_t>(group);
}

}  // namespace coppice::mpm
