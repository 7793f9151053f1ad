// The four stages of an MLS-MPM step, written once for 2-D and 3-D: particles to grid, grid update, grid
// to particles, bookkeeping (Hu et al. 2018, "A Moving Least Squares Material Point Method"; transfers
// after Jiang et al. 2015, APIC).
//
// Device-clean. Each stage works on one block; blocks do not write to each other: particles scatter
// into their block's own tile, and the grid update gathers from the tiles that overlap the block. On a
// CPU one thread has a block: no atomics, and sums in a fixed order, so that results do not depend on
// the number of threads. On a GPU the threads of a thread block share it, and add to a tile in fast
// memory atomically, in any order.
#pragma once
#include "apps/mpm/grid_to_particles.h"
#include "apps/mpm/particle_tile.h"

namespace coppice::mpm {

// Adds one of a node's values to the node of a tile.
COPPICE_INLINE void add_to_tile(NodeValue* to, Float4 value, bool is_shared) {
  if (!is_shared) return store(to, load(to) + value);
  COPPICE_UNROLL for (int k = 0; k < 4; ++k) coppice_fetch_add_f32(to->v + k, value[k]);
}

// Momentum and mass of a segment of particles, added to the tile: m v + (m C - dt V 4/dx^2 tau)(x_node -
// x_p).
template <int D>
COPPICE_INLINE void scatter_segment(const StepArguments<D>& a, const Group<D>& group, std::int64_t begin,
                                    std::int64_t end, const TileTeam<D>& block, NodeValue* tile) {
  using A = Attribute<D>;
  const float *x[3], *v[3], *c[9], *tau[6];
  COPPICE_UNROLL for (int k = 0; k < D; ++k) x[k] = attribute(a, A::kPosition + k),
                                             v[k] = attribute(a, A::kVelocity + k);
  COPPICE_UNROLL for (int k = 0; k < D * D; ++k) c[k] = attribute(a, A::kAffine + k);
  COPPICE_UNROLL for (int k = 0; k < D * (D + 1) / 2; ++k) tau[k] = attribute(a, A::kStress + k);
  const float mass = group.mass, push = -a.dt * group.volume * 4.0f * a.inv_dx * a.inv_dx;
  const bool is_shared = block.lanes() > 1;
  for (std::int64_t i = begin + block.lane(); i < end; i += block.lanes()) {
    const TileStencil<D> s = tile_stencil<D>(x, i, a.inv_dx, block.origin);
    Float4 affine[3];  // per axis (x, y, z of the tile): momentum per cell of distance
    affine[0] = Float4{0, 0, 0, 0};
    COPPICE_UNROLL
    for (int k = 0; k < D; ++k)
      affine[3 - D + k] = (mass * matrix_column<D>(c, i, k) + push * stress_column<D>(tau, i, k)) * a.dx;
    const Float4 still = D == 3 ? Float4{mass * v[0][i], mass * v[1][i], mass * v[D - 1][i], mass}
                                : Float4{mass * v[0][i], mass * v[1][i], 0.0f, mass};
    constexpr int nx = D == 3 ? 3 : 1;
    COPPICE_UNROLL
    for (int ix = 0; ix < nx; ++ix) {
      const Float4 at_x = D == 3 ? still + affine[0] * (static_cast<float>(ix) - s.fx[0]) : still;
      COPPICE_UNROLL
      for (int iy = 0; iy < 3; ++iy) {
        const Float4 at_y = at_x + affine[1] * (static_cast<float>(iy) - s.fx[1]);
        const float w_xy = D == 3 ? s.w[0][ix] * s.w[1][iy] : s.w[1][iy];
        NodeValue* row = tile + tile_index<D>(s.base[0] + ix, s.base[1] + iy, s.base[2]);
        COPPICE_UNROLL
        for (int iz = 0; iz < 3; ++iz) {
          const Float4 at_z = at_y + affine[2] * (static_cast<float>(iz) - s.fx[2]);
          add_to_tile(row + iz, (w_xy * s.w[2][iz]) * at_z, is_shared);
        }
      }
    }
  }
}

template <int D>
COPPICE_INLINE void particles_to_grid(const Write<NodeValue>& tiles, const TileTeam<D>& block,
                                      const StepArguments<D>& a) {
  if (a.control->stop) return;
  const std::uint32_t* starts = a.starts + block.number * a.n_groups;
  if (starts[0] == starts[a.n_groups]) return;  // its tile has been zero since activation
  const bool is_shared = block.lanes() > 1;
  NodeValue* const out = tiles.data(block);
  NodeValue* const tile = is_shared ? reinterpret_cast<NodeValue*>(block.fast) : out;
  for (int n = static_cast<int>(block.lane()); n < kTileNodes<D>; n += static_cast<int>(block.lanes()))
    store(tile + n, Float4{0, 0, 0, 0});
  block.barrier();
  for (std::uint32_t g = 0; g < a.n_groups; ++g)
    scatter_segment<D>(a, a.groups[g], starts[g], starts[g + 1], block, tile);
  if (!is_shared) return;
  block.barrier();
  for (int n = static_cast<int>(block.lane()); n < kTileNodes<D>; n += static_cast<int>(block.lanes()))
    store(out + n, load(tile + n));
}

// Wall and collider response of one node; `node` is (x, y, z) right-aligned, velocity in (x, y, z).
template <int D>
COPPICE_INLINE Float4 apply_boundaries(const StepArguments<D>& a, const std::int32_t* node, Float4 value) {
  SmallVec<float, D> v{}, x{};
  COPPICE_UNROLL
  for (int k = 0; k < D; ++k) v.v[k] = value[k], x.v[k] = static_cast<float>(node[3 - D + k]) * a.dx;
  for (std::uint32_t c = 0; c < a.control->n_colliders; ++c) {
    const ColliderState<D>& collider = a.control->now[c];
    const ColliderSample<float, D> hit =
        collider.kind == ColliderKind::kSphere ? sample(collider.sphere, x) : sample(collider.box, x);
    if (hit.distance <= 0.0f)
      v = respond_to_collider(collider.boundary, collider.friction, v, hit.velocity, hit.normal);
  }
  COPPICE_UNROLL
  for (int k = 0; k < D; ++k) {
    const std::int32_t at = node[3 - D + k];
    SmallVec<float, D> normal{}, still{};
    if (at <= kPad) {
      normal.v[k] = 1.0f;
      v = respond_to_collider(a.walls[2 * k], a.wall_friction, v, still, normal);
    }
    if (at >= kPad + a.cells[k]) {
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
  store(out, apply_boundaries<D>(a, node, value));
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

// Closes the step; the launch has one item. Decides whether the rest of the batch runs and moves the
// colliders.
template <int D>
COPPICE_INLINE void finish_step(const StepArguments<D>& a) {
  StepControl<D>* control = a.control;
  if (control->stop) return;
  control->steps_done += 1;
  control->time_s += a.dt;
  if (control->drifted || control->too_fast || control->not_finite) control->stop = 1;
  for (std::uint32_t c = 0; c < control->n_colliders; ++c) {
    control->now[c].sphere = moved(control->start[c].sphere, static_cast<float>(control->time_s));
    control->now[c].box = moved(control->start[c].box, static_cast<float>(control->time_s));
  }
}

// Runs before the first step of a batch, or before a step, as one item: the maxima are of one step only.
template <int D>
COPPICE_INLINE void begin_step(const StepArguments<D>& a) {
  if (a.control->stop) return;
  a.control->max_speed_bits = 0;
  a.control->max_modulus_bits = 0;
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

// Computes the key that sorts particle i: its block's position in the list, then its group.
template <int D>
COPPICE_INLINE void block_key(const Read<std::uint32_t>& number, const Item& i,
                              const ParticleArrays& particles, float inv_dx, std::uint32_t n_groups,
                              std::uint32_t* keys, std::uint32_t* order) {
  std::int32_t c[D];
  home_block<D>(particles, i.index, inv_dx, c);
  COPPICE_UNROLL for (int k = 0; k < D; ++k) c[k] /= kBlockSize<D>;
  const float group = particles.base[Attribute<D>::kGroup * particles.stride + i.index];
  keys[i.index] = number.at(i, c) * n_groups + static_cast<std::uint32_t>(group);
  order[i.index] = static_cast<std::uint32_t>(i.index);
}

}  // namespace coppice::mpm
