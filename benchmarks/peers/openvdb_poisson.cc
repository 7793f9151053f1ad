// OpenVDB's Poisson solver (see poisson_solvers.h).
#include <openvdb/openvdb.h>
#include <openvdb/tools/PoissonSolver.h>
#include <tbb/global_control.h>

#include "benchmarks/peers/poisson_solvers.h"
#include "benchmarks/poisson_case.h"

namespace coppice::bench {
namespace {

using openvdb::DoubleTree;

class OpenVdbPoisson final : public PoissonPeer {
 public:
  OpenVdbPoisson(int32_t n, int threads) : threads_(threads), source_(0.0) {
    openvdb::initialize();
    for (int32_t x = 0; x < n; ++x) {
      for (int32_t y = 0; y < n; ++y) {
        for (int32_t z = 0; z < n; ++z) source_.setValue({x, y, z}, -CoppicePoissonCase::source(x, y, z));
      }
    }
  }
  std::string name() const override {
    return "openvdb::tools::poisson, " + std::to_string(threads_) + (threads_ == 1 ? " thread" : " threads");
  }
  int solve(double tolerance) override {
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism,
                                    static_cast<size_t>(threads_));
    openvdb::math::pcg::State state = openvdb::math::pcg::terminationDefaults<double>();
    state.iterations = 100000;
    state.relativeError = tolerance, state.absoluteError = 0;
    const bool is_compact = true;  // the other stencil reads neighbours that are two cells away
    solution_ = openvdb::tools::poisson::solve(source_, state, is_compact);
    return state.iterations;
  }
  double value(int32_t x, int32_t y, int32_t z) const override { return solution_->getValue({x, y, z}); }

 private:
  const int threads_;
  DoubleTree source_;
  DoubleTree::Ptr solution_;
};

}  // namespace

std::unique_ptr<PoissonPeer> make_openvdb_poisson(int32_t n, int threads, std::string&) {
  return std::make_unique<OpenVdbPoisson>(n, threads);
}

}  // namespace coppice::bench
