// Kernels of the MLS-MPM solver: its stages (mpm_steps.h) for 2 and 3 dimensions.
#include "apps/mpm/mpm_steps.h"

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
    values[block.number * kBlockNodes<2> + n] = grid.data(block)[n].v[3] * per_cell;
  for (int d = 0; d < 3; ++d) origins[3 * block.number + d] = block.origin[d];
}
COPPICE_KERNEL(copy_density_3d, Read<NodeValue> grid, Block3 block, float per_cell, float* values,
               std::int32_t* origins)
{
  for (int n = 0; n < kBlockNodes<3>; ++n)
    values[block.number * kBlockNodes<3> + n] = grid.data(block)[n].v[3] * per_cell;
  for (int d = 0; d < 3; ++d) origins[3 * block.number + d] = block.origin[d];
}
