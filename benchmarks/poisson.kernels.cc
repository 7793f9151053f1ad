// The right side of the Poisson benchmark.
#include "benchmarks/poisson_case.h"
#include "coppice/kernel.h"

using namespace coppice;

COPPICE_KERNEL(set_poisson_source, Write<double> f, Cell3 c)
{ f[c] = CoppicePoissonCase::source(c.coord(0), c.coord(1), c.coord(2)); }
COPPICE_KERNEL(clear_poisson_solution, Write<double> u, Cell3 c)
{ u[c] = 0; }
