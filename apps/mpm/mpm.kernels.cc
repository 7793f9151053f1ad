// Kernels of the MLS-MPM solver: its stages (mpm_steps.h) for 2 and 3 dimensions.
#include "apps/mpm/block_order.h"
#include "apps/mpm/body_field.h"
#include "apps/mpm/elastic_energy.h"
#include "apps/mpm/grid_values.h"
#include "apps/mpm/hand.h"
#include "apps/mpm/mpm_steps.h"
#include "apps/mpm/outflow_boxes.h"
#include "apps/mpm/point_packing.h"

// A kernel that only calls a function of coppice::mpm has its name.
namespace coppice::mpm::kernels {

COPPICE_KERNEL_2D_3D(particles_to_grid, Write<NodeValue> tiles, ScatterTeam<D> block, StepArguments<D> a) {
  mpm::particles_to_grid<D>(tiles, block, a);
}

COPPICE_KERNEL_2D_3D(update_grid, Read<NodeValue> tiles, Write<NodeValue> grid, BlockTeam<D> block,
                     StepArguments<D> a) {
  mpm::update_grid<D>(tiles, grid, block, a);
}

COPPICE_KERNEL_2D_3D(grid_to_particles, Read<NodeValue> grid, TileTeam<D> block, StepArguments<D> a) {
  mpm::grid_to_particles<D>(grid, block, a);
}

// The same for wide nodes.
COPPICE_KERNEL_2D_3D(particles_to_grid_wide, Write<NodeValue> tiles, Write<NodeValue> tiles_before,
                     WideScatterTeam<D> block, StepArguments<D> a) {
  mpm::particles_to_grid_wide<D>(tiles, tiles_before, block, a);
}

COPPICE_KERNEL_2D_3D(update_grid_wide, Read<NodeValue> tiles, Read<NodeValue> tiles_before,
                     Write<NodeValue> grid, Write<NodeValue> grid_before, BlockTeam<D> block,
                     StepArguments<D> a) {
  mpm::update_grid_wide<D>(tiles, tiles_before, grid, grid_before, block, a);
}

COPPICE_KERNEL_2D_3D(grid_to_particles_wide, Read<NodeValue> grid, Read<NodeValue> grid_before,
                     WideTileTeam<D> block, StepArguments<D> a) {
  mpm::grid_to_particles_wide<D>(grid, grid_before, block, a);
}

COPPICE_KERNEL_2D_3D(begin_step, Item, StepArguments<D> a) { mpm::begin_step<D>(a); }

COPPICE_KERNEL_2D_3D(finish_step, Item, StepArguments<D> a) { mpm::finish_step<D>(a); }

// Sorting: every particle activates its home block, every such block the ones its tile reaches into.
COPPICE_KERNEL_2D_3D(activate_home, Topology grid, Item i, ParticleArrays particles, float inv_dx) {
  std::int32_t c[D];
  home_block<D>(particles, i.index, inv_dx, c);
  grid.activate(i, c);
}

COPPICE_KERNEL_2D_3D(activate_reach, Topology grid, Block<D> block) {
  for (int o = 1; o < 1 << D; ++o) {
    std::int32_t c[D];
    COPPICE_UNROLL
    for (int k = 0; k < D; ++k) c[k] = block.origin[3 - D + k] + (o >> (D - 1 - k) & 1) * kBlockSize<D>;
    grid.activate(block, c);
  }
}

// Stores each block's position in the list in the block itself, where its particles find it.
COPPICE_KERNEL_2D_3D(number_blocks, Write<std::uint32_t> number, Block<D> block) {
  *number.data(block) = static_cast<std::uint32_t>(block.number);
}

COPPICE_KERNEL_2D_3D(block_keys, Read<std::uint32_t> number, Item i, ParticleArrays particles, float inv_dx,
                     std::uint32_t n_groups, std::uint32_t* keys, std::uint32_t* order) {
  keys[i.index] = block_key<D>(number, i, particles, i.index, inv_dx, n_groups);
  order[i.index] = static_cast<std::uint32_t>(i.index);
}

// One turn of a reordering (ParticleStore::reorder).
COPPICE_KERNEL(reorder_particles, Item i, ParticleArrays from, ParticleArrays to, const std::uint32_t* order,
               int turn, int n_attributes)
{
  const int attribute = to.base < from.base ? turn : n_attributes - 1 - turn;
  to.base[attribute * to.stride + i.index] = from.base[attribute * from.stride + order[i.index]];
}

// Sorting over ranks (rank_steps.h). The first two tell where the particles were in the list of all blocks.
COPPICE_KERNEL_2D_3D(note_blocks, Block<D> block, BlockOrder<D> order, std::uint64_t* places) {
  places[block.number] = order.place(block.origin);
}
COPPICE_KERNEL_2D_3D(note_particles, Item i, ParticleArrays particles, const std::uint32_t* keys,
                     std::uint32_t n_groups, const std::uint64_t* block_places, std::uint64_t* places,
                     std::uint32_t* order) {
  const std::uint32_t key = keys[i.index];
  const float id = particles.base[Attribute<D>::kId * particles.stride + i.index];
  places[i.index] = key == kNoParticleKey ? kPlaceOfNew | __builtin_bit_cast(std::uint32_t, id)
                                          : block_places[key / n_groups];
  order[i.index] = static_cast<std::uint32_t>(i.index);
}
COPPICE_KERNEL_2D_3D(find_owners, Item i, ParticleArrays particles, float inv_dx, device::RankMap map,
                     std::uint32_t* owners) {
  std::int32_t c[D];
  home_block<D>(particles, i.index, inv_dx, c);
  owners[i.index] = map.owner<D>(c);
}
COPPICE_KERNEL_2D_3D(ordered_block_keys, Read<std::uint32_t> number, Item i, ParticleArrays particles,
                     float inv_dx, std::uint32_t n_groups, const std::uint32_t* order, std::uint32_t* keys) {
  keys[i.index] = block_key<D>(number, i, particles, order[i.index], inv_dx, n_groups);
}
// Item i is a chosen particle's attribute: out[attribute][particle].
COPPICE_KERNEL(gather_particles, Item i, ParticleArrays from, const std::uint32_t* chosen, std::int64_t n,
               float* out)
{ out[i.index] = from.base[i.index / n * from.stride + chosen[i.index % n]]; }
COPPICE_KERNEL(gather_places, Item i, const std::uint64_t* from, const std::uint32_t* chosen,
               std::uint64_t* out)
{ out[i.index] = from[chosen[i.index]]; }

// Mass of every node of a block, for output.
COPPICE_KERNEL_2D_3D(copy_density, Read<NodeValue> grid, Block<D> block, float per_cell, float* values,
                     std::int32_t* origins) {
  for (int n = 0; n < kBlockNodes<D>; ++n)
    values[block.number * kBlockNodes<D> + n] =
        grid_value(grid.data(block)[n], GridValue::kDensity, per_cell);
  for (int d = 0; d < 3; ++d) origins[3 * block.number + d] = block.origin[d];
}
COPPICE_KERNEL_2D_3D(copy_velocity, Read<NodeValue> grid, Block<D> block, float* velocity) {
  for (int n = 0; n < kBlockNodes<D>; ++n) {
    const NodeValue& node = grid.data(block)[n];
    const bool has_mass = node.v[3] > 0.0f;
    for (int k = 0; k < 3; ++k)
      velocity[3 * (block.number * kBlockNodes<D> + n) + k] = has_mass ? node.v[k] : 0.0f;
  }
}

// The grid's values in a tree of 8^3 leaves, which is what volumes are drawn from: leaves where blocks are,
// then values.
COPPICE_KERNEL(activate_shown_3d, Topology shown, Block3 block)
{ shown.activate(block, {block.coord(0), block.coord(1), block.coord(2)}); }
COPPICE_KERNEL(show_grid_3d, Read<NodeValue> grid, Write<float> shown, Cell3 cell, GridValue value,
               float per_cell)
{ shown[cell] = grid_value(grid.at(cell, {cell.coord(0), cell.coord(1), cell.coord(2)}), value, per_cell); }

COPPICE_KERNEL(activate_body_3d, Topology shown, Item i, ParticleArrays particles, const Group<3>* groups,
               BodyShare body)
{ activate_body_leaves(shown, i, particles, groups, body); }
COPPICE_KERNEL(add_body_3d, Accumulate<float> shown, Item i, ParticleArrays particles, const Group<3>* groups,
               BodyShare body)
{ add_body_share(shown, i, particles, groups, body); }
COPPICE_KERNEL(mark_enclosed_3d, Read<float> shown, Item i, ParticleArrays particles, const Group<3>* groups,
               BodyShare body, float threshold, std::uint32_t* is_enclosed_flags)
{ is_enclosed_flags[i.index] = is_enclosed(shown, i, particles, groups, body, threshold) ? 1u : 0u; }

COPPICE_KERNEL_2D_3D(pack_points, Item i, ParticleArrays particles, const Group<D>* groups, PointValue value,
                     SmallVec<float, 3> shift, float* out) {
  pack_point<D>(particles, groups, i.index, value, shift, out);
}

// Elastic energy of each particle, J (J per metre of depth in 2-D).
COPPICE_KERNEL_2D_3D(elastic_energies, Item i, ParticleArrays particles, const Group<D>* groups,
                     float* energies) {
  energies[i.index] = elastic_energy<D>(particles, groups, i.index);
}

// A hand acts between two steps.
COPPICE_KERNEL_2D_3D(push_particles, Item i, ParticleArrays particles, Capsule<D> stroke,
                     SmallVec<float, D> velocity, std::uint32_t* max_speed_bits) {
  push_particle<D>(particles, i.index, stroke, velocity, max_speed_bits);
}

COPPICE_KERNEL_2D_3D(mark_kept, Item i, ParticleArrays particles, Capsule<D> stroke, std::uint32_t* is_kept) {
  mpm::mark_kept<D>(particles, i.index, stroke, is_kept);
}

COPPICE_KERNEL_2D_3D(mark_taken, Item i, ParticleArrays particles, Subcells<D> subcells,
                     std::uint32_t* is_taken) {
  mpm::mark_taken<D>(particles, i.index, subcells, is_taken);
}

COPPICE_KERNEL_2D_3D(mark_outflow, Item i, ParticleArrays particles, const OutflowBox<D>* boxes,
                     std::uint32_t n_boxes, std::uint32_t* is_kept, std::uint32_t* counts) {
  mpm::mark_outflow<D>(particles, i.index, boxes, n_boxes, is_kept, counts);
}

}  // namespace coppice::mpm::kernels
