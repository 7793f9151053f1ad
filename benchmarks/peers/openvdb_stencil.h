// The stencil over an OpenVDB grid, the way its own stencil and accessor classes do it, on one thread.
//
// In a source of its own, built where OpenVDB is found: its headers take half a minute to compile.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "benchmarks/lookup_case.h"

namespace coppice::bench {

class OpenVdbStencil {
 public:
  virtual ~OpenVdbStencil() = default;
  // Both compute all active voxels of the second grid from the first.
  virtual void run_stencil() = 0;   // openvdb::math::SevenPointStencil
  virtual void run_accessor() = 0;  // ValueAccessor, seven reads
  // Over the leaves' buffers, with the neighbouring leaves looked up once per leaf: active voxels one by one,
  // or whole rows of eight of which the active voxels are kept.
  virtual void run_raw_voxels() = 0;
  virtual void run_raw_rows() = 0;
  virtual size_t memory_bytes() const = 0;  // both grids, as OpenVDB counts
  // Calls back with every active voxel of the second grid.
  virtual void visit(
      const std::function<void(int32_t x, int32_t y, int32_t z, float value)>& visit) const = 0;
};

// Null where OpenVDB was not found when this was built; `reason` says so.
std::unique_ptr<OpenVdbStencil> make_openvdb_stencil(const Region& region, std::string& reason);

}  // namespace coppice::bench
