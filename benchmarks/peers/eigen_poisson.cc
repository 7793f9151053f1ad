// Eigen's conjugate gradients (see poisson_solvers.h).
#include <Eigen/IterativeLinearSolvers>
#include <Eigen/SparseCore>

#include "benchmarks/peers/poisson_solvers.h"
#include "benchmarks/poisson_case.h"

namespace coppice::bench {
namespace {

class EigenPoisson final : public PoissonPeer {
 public:
  explicit EigenPoisson(int32_t n) : n_(n), matrix_(rows(), rows()), source_(rows()) {
    matrix_.reserve(Eigen::VectorXi::Constant(rows(), 7));
    for (int32_t x = 0; x < n; ++x) {
      for (int32_t y = 0; y < n; ++y) {
        for (int32_t z = 0; z < n; ++z) add_row(x, y, z);
      }
    }
    matrix_.makeCompressed();
    solver_.setMaxIterations(100000);
    solver_.compute(matrix_);
  }
  std::string name() const override { return "Eigen's ConjugateGradient, 1 thread"; }
  int solve(double tolerance) override {
    solver_.setTolerance(tolerance);
    solution_ = solver_.solve(source_);
    return static_cast<int>(solver_.iterations());
  }
  double value(int32_t x, int32_t y, int32_t z) const override { return solution_[row(x, y, z)]; }

 private:
  using Matrix = Eigen::SparseMatrix<double, Eigen::RowMajor>;
  int rows() const { return n_ * n_ * n_; }
  int row(int32_t x, int32_t y, int32_t z) const { return (x * n_ + y) * n_ + z; }
  void add_row(int32_t x, int32_t y, int32_t z) {
    const int at = row(x, y, z);
    source_[at] = CoppicePoissonCase::source(x, y, z);
    if (x > 0) matrix_.insert(at, row(x - 1, y, z)) = -1;
    if (y > 0) matrix_.insert(at, row(x, y - 1, z)) = -1;
    if (z > 0) matrix_.insert(at, row(x, y, z - 1)) = -1;
    matrix_.insert(at, at) = 6;
    if (z + 1 < n_) matrix_.insert(at, row(x, y, z + 1)) = -1;
    if (y + 1 < n_) matrix_.insert(at, row(x, y + 1, z)) = -1;
    if (x + 1 < n_) matrix_.insert(at, row(x + 1, y, z)) = -1;
  }

  const int32_t n_;
  Matrix matrix_;
  Eigen::VectorXd source_, solution_;
  Eigen::ConjugateGradient<Matrix, Eigen::Lower | Eigen::Upper> solver_;
};

}  // namespace

std::unique_ptr<PoissonPeer> make_eigen_poisson(int32_t n) { return std::make_unique<EigenPoisson>(n); }

}  // namespace coppice::bench
