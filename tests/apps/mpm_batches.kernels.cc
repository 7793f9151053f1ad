// Kernels that do a block's transfers both ways: by batches and rows, as a CPU does, and node by node.
#include "apps/mpm/mpm_steps.h"

namespace coppice::mpm::kernels {
namespace {

// A CPU's thread, which has a block alone.
struct Alone {
  std::int32_t origin[3] = {0, 0, 0};
  std::int64_t lane() const { return 0; }
  std::int64_t lanes() const { return 1; }
};

}  // namespace

COPPICE_KERNEL(transpose_numbers, Item, float* numbers)
{
  BatchNumbers n;
  for (int i = 0; i < kBatch; ++i) {
    for (int k = 0; k < kBatch; ++k) n.v[i][k] = numbers[i * kBatch + k];
  }
  transpose(n);
  for (int i = 0; i < kBatch; ++i) {
    for (int k = 0; k < kBatch; ++k) numbers[i * kBatch + k] = n.v[i][k];
  }
}

COPPICE_KERNEL_2D_3D(scatter_by_rows, Item, StepArguments<D> a, NodeValue* tile, NodeValue* shares) {
  scatter_alone<D>(
      a, a.starts, Alone{},
      [&](const Group<D>& group, std::int64_t begin, int n, ScatterBatches<D>& batches)
          __attribute__((always_inline)) {
            offer<D>(a, scattered(a, group), begin, n, Alone{}, batches);
            scatter_batches<D>(batches, tile);
            scatter_shares<D>(batches, group.cell_share, shares);
          });
}

COPPICE_KERNEL_2D_3D(scatter_by_nodes, Item, StepArguments<D> a, NodeValue* tile, NodeValue* shares) {
  const std::int32_t first[3] = {0, 0, 0};
  for (std::uint32_t g = 0; g < a.n_groups; ++g) {
    const Scattered group = scattered(a, a.groups[g]);
    for (std::int64_t i = a.starts[g]; i < a.starts[g + 1]; ++i) {
      const Particle p = particle(a, i);
      const TileStencil<D> s = tile_stencil<D>(p, a.inv_dx, first);
      scatter_particle<D>(given<D>(a, group, p), group.counted, s, [&](int ix, int iy, int iz, Float4 value) {
        const int n = tile_index<D>(s.base[0] + ix, s.base[1] + iy, s.base[2] + iz);
        store(tile + n, load(tile + n) + value);
        shares[n].v[3] += value[3] / group.counted * a.groups[g].cell_share;
      });
    }
  }
}

COPPICE_KERNEL_2D_3D(gather_by_rows, Item, StepArguments<D> a, const NodeValue* tile, float per_density,
                     float* found) {
  const std::int32_t first[3] = {0, 0, 0};
  BlockFindings findings;
  for_each_batch<D>(
      Alone{}, a.particles, 0, a.starts[a.n_groups], kTransferred<D>,
      kTransferred<D>, [&](const ParticleArrays& batch, int) __attribute__((always_inline)) {
        gather_batch<D>(a, batch, first, tile, per_density, true, findings);
      });
  found[0] = findings.max_speed2, found[1] = findings.drifted ? 1.0f : 0.0f;
  found[2] = findings.not_finite ? 1.0f : 0.0f;
}

COPPICE_KERNEL_2D_3D(gather_by_nodes, Item, StepArguments<D> a, const NodeValue* tile, float per_density,
                     float* found) {
  const std::int32_t first[3] = {0, 0, 0};
  BlockFindings findings;
  for (std::int64_t i = 0; i < a.starts[a.n_groups]; ++i)
    gather_particle<D>(a, particle(a, i), first, tile, per_density, true, findings);
  found[0] = findings.max_speed2, found[1] = findings.drifted ? 1.0f : 0.0f;
  found[2] = findings.not_finite ? 1.0f : 0.0f;
}

// Writes 37 floats for what each particle takes from wide nodes.
COPPICE_KERNEL_2D_3D(take_wide, Item, StepArguments<D> a, const NodeValue* tile, float* by_rows,
                     float* by_nodes) {
  const std::int32_t first[3] = {0, 0, 0};
  const auto write = [](const auto& around, float* to) {
    const Taken now = around.now();
    const TakenBefore before = around.before();
    const Float4 parts[] = {
        now.value,          now.along[0],          now.along[1],          now.along[2],
        before.taken.value, before.taken.along[0], before.taken.along[1], before.taken.along[2],
        before.moment};
    for (int i = 0; i < 9; ++i) {
      const bool is_there = D == 3 || (i != 1 && i != 5);  // the plane has no x
      for (int k = 0; k < 4; ++k) to[4 * i + k] = is_there ? parts[i][k] : 0.0f;
    }
    to[36] = around.filled();
  };
  for (std::int64_t begin = 0; begin + kBatch <= a.starts[a.n_groups]; begin += kBatch) {
    BatchNumbers stencils;
    std::int32_t bases[kBatch];
    find_stencils<D>(a, {a.particles.base + begin, a.particles.stride}, first, stencils, bases);
    for (int i = 0; i < kBatch; ++i) {
      const Particle p = particle(a, begin + i);
      write(WideRows<D>{stencils.v[i], tile + bases[i]}, by_rows + 37 * (begin + i));
      write(WideNodes<D>{a, p, first, tile}, by_nodes + 37 * (begin + i));
    }
  }
}

}  // namespace coppice::mpm::kernels
