// Time steps and sorting over ranks: each rank has the blocks of the grid that are its own, and the particles
// whose home they are.
//
// Blocks' tiles and nodes that others need travel as trees' mirrors do (sparse/ranks/tree_cut.h): before the
// nodes are summed, and before particles gather from them. Behind each step ranks agree on how it went, so
// that all of them stop at the same one. A sorting rebuilds the grid, cuts it anew where some rank has more
// than 1.1 times its share of the particles, and sends particles to the ranks that own their blocks.
//
// Particles of a block have the order that they would have on one rank: they are brought into the order of
// the blocks where they were, over all ranks, before they are sorted into new ones. So values have the same
// bits on any number of ranks, where those of one do not depend on its threads: on the cpu device.
//
// All ranks call everything together. Launches are given one by one, and the host waits at each exchange.
#pragma once
#include <vector>

#include "apps/mpm/particle_store.h"
#include "apps/mpm/step_runner.h"
#include "sparse/ranks/balance.h"

namespace coppice::mpm {

template <int D>
class RankSteps final : public StepRunner<D> {
 public:
  // All of them must live as long as this object.
  RankSteps(Program& program, BlockGrid<D>& grid, ParticleStore<D>& particles, const Cluster& cluster)
      : program_(program),
        grid_(grid),
        particles_(particles),
        cluster_(cluster),
        arguments_(share(&program.device())) {}

  void compile(const StepArguments<D>&) override {}  // launches compile as they come
  uint64_t wait_sort(const StepArguments<D>& arguments) override;
  void wait_batch(int steps, const StepArguments<D>& arguments) override;

 private:
  // Returns particles' places in the list of all blocks, u64, and fills `order`, u32, with 0, 1 ...
  IntrusivePtr<Buffer> wait_note_places(const StepArguments<D>& a, const IntrusivePtr<Buffer>& order);
  // Sorts once; returns how many blocks are own.
  uint64_t wait_sort_once(const StepArguments<D>& a);
  // Notes how many particles own blocks have.
  void wait_note_weights(uint64_t n_blocks, uint32_t n_groups);
  void wait_rebuild_grid(const StepArguments<D>& a);
  // Sends particles to their blocks' owners.
  void wait_migrate(const StepArguments<D>& a, IntrusivePtr<Buffer>& places);
  IntrusivePtr<Buffer> reserve(uint64_t n, size_t each) const;
  Device& device() const { return program_.device(); }

  Program& program_;
  BlockGrid<D>& grid_;
  ParticleStore<D>& particles_;
  const Cluster cluster_;
  Slot<StepArguments<D>> arguments_;
  std::vector<CellWeight> weights_;  // of own blocks, since the last sorting
  bool weights_are_unknown_ = true;  // there was none
};

}  // namespace coppice::mpm
