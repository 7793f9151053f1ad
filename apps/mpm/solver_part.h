// One rank's part of a solver, as it is seen in the course of a call that all ranks make together
// (Solver::wait_together()). Without ranks the part is the whole.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "apps/mpm/solver_output.h"
#include "core/math.h"
#include "sparse/ranks/cluster.h"

namespace coppice::mpm {

// All ranks call what begins with wait_ together, and in the same order. Errors: those of the launches
// before.
class SolverPart {
 public:
  virtual ~SolverPart() = default;
  virtual const std::optional<Cluster>& cluster() const = 0;  // nothing without ranks
  virtual int frame() const = 0;
  virtual double time_s() const = 0;
  virtual uint64_t num_particles() const = 0;  // of all ranks

  // Shares out all particles in the order of their ids: rank r gets rows [ends[r - 1], ends[r]), and rank 0
  // those from 0 on. The last end is num_particles(). Ranks send what they have to where it goes in pieces,
  // so that none has more than its rows.
  virtual ParticleSnapshot wait_rows(const SnapshotParts& parts, std::span<const uint64_t> ends) = 0;
  // Returns the blocks that are this rank's own.
  virtual DensityBlocks wait_own_blocks(const GridParts& parts) = 0;
  // Returns a function that tells which rank owns the block of a node, whether or not there is one.
  virtual std::function<int(const Vec3i& node)> wait_owners() = 0;
};

}  // namespace coppice::mpm
