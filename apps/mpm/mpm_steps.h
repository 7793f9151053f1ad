// The four stages of an MLS-MPM step, written once for 2-D and 3-D: particles to grid, grid update, grid to particles,
// bookkeeping (Hu et al. 2018, "A Moving Least Squares Material Point Method"; transfers after Jiang et al. 2015, APIC).
//
// Device-clean. Each stage works on one block; blocks do not write to each other: particles scatter into their block's
// own tile, and the grid update gathers from the tiles that overlap the block. No atomics, and sums in a fixed order,
// so results do not depend on the number of threads.
#pragma once
#include "apps/mpm/bspline.h"
#include "apps/mpm/solver_types.h"
#include "coppice/kernel.h"

namespace coppice::mpm {

typedef float Lanes __attribute__((ext_vector_type(4)));

COPPICE_INLINE Lanes load(const NodeValue* p) { return *reinterpret_cast<const Lanes*>(p); }
COPPICE_INLINE void store(NodeValue* p, Lanes v) { *reinterpret_cast<Lanes*>(p) = v; }

template <int D>
COPPICE_INLINE int tile_index(int i, int j, int k) {
  constexpr int t = kTileSize<D>;
  return D == 3 ? (i * t + j) * t + k : j * t + k;
}
template <int D>
inline constexpr int kTileNodes = D == 3 ? kTileSize<D> * kTileSize<D> * kTileSize<D> : kTileSize<D> * kTileSize<D>;
template <int D>
inline constexpr int kBlockNodes = D == 3 ? kBlockSize<D> * kBlockSize<D> * kBlockSize<D> : kBlockSize<D> * kBlockSize<D>;

// One particle's stencil in its block's tile. The base is clamped, so that a broken position (not a number, or flung
// out of the margin in its last step) reads and writes inside the tile; the step's checks report it.
template <int D>
struct TileStencil {
  int base[3];
  float fx[3];
  float w[3][3];
};

template <int D>
COPPICE_INLINE TileStencil<D> tile_stencil(const float* const* position, std::int64_t i, float inv_dx, const std::int32_t* first) {
  TileStencil<D> s;
  s.base[0] = 0, s.fx[0] = 0;
  COPPICE_UNROLL
  for (int a = 0; a < D; ++a) {
    const int axis = 3 - D + a;
    const float x = position[a][i] * inv_dx - static_cast<float>(first[axis]);
    const float base = clamp_to(std::floor(x - 0.5f), 0.0f, static_cast<float>(kTileSize<D> - 3));
    const float fx = x - base, left = 1.5f - fx, right = fx - 0.5f;
    s.base[axis] = static_cast<int>(base);
    s.fx[axis] = fx;
    s.w[axis][0] = 0.5f * left * left;
    s.w[axis][1] = 0.75f - (fx - 1.0f) * (fx - 1.0f);
    s.w[axis][2] = 0.5f * right * right;
  }
  return s;
}

template <int D>
COPPICE_INLINE float* attribute(const StepArguments<D>& a, int number) { return a.particles.base + number * a.particles.stride; }

// Column c of a D x D matrix attribute, as (x, y, z, 0) with the axes of a 2-D tree in (x, y).
template <int D>
COPPICE_INLINE Lanes matrix_column(const float* const* m, std::int64_t i, int c) {
  if constexpr (D == 3) return Lanes{m[c][i], m[3 + c][i], m[6 + c][i], 0.0f};
  else return Lanes{m[c][i], m[2 + c][i], 0.0f, 0.0f};
}
template <int D>
COPPICE_INLINE Lanes stress_column(const float* const* s, std::int64_t i, int c) {
  if constexpr (D == 3) {
    if (c == 0) return Lanes{s[0][i], s[1][i], s[2][i], 0.0f};
    if (c == 1) return Lanes{s[1][i], s[3][i], s[4][i], 0.0f};
    return Lanes{s[2][i], s[4][i], s[5][i], 0.0f};
  } else {
    if (c == 0) return Lanes{s[0][i], s[1][i], 0.0f, 0.0f};
    return Lanes{s[1][i], s[2][i], 0.0f, 0.0f};
  }
}

// Momentum and mass of a segment of particles, added to the tile: m v + (m C - dt V 4/dx^2 tau)(x_node - x_p).
template <int D>
COPPICE_INLINE void scatter_segment(const StepArguments<D>& a, const Group<D>& group, std::int64_t begin, std::int64_t end,
                                    const std::int32_t* first, NodeValue* tile) {
  using A = Attribute<D>;
  const float *x[3], *v[3], *c[9], *tau[6];
  COPPICE_UNROLL for (int k = 0; k < D; ++k) x[k] = attribute(a, A::kPosition + k), v[k] = attribute(a, A::kVelocity + k);
  COPPICE_UNROLL for (int k = 0; k < D * D; ++k) c[k] = attribute(a, A::kAffine + k);
  COPPICE_UNROLL for (int k = 0; k < D * (D + 1) / 2; ++k) tau[k] = attribute(a, A::kStress + k);
  const float mass = group.mass, push = -a.dt * group.volume * 4.0f * a.inv_dx * a.inv_dx;
  for (std::int64_t i = begin; i < end; ++i) {
    const TileStencil<D> s = tile_stencil<D>(x, i, a.inv_dx, first);
    Lanes affine[3];  // per axis (x, y, z of the tile): momentum per cell of distance
    affine[0] = Lanes{0, 0, 0, 0};
    COPPICE_UNROLL
    for (int k = 0; k < D; ++k) affine[3 - D + k] = (mass * matrix_column<D>(c, i, k) + push * stress_column<D>(tau, i, k)) * a.dx;
    const Lanes still = D == 3 ? Lanes{mass * v[0][i], mass * v[1][i], mass * v[D - 1][i], mass} : Lanes{mass * v[0][i], mass * v[1][i], 0.0f, mass};
    constexpr int nx = D == 3 ? 3 : 1;
    COPPICE_UNROLL
    for (int ix = 0; ix < nx; ++ix) {
      const Lanes at_x = D == 3 ? still + affine[0] * (static_cast<float>(ix) - s.fx[0]) : still;
      COPPICE_UNROLL
      for (int iy = 0; iy < 3; ++iy) {
        const Lanes at_y = at_x + affine[1] * (static_cast<float>(iy) - s.fx[1]);
        const float w_xy = D == 3 ? s.w[0][ix] * s.w[1][iy] : s.w[1][iy];
        NodeValue* row = tile + tile_index<D>(s.base[0] + ix, s.base[1] + iy, s.base[2]);
        COPPICE_UNROLL
        for (int iz = 0; iz < 3; ++iz) {
          const Lanes at_z = at_y + affine[2] * (static_cast<float>(iz) - s.fx[2]);
          store(row + iz, load(row + iz) + (w_xy * s.w[2][iz]) * at_z);
        }
      }
    }
  }
}

template <int D>
COPPICE_INLINE void particles_to_grid(const Write<NodeValue>& tiles, const Block<D>& block, const StepArguments<D>& a) {
  if (a.control->stop) return;
  const std::uint32_t* starts = a.starts + block.number * a.n_groups;
  if (starts[0] == starts[a.n_groups]) return;  // its tile has been zero since activation
  NodeValue* tile = tiles.data(block);
  __builtin_memset(tile, 0, sizeof(NodeValue) * kTileNodes<D>);
  for (std::uint32_t g = 0; g < a.n_groups; ++g) scatter_segment(a, a.groups[g], starts[g], starts[g + 1], block.origin, tile);
}

// Wall and collider response of one node; `node` is (x, y, z) right-aligned, velocity in (x, y, z).
template <int D>
COPPICE_INLINE Lanes apply_boundaries(const StepArguments<D>& a, const std::int32_t* node, Lanes value) {
  SmallVec<float, D> v{}, x{};
  COPPICE_UNROLL
  for (int k = 0; k < D; ++k) v.v[k] = value[k], x.v[k] = static_cast<float>(node[3 - D + k]) * a.dx;
  for (std::uint32_t c = 0; c < a.control->n_colliders; ++c) {
    const ColliderState<D>& collider = a.control->now[c];
    const ColliderSample<float, D> hit = collider.kind == ColliderKind::kSphere ? sample(collider.sphere, x) : sample(collider.box, x);
    if (hit.distance <= 0.0f) v = respond_to_collider(collider.boundary, collider.friction, v, hit.velocity, hit.normal);
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
  return D == 3 ? Lanes{v.v[0], v.v[1], v.v[D - 1], value[3]} : Lanes{v.v[0], v.v[1], 0.0f, value[3]};
}

// Sums the tiles that overlap the block, in a fixed order, and turns momentum into velocity after forces and contact.
template <int D>
COPPICE_INLINE void update_grid(const Read<NodeValue>& tiles, const Write<NodeValue>& grid, const Block<D>& block,
                                const StepArguments<D>& a) {
  if (a.control->stop) return;
  constexpr int b = kBlockSize<D>, t = kTileSize<D>, bx = D == 3 ? b : 1;
  NodeValue sum[kBlockNodes<D>];
  __builtin_memset(sum, 0, sizeof sum);
  for (int ox = 0; ox < (D == 3 ? 2 : 1); ++ox) {
    for (int oy = 0; oy < 2; ++oy) {
      for (int oz = 0; oz < 2; ++oz) {
        const NodeValue* tile;
        if constexpr (D == 3) tile = tiles.neighbour_data(block, {-ox, -oy, -oz});
        else tile = tiles.neighbour_data(block, {-oy, -oz});
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
  NodeValue* out = grid.data(block);
  const Lanes kick = Lanes{a.gravity[0], a.gravity[1], D == 3 ? a.gravity[2] : 0.0f, 0.0f} * a.dt;
  for (int i = 0; i < bx; ++i) {
    for (int j = 0; j < b; ++j) {
      for (int k = 0; k < b; ++k) {
        const int n = (i * b + j) * b + k;
        const Lanes momentum = load(sum + n);
        const float mass = momentum[3];
        if (!(mass > 0.0f)) {
          store(out + n, Lanes{0, 0, 0, 0});
          continue;
        }
        Lanes value = momentum * (1.0f / mass) + kick;
        value[3] = mass;
        const std::int32_t node[3] = {block.origin[0] + i, block.origin[1] + j, block.origin[2] + k};
        store(out + n, apply_boundaries<D>(a, node, value));
      }
    }
  }
}

// Copies the velocities a block's particles can see into one tile.
template <int D>
COPPICE_INLINE void gather_velocities(const Read<NodeValue>& grid, const Block<D>& block, NodeValue* tile) {
  constexpr int b = kBlockSize<D>, t = kTileSize<D>;
  for (int ox = 0; ox < (D == 3 ? 2 : 1); ++ox) {
    for (int oy = 0; oy < 2; ++oy) {
      for (int oz = 0; oz < 2; ++oz) {
        const NodeValue* from;
        if constexpr (D == 3) from = grid.neighbour_data(block, {ox, oy, oz});
        else from = grid.neighbour_data(block, {oy, oz});
        const int ex = D == 2 ? 1 : ox ? t - b : b, ey = oy ? t - b : b, ez = oz ? t - b : b;
        for (int i = 0; i < ex; ++i) {
          for (int j = 0; j < ey; ++j) {
            __builtin_memcpy(tile + tile_index<D>(i + ox * b, j + oy * b, oz * b), from + (i * b + j) * b, sizeof(NodeValue) * ez);
          }
        }
      }
    }
  }
}

// What a block's particles found, merged into the step control once per block.
struct BlockFindings {
  float max_speed2 = 0.0f;   // m^2/s^2
  float max_modulus = 0.0f;  // m^2/s^2, wave modulus / density
  bool drifted = false;
  bool not_finite = false;
};

// New velocity, velocity gradient and position of a segment of particles.
template <int D>
COPPICE_INLINE void gather_segment(const StepArguments<D>& a, std::int64_t begin, std::int64_t end, const std::int32_t* first,
                                   const NodeValue* tile, BlockFindings& found) {
  using A = Attribute<D>;
  float *x[3], *v[3], *c[9];
  COPPICE_UNROLL for (int k = 0; k < D; ++k) x[k] = attribute(a, A::kPosition + k), v[k] = attribute(a, A::kVelocity + k);
  COPPICE_UNROLL for (int k = 0; k < D * D; ++k) c[k] = attribute(a, A::kAffine + k);
  const float gradient_scale = 4.0f * a.inv_dx;
  for (std::int64_t i = begin; i < end; ++i) {
    const TileStencil<D> s = tile_stencil<D>(x, i, a.inv_dx, first);
    Lanes velocity{0, 0, 0, 0}, gradient[3] = {{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}};
    constexpr int nx = D == 3 ? 3 : 1;
    COPPICE_UNROLL
    for (int ix = 0; ix < nx; ++ix) {
      COPPICE_UNROLL
      for (int iy = 0; iy < 3; ++iy) {
        const float w_xy = D == 3 ? s.w[0][ix] * s.w[1][iy] : s.w[1][iy];
        const NodeValue* row = tile + tile_index<D>(s.base[0] + ix, s.base[1] + iy, s.base[2]);
        Lanes along{0, 0, 0, 0};
        COPPICE_UNROLL
        for (int iz = 0; iz < 3; ++iz) {
          const Lanes part = (w_xy * s.w[2][iz]) * load(row + iz);
          along += part;
          gradient[2] += part * (static_cast<float>(iz) - s.fx[2]);
        }
        velocity += along;
        gradient[1] += along * (static_cast<float>(iy) - s.fx[1]);
        if constexpr (D == 3) gradient[0] += along * (static_cast<float>(ix) - s.fx[0]);
      }
    }
    float speed2 = 0.0f;
    bool inside = true;
    COPPICE_UNROLL
    for (int k = 0; k < D; ++k) {
      const int axis = 3 - D + k;
      const float low = (kPad + 0.01f) * a.dx, high = (static_cast<float>(kPad + a.cells[k]) - 0.01f) * a.dx;
      const float moved = clamp_to(x[k][i] + a.dt * velocity[k], low, high);
      x[k][i] = moved;
      v[k][i] = velocity[k];
      speed2 += velocity[k] * velocity[k];
      const float base = std::floor(moved * a.inv_dx - static_cast<float>(first[axis]) - 0.5f);
      inside = inside && base >= 0.0f && base <= static_cast<float>(kTileSize<D> - 3);
      COPPICE_UNROLL
      for (int r = 0; r < D; ++r) c[r * D + k][i] = gradient[axis][r] * gradient_scale;
    }
    found.drifted = found.drifted || !inside;
    // A NaN fails every comparison; the clamp above hides it from positions, never from velocities.
    found.not_finite = found.not_finite || !(speed2 < 1e30f);
    found.max_speed2 = speed2 > found.max_speed2 ? speed2 : found.max_speed2;
  }
}

// Deformation, plasticity and stress of a segment; one material, so the loop vectorises.
template <int D, class Material>
COPPICE_INLINE void advance_segment(const StepArguments<D>& a, const Material& material, float density, std::int64_t begin,
                                    std::int64_t end, BlockFindings& found) {
  using A = Attribute<D>;
  float* c[D * D];
  float* f[D * D];
  float* tau[D * (D + 1) / 2];
  COPPICE_UNROLL for (int k = 0; k < D * D; ++k) c[k] = attribute(a, A::kAffine + k), f[k] = attribute(a, A::kDeformation + k);
  COPPICE_UNROLL for (int k = 0; k < D * (D + 1) / 2; ++k) tau[k] = attribute(a, A::kStress + k);
  float* scalar = attribute(a, A::kScalar);
  // The maximum is taken over the bits, which order like the floats as moduli are not negative: LLVM does not vectorise
  // a float maximum without permission to ignore NaN.
  std::int32_t largest = 0;
#pragma clang loop vectorize(assume_safety) interleave_count(1)
  for (std::int64_t i = begin; i < end; ++i) {
    SmallMat<float, D> gradient{}, deformation{};
    COPPICE_UNROLL for (int k = 0; k < D * D; ++k) gradient.m[k] = c[k][i];
    if constexpr (Material::kUsesDeformationGradient) {
      COPPICE_UNROLL for (int k = 0; k < D * D; ++k) deformation.m[k] = f[k][i];
    }
    const MaterialResponse<float, D> r = material.advance(deformation, scalar[i], gradient, a.dt);
    if constexpr (Material::kUsesDeformationGradient) {
      COPPICE_UNROLL for (int k = 0; k < D * D; ++k) f[k][i] = r.f.m[k];
    }
    if constexpr (Material::kUsesScalar) scalar[i] = r.scalar;
    int n = 0;
    COPPICE_UNROLL
    for (int row = 0; row < D; ++row) {
      COPPICE_UNROLL
      for (int column = row; column < D; ++column) tau[n++][i] = r.tau.m[row * D + column];
    }
    const std::int32_t modulus_bits = __builtin_bit_cast(std::int32_t, r.wave_modulus);
    largest = modulus_bits > largest ? modulus_bits : largest;
  }
  const float modulus = __builtin_bit_cast(float, largest) / density;
  found.max_modulus = modulus > found.max_modulus ? modulus : found.max_modulus;
}

template <int D>
COPPICE_INLINE void advance_group(const StepArguments<D>& a, const Group<D>& group, std::int64_t begin, std::int64_t end,
                                  BlockFindings& found) {
  if (begin == end) return;
  switch (group.kind) {
    case MaterialKind::kJelly: return advance_segment<D>(a, group.jelly, group.density, begin, end, found);
    case MaterialKind::kSnow: return advance_segment<D>(a, group.snow, group.density, begin, end, found);
    case MaterialKind::kWater: return advance_segment<D>(a, group.water, group.density, begin, end, found);
    case MaterialKind::kSand: return advance_segment<D>(a, group.sand, group.density, begin, end, found);
  }
}

template <int D>
COPPICE_INLINE void report(StepControl<D>* control, const BlockFindings& found, float max_speed) {
  const float speed = std::sqrt(found.max_speed2);
  coppice_fetch_max_u32(&control->max_speed_bits, __builtin_bit_cast(std::uint32_t, speed));
  coppice_fetch_max_u32(&control->max_modulus_bits, __builtin_bit_cast(std::uint32_t, found.max_modulus));
  if (found.drifted) device::relaxed_store(&control->drifted, 1u);
  if (speed > max_speed) device::relaxed_store(&control->too_fast, 1u);
  if (found.not_finite) device::relaxed_store(&control->not_finite, 1u);
}

template <int D>
COPPICE_INLINE void grid_to_particles(const Read<NodeValue>& grid, const Block<D>& block, const StepArguments<D>& a) {
  if (a.control->stop) return;
  const std::uint32_t* starts = a.starts + block.number * a.n_groups;
  const std::int64_t begin = starts[0], end = starts[a.n_groups];
  if (begin == end) return;
  NodeValue tile[kTileNodes<D>];
  gather_velocities<D>(grid, block, tile);
  BlockFindings found;
  gather_segment<D>(a, begin, end, block.origin, tile, found);
  for (std::uint32_t g = 0; g < a.n_groups; ++g) advance_group<D>(a, a.groups[g], starts[g], starts[g + 1], found);
  report(a.control, found, a.max_speed);
}

// One item: closes the step. Decides whether the rest of the batch runs and moves the colliders.
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

// One item before the first step of a batch or a step: the maxima are of one step only.
template <int D>
COPPICE_INLINE void begin_step(const StepArguments<D>& a) {
  if (a.control->stop) return;
  a.control->max_speed_bits = 0;
  a.control->max_modulus_bits = 0;
}

// ---- sorting particles by block

// The block a particle belongs to: where the second node of its stencil lies.
template <int D>
COPPICE_INLINE void home_block(const ParticleArrays& particles, std::int64_t i, float inv_dx, std::int32_t (&coord)[D]) {
  COPPICE_UNROLL
  for (int k = 0; k < D; ++k) {
    const float x = particles.base[(Attribute<D>::kPosition + k) * particles.stride + i] * inv_dx;
    coord[k] = static_cast<std::int32_t>(std::floor(x - 0.5f)) - 1;
  }
}

}  // namespace coppice::mpm
