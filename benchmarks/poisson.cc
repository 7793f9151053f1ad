// The Poisson benchmark: a cube with noise as its source, to a relative residual of 1e-6, beside Eigen's and
// OpenVDB's conjugate gradients.
//
// Wall-clock seconds of a solve from zero. Ours leaves out what is done once for a set of cells (levels,
// tracing), Eigen's leaves out its matrix; OpenVDB makes its own in each solve. The floor: in each
// iteration, all arrays that the sweeps of the finest level and the steps of the conjugate gradients read
// and write, once, at the speed of a copy.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "benchmarks/benchmarks.h"
#include "benchmarks/measure.h"
#include "benchmarks/peers/poisson_solvers.h"
#include "core/error.h"
#include "poisson.kernels.h"
#include "sparse/function_memory.h"
#include "sparse/poisson/poisson_solver.h"
#include "sparse/read_back.h"

namespace coppice::bench {
namespace {

constexpr double kTolerance = 1e-6;
// The finest level has 3 sweeps and a residual (4 floats each), the first sweep (3), half of what goes
// between levels (5) and 17 doubles of the conjugate gradients.
constexpr double kBytesPerCell = 4 * (4 * 4 + 3 + 5) + 8 * 17;

void check(const AsyncValueRef<Chain>& done) {
  wait(done);
  if (done.is_error()) throw done.error();
}

class Ours {
 public:
  Ours(int32_t n, int threads)
      : n_(n),
        program_(Device::cpu(threads)),
        tree_(share(&program_.device())),
        leaf_(tree_.root().pointer({n / 8, n / 8, n / 8}).dense({8, 8, 8})),
        solver_(program_, leaf_, 1.0) {
    std::vector<std::array<int32_t, 3>> leaves;
    for (int32_t x = 0; x < n; x += 8) {
      for (int32_t y = 0; y < n; y += 8) {
        for (int32_t z = 0; z < n; z += 8) leaves.push_back({x, y, z});
      }
    }
    check(leaf_.activate(std::move(leaves)));
    check(program_.launch(set_poisson_source, over(leaf_), solver_.right_side()));
    const auto start = Clock::now();
    result_ = solver_.wait_solve(kTolerance);
    first_s_ = seconds_since(start);
  }
  double solve() {
    check(program_.launch(clear_poisson_solution, over(leaf_), solver_.solution()));
    const auto start = Clock::now();
    result_ = solver_.wait_solve(kTolerance);
    return seconds_since(start);
  }
  const PoissonResult& result() const { return result_; }
  double first_s() const { return first_s_; }
  FunctionMemory memory() const { return memory_of(solver_.function().loaded()); }
  std::vector<double> values() const { return wait_read(solver_.solution(), {0, 0, 0}, {n_, n_, n_}); }

 private:
  const int32_t n_;
  Program program_;
  Tree tree_;
  Node leaf_;
  PoissonSolver solver_;
  PoissonResult result_;
  double first_s_ = 0;
};

// Errors: kInternal when the two do not agree as well as their residuals let them.
void compare(const std::vector<double>& ours, const PoissonPeer& peer, int32_t n) {
  double difference = 0, square = 0;
  for (int32_t x = 0; x < n; ++x) {
    for (int32_t y = 0; y < n; ++y) {
      for (int32_t z = 0; z < n; ++z) {
        const double u = ours[(static_cast<size_t>(x) * static_cast<size_t>(n) + static_cast<size_t>(y)) *
                                  static_cast<size_t>(n) +
                              static_cast<size_t>(z)];
        difference += std::pow(u - peer.value(x, y, z), 2), square += u * u;
      }
    }
  }
  if (!(std::sqrt(difference / square) < 1e-3))
    throw Error(ErrorCode::kInternal, fmt::format("poisson: we and {} differ by {:.3g} of the solution",
                                                  peer.name(), std::sqrt(difference / square)));
}

void add_row(Report& report, const std::string& name, int32_t n, int threads, PoissonPeer* peer,
             const std::string& absent) {
  Ours ours(n, threads);
  const int rounds = report.options().tiny ? 1 : report.options().quick ? 3 : 5;
  std::vector<double> own, others;
  int iterations = 0;
  for (int k = 0; k < rounds; ++k) {
    own.push_back(ours.solve());
    if (peer == nullptr) continue;
    const auto start = Clock::now();
    iterations = peer->solve(kTolerance);
    others.push_back(seconds_since(start));
  }
  if (peer != nullptr) compare(ours.values(), *peer, n);
  Row row{.name = name, .ours = median(own), .unit = "s", .peer_name = absent};
  if (peer != nullptr) row.peer = median(others), row.peer_name = peer->name();
  row.target = ratio_at_most(1.0 / 15);
  const double cells = std::pow(static_cast<double>(n), 3);
  const auto bytes = static_cast<size_t>(cells * 8);
  row.floor = ours.result().iterations * kBytesPerCell * cells /
              copy_bytes_per_s(threads, std::max(bytes, kBeyondCaches));
  const FunctionMemory memory = ours.memory();
  row.detail = fmt::format(
      "{}^3 cells, {} {}, {} iterations{}; levels and tracing {:.2f} s more at first; temporaries "
      "{:.2f} MB in {:.2f}, at least {:.2f}",
      n, threads, threads == 1 ? "thread" : "threads", ours.result().iterations,
      peer == nullptr ? "" : fmt::format(", the peer {}", iterations), ours.first_s() - row.ours,
      static_cast<double>(memory.naive_bytes()) * 1e-6, static_cast<double>(memory.plan.bytes) * 1e-6,
      static_cast<double>(memory.least_bytes) * 1e-6);
  report.add(std::move(row));
}

}  // namespace

void run_poisson(Report& report) {
  const int32_t n = report.options().tiny ? 16 : report.options().quick ? 64 : 128;
  report.begin(fmt::format("poisson, {}^3 cells", n));
  const auto eigen = make_eigen_poisson(n);
  add_row(report, "poisson/eigen", n, 1, eigen.get(), "");
  for (const int threads : {1, 2}) {
    std::string absent;
    const auto openvdb = make_openvdb_poisson(n, threads, absent);
    add_row(report, threads == 1 ? "poisson/openvdb" : "poisson/openvdb_threads", n, threads, openvdb.get(),
            absent);
  }
}

}  // namespace coppice::bench
