// Kernels of the MLS-MPM solver: its stages (mpm_steps.h) for 2 and 3 dimensions.
#include "apps/mpm/body_field.h"
#include "apps/mpm/grid_values.h"
#include "apps/mpm/hand.h"
#include "apps/mpm/mpm_steps.h"
#include "apps/mpm/point_packing.h"

using namespace coppice;
using namespace coppice::mpm;

COPPICE_KERNEL(particles_to_grid_2d, Write<NodeValue> tiles, TileTeam<2> block, StepArguments<2> a)
{ particles_to_grid<2>(tiles, block, a); }
COPPICE_KERNEL(particles_to_grid_3d, Write<NodeValue> tiles, TileTeam<3> block, StepArguments<3> a)
{ particles_to_grid<3>(tiles, block, a); }

COPPICE_KERNEL(update_grid_2d, Read<NodeValue> tiles, Write<NodeValue> grid, BlockTeam<2> block,
               StepArguments<2> a)
{ update_grid<2>(tiles, grid, block, a); }
COPPICE_KERNEL(update_grid_3d, Read<NodeValue> tiles, Write<NodeValue> grid, BlockTeam<3> block,
               StepArguments<3> a)
{ update_grid<3>(tiles, grid, block, a); }

COPPICE_KERNEL(grid_to_particles_2d, Read<NodeValue> grid, TileTeam<2> block, StepArguments<2> a)
{ grid_to_particles<2>(grid, block, a); }
COPPICE_KERNEL(grid_to_particles_3d, Read<NodeValue> grid, TileTeam<3> block, StepArguments<3> a)
{ grid_to_particles<3>(grid, block, a); }

COPPICE_KERNEL(begin_step_2d, Item, StepArguments<2> a)
{ begin_step<2>(a); }
COPPICE_KERNEL(begin_step_3d, Item, StepArguments<3> a)
{ begin_step<3>(a); }
COPPICE_KERNEL(finish_step_2d, Item, StepArguments<2> a)
{ finish_step<2>(a); }
COPPICE_KERNEL(finish_step_3d, Item, StepArguments<3> a)
{ finish_step<3>(a); }

// Sorting: every particle activates its home block, every such block the ones its tile reaches into.
COPPICE_KERNEL(activate_home_2d, Topology grid, Item i, ParticleArrays particles, float inv_dx)
{
  std::int32_t c[2];
  home_block<2>(particles, i.index, inv_dx, c);
  grid.activate(i, c);
}
COPPICE_KERNEL(activate_home_3d, Topology grid, Item i, ParticleArrays particles, float inv_dx)
{
  std::int32_t c[3];
  home_block<3>(particles, i.index, inv_dx, c);
  grid.activate(i, c);
}
COPPICE_KERNEL(activate_reach_2d, Topology grid, Block2 block)
{
  for (int o = 1; o < 4; ++o)
    grid.activate(block,
                  {block.origin[1] + (o >> 1) * kBlockSize<2>, block.origin[2] + (o & 1) * kBlockSize<2>});
}
COPPICE_KERNEL(activate_reach_3d, Topology grid, Block3 block)
{
  for (int o = 1; o < 8; ++o) {
    grid.activate(block,
                  {block.origin[0] + (o >> 2) * kBlockSize<3>, block.origin[1] + (o >> 1 & 1) * kBlockSize<3>,
                   block.origin[2] + (o & 1) * kBlockSize<3>});
  }
}
// Stores each block's position in the list in the block itself, where its particles find it.
COPPICE_KERNEL(number_blocks_2d, Write<std::uint32_t> number, Block2 block)
{ *number.data(block) = static_cast<std::uint32_t>(block.number); }
COPPICE_KERNEL(number_blocks_3d, Write<std::uint32_t> number, Block3 block)
{ *number.data(block) = static_cast<std::uint32_t>(block.number); }

