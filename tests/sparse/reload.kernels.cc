// Kernels that kernel_reload_test.cc changes in a copy of this file while they are used.
#include "tests/sparse/reload.h"

#include "coppice/kernel.h"

using namespace coppice;

struct ReloadScale {
  int factor;
};

COPPICE_KERNEL(fill, Update<int> x, Cell2 cell, ReloadScale scale)
{ x[cell] = 2 * scale.factor + kReloadStep; }
COPPICE_KERNEL(weigh, Update<int> x, Cell2 cell, const ReloadWeights* weights)
{ x[cell] = weights->first + 10 * weights->second; }
// Another version changes what it does to the tree, too.
COPPICE_KERNEL(touch, Grow<int> x, Item i)
{ (void)x.is_active(i, {static_cast<int>(i.index), 0}); }
COPPICE_KERNEL(pair, Write<ReloadPair> x, Cell2 cell)
{ x[cell] = {1, 2}; }
COPPICE_KERNEL(seal, Write<int> x, Cell2 cell, const ReloadSealed* sealed)
{ x[cell] = sealed != nullptr; }
