// Kernels of tests of dynamic nodes.
#include "coppice/kernel.h"

using namespace coppice;

// Item i appends i to list i % lists, and notes the index.
COPPICE_KERNEL(append_items, Append<int> list, Item i, int lists, uint32_t* index)
{ index[i] = list.append(i, {static_cast<int>(i.index % lists)}, static_cast<int>(i.index)); }
COPPICE_KERNEL(append_items2, Append<int> list, Item i, int n, int m)
{
  const auto k = static_cast<int>(i.index);
  list.append(i, {k % n, k / n % m}, k);
}
COPPICE_KERNEL(set_elements, Append<int> list, Item i, int at, const int* index, const int* value)
{ list.set(i, {at}, index[i], value[i]); }
COPPICE_KERNEL(clear_list_at, Append<int> list, Item i, const int* at)
{ list.deactivate(i, {at[i]}); }
COPPICE_KERNEL(read_list_at, Read<int> list, Item i, int at, uint32_t* length, int* value)
{
  length[i] = list.length(i, {at});
  value[i] = list.at(i, {at}, i);
}
// While others append: every element that is counted must be in a chunk that is linked (or reading it would not stop at
// its own value or zero).
COPPICE_KERNEL(append_and_read, Append<int> list, Item i, uint32_t* wrong)
{
  list.append(i, {0}, static_cast<int>(i.index) + 1);
  const uint32_t n = list.length(i, {0});
  const int last = n == 0 ? -1 : list.at(i, {0}, n - 1);
  if (last < 0) coppice_fetch_add_u32(wrong, 1);
}