COPPICE_KERNEL(block_keys_2d, Read<std::uint32_t> number, Item i, ParticleArrays particles, float inv_dx,
               std::uint32_t n_groups, std::uint32_t* keys, std::uint32_t* order)
{ block_key<2>(number, i, particles, inv_dx, n_groups, keys, order); }
COPPICE_KERNEL(block_keys_3d, Read<std::uint32_t> number, Item i, ParticleArrays particles, float inv_dx,
               std::uint32_t n_groups, std::uint32_t* keys, std::uint32_t* order)
{ block_key<3>(number, i, particles, inv_dx, n_groups, keys, order); }
COPPICE_KERNEL(reorder_particles, Item i, ParticleArrays from, ParticleArrays to, const std::uint32_t* order,
               int n_attributes)
{
  const std::uint32_t source = order[i.index];
  for (int a = 0; a < n_attributes; ++a)
    to.base[a * to.stride + i.index] = from.base[a * from.stride + source];
}

// Mass of every node of a block, for output.
COPPICE_KERNEL(copy_density_2d, Read<NodeValue> grid, Block2 block, float per_cell, float* values,
               std::int32_t* origins)
{
  for (int n = 0; n < kBlockNodes<2>; ++n)
    values[block.number * kBlockNodes<2> + n] =
        grid_value(grid.data(block)[n], GridValue::kDensity, per_cell);
  for (int d = 0; d < 3; ++d) origins[3 * block.number + d] = block.origin[d];
}
COPPICE_KERNEL(copy_density_3d, Read<NodeValue> grid, Block3 block, float per_cell, float* values,
               std::int32_t* origins)
{
  for (int n = 0; n < kBlockNodes<3>; ++n)
    values[block.number * kBlockNodes<3> + n] =
        grid_value(grid.data(block)[n], GridValue::kDensity, per_cell);
  for (int d = 0; d < 3; ++d) origins[3 * block.number + d] = block.origin[d];
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

COPPICE_KERNEL(pack_points_2d, Item i, ParticleArrays particles, const Group<2>* groups, PointValue value,
               SmallVec<float, 3> shift, float* out)
{ pack_point<2>(particles, groups, i.index, value, shift, out); }
COPPICE_KERNEL(pack_points_3d, Item i, ParticleArrays particles, const Group<3>* groups, PointValue value,
               SmallVec<float, 3> shift, float* out)
{ pack_point<3>(particles, groups, i.index, value, shift, out); }

// A hand acts between two steps.
COPPICE_KERNEL(push_particles_2d, Item i, ParticleArrays particles, Capsule<2> stroke,
               SmallVec<float, 2> velocity, std::uint32_t* max_speed_bits)
{ push_particle<2>(particles, i.index, stroke, velocity, max_speed_bits); }
COPPICE_KERNEL(push_particles_3d, Item i, ParticleArrays particles, Capsule<3> stroke,
               SmallVec<float, 3> velocity, std::uint32_t* max_speed_bits)
{ push_particle<3>(particles, i.index, stroke, velocity, max_speed_bits); }
COPPICE_KERNEL(mark_kept_2d, Item i, ParticleArrays particles, Capsule<2> stroke, std::uint32_t* is_kept)
{ mark_kept<2>(particles, i.index, stroke, is_kept); }
COPPICE_KERNEL(mark_kept_3d, Item i, ParticleArrays particles, Capsule<3> stroke, std::uint32_t* is_kept)
{ mark_kept<3>(particles, i.index, stroke, is_kept); }
COPPICE_KERNEL(mark_taken_2d, Item i, ParticleArrays particles, Subcells<2> subcells, std::uint32_t* is_taken)
{ mark_taken<2>(particles, i.index, subcells, is_taken); }
COPPICE_KERNEL(mark_taken_3d, Item i, ParticleArrays particles, Subcells<3> subcells, std::uint32_t* is_taken)
{ mark_taken<3>(particles, i.index, subcells, is_taken); }
