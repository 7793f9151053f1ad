// Solves Poisson's equation on the active cells of a tree, without a matrix.
//
//   Tree tree(device);
//   Node leaf = tree.root().pointer({16, 16, 16}).bitmasked({8, 8, 8});
//   PoissonSolver poisson(program, leaf, 1.0 / 129);      // before the tree is used
//   ... activate cells, write poisson.right_side() ...
//   const PoissonResult result = poisson.wait_solve(1e-6);
//   ... read poisson.solution() ...
//
// The equation is -laplace(u) = f, with the seven-point stencil of second order in cells of side h, and u
// = 0 at the centres of cells that are not active. Other values there are added to f: value / h^2 for each
// face between such a cell and an active one. The method is conjugate gradients in double precision,
// preconditioned by one V-cycle of multigrid in single precision: damped Jacobi, two sweeps down and two
// up, trilinear interpolation, on trees that are half as fine from level to level. (Beta is Polak and
// Ribiere's, since that preconditioner is not symmetric: Golub and Ye, SIAM J. Sci. Comput. 21, 1999.)
//
// A solve is one traced function (sparse/function.h), whose loop the device ends: the host is told once.
// Squares of |f| h^2 must be doubles: of numbers from some 1e-150 to 1e150, or the result says that it has
// not converged. Results have the same bits from run to run, and whatever the number of threads is. Memory: 5
// double and 4 float values per cell, about 1/7 more for the levels, and what goes between them as
// temporaries.
#pragma once
#include <cstdint>
#include <memory>

#include "sparse/function.h"
#include "sparse/program.h"
#include "sparse/tree.h"

namespace coppice {

struct PoissonResult {
  int iterations = 0;
  double residual = 0;     // |f + laplace(u)| / |f| of the solution; 0 where f is 0
  bool converged = false;  // the residual is at most the tolerance
};

// Thread-compatible. The program must live as long, and stay where it is.
class PoissonSolver {
 public:
  // Adds its fields to the leaf: "poisson.u", "poisson.f" and so on; those of a second solver on the tree, on
  // another leaf, are "poisson.2.u" and so on. Errors: kInvalidArgument for a node that is none of 8 x 8 x 8
  // cells, dense or bitmasked, of a tree with three axes, for a tree that is used already, and for a side
  // that is not above 0.
  PoissonSolver(Program& program, const Node& leaf, double h);
  ~PoissonSolver();
  PoissonSolver(const PoissonSolver&) = delete;
  PoissonSolver& operator=(const PoissonSolver&) = delete;

  const Field<double>& right_side() const;  // f; set before a solve, and not changed
  // u: where it starts from, unless its residual is larger than that of 0, and what it finds. It is 0 in
  // cells that are activated.
  const Field<double>& solution() const;

  // Blocks until it is solved, or `most_iterations` were made. What the cells are is looked at in each
  // call; when others are active than before, the levels are made again (some milliseconds, and what is
  // traced). Errors: kInvalidArgument for a tolerance that is negative or no number, or a negative number
  // of iterations; kOutOfMemory.
  PoissonResult wait_solve(double tolerance = 1e-6, int most_iterations = 200);

  int levels() const;  // of the last solve, the leaf's own included
  // Returns what a solve runs, for the cells as they were then; after the first one. Errors: kInvalidArgument
  // before.
  const Function& function() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace coppice
