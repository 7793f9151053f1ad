// In place of openvdb_stencil.cc where OpenVDB was not found.
#include "benchmarks/peers/openvdb_stencil.h"

namespace coppice::bench {

std::unique_ptr<OpenVdbStencil> make_openvdb_stencil(const Region&, std::string& reason) {
  reason = "OpenVDB absent: not found when this was built";
  return nullptr;
}

}  // namespace coppice::bench
