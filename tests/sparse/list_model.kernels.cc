// Kernels of the model test of dynamic nodes: lists in two dimensions.
#include "coppice/kernel.h"

using namespace coppice;

// One operation: what, which list, and two numbers. An append's index is noted.
COPPICE_KERNEL(apply_list_batch2, Append<int> list, Topology inner, Item i, const int* operations,
               uint32_t* index)
{
  const int* o = operations + 5 * i.index;
  if (o[0] == 0)
    index[i.index] = list.append(i, {o[1], o[2]}, o[3]);
  else if (o[0] == 1)
    list.set(i, {o[1], o[2]}, o[3], o[4]);
  else if (o[0] == 2)
    list.deactivate(i, {o[1], o[2]});
  else
    inner.deactivate(i, {o[1], o[2]});
}
COPPICE_KERNEL(list_lengths2, Read<int> list, Topology node, Item i, int width, uint32_t* lengths,
               uint8_t* active)
{
  const int at[2] = {static_cast<int>(i.index) / width, static_cast<int>(i.index) % width};
  lengths[i.index] = list.length(i, at);
  active[i.index] = node.is_active(i, at);
}
// Elements by walks: three numbers name one.
COPPICE_KERNEL(read_elements2, Read<int> list, Item i, const int* places, int* values)
{
  const int* p = places + 3 * i.index;
  values[i.index] = list.at(i, {p[0], p[1]}, p[2]);
}
// Elements by a loop: each writes where its list's elements begin.
COPPICE_KERNEL(copy_entries2, Read<int> x, Entry2 e, int width, const uint32_t* first, int* values,
               uint32_t* visits)
{
  const uint32_t to = first[e.coord(0) * width + e.coord(1)] + e.index;
  values[to] = x[e];
  coppice_fetch_add_u32(visits + to, 1);
}
