// Kernels of the topology tools' tests: coordinates as triples, leading ones 0.
#include "coppice/kernel.h"

using namespace coppice;

COPPICE_KERNEL(set_triples, Grow<int> x, Item i, const int* coords, const int* values)
{
  const int* c = coords + 3 * i.index;
  x.set(device::Padded(i), {c[0], c[1], c[2]}, values[i.index]);
}
COPPICE_KERNEL(set_triples_float, Grow<float> x, Item i, const int* coords, const float* values)
{
  const int* c = coords + 3 * i.index;
  x.set(device::Padded(i), {c[0], c[1], c[2]}, values[i.index]);
}
COPPICE_KERNEL(probe_triples, Topology node, Item i, const int* coords, unsigned* active)
{
  const int* c = coords + 3 * i.index;
  active[i.index] = node.is_active(device::Padded(i), {c[0], c[1], c[2]});
}
