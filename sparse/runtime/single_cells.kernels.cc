// The sparse runtime's own kernels: single cells by coordinate, for the host.
#include "coppice/kernel.h"

using namespace coppice;
using namespace coppice::device;

COPPICE_KERNEL(deactivate_coords, Topology node, Item i, const int32_t* coords)
{
  const int32_t* c = coords + 3 * i.index;
  node.deactivate(Padded(i), {c[0], c[1], c[2]});
}
COPPICE_KERNEL(test_coords, Topology node, Item i, const int32_t* coords, uint32_t* active)
{
  const int32_t* c = coords + 3 * i.index;
  active[i.index] = node.is_active(Padded(i), {c[0], c[1], c[2]});
}
