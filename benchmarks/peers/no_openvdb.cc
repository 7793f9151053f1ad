// In place of openvdb_stencil.cc and openvdb_poisson.cc where OpenVDB was not found.
#include "benchmarks/peers/openvdb_stencil.h"
#include "benchmarks/peers/poisson_solvers.h"

namespace coppice::bench {

std::unique_ptr<OpenVdbStencil> make_openvdb_stencil(const Region&, std::string& reason) {
  reason = "OpenVDB absent: not found when this was built";
  return nullptr;
}
std::unique_ptr<PoissonPeer> make_openvdb_poisson(int32_t, int, std::string& reason) {
  reason = "OpenVDB absent: not found when this was built";
  return nullptr;
}

}  // namespace coppice::bench
