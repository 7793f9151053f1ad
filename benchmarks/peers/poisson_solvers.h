// Other libraries' conjugate gradients for the seven-point Poisson equation on a cube of n^3 cells of side
// 1, with zero around it (benchmarks/poisson_case.h has the right side).
#pragma once
#include <cstdint>
#include <memory>
#include <string>

namespace coppice::bench {

class PoissonPeer {
 public:
  virtual ~PoissonPeer() = default;
  virtual std::string name() const = 0;
  // From zero to that relative residual; returns the iterations.
  virtual int solve(double tolerance) = 0;
  virtual double value(int32_t x, int32_t y, int32_t z) const = 0;  // of what was found
};

// Eigen's ConjugateGradient with its own (diagonal) preconditioner, on one thread. The matrix is assembled
// here.
std::unique_ptr<PoissonPeer> make_eigen_poisson(int32_t n);
// openvdb::tools::poisson with its incomplete Cholesky preconditioner, on so many threads; its matrix is made
// in each solve. Null where OpenVDB was not found when this was built; `reason` says so.
std::unique_ptr<PoissonPeer> make_openvdb_poisson(int32_t n, int threads, std::string& reason);

}  // namespace coppice::bench
