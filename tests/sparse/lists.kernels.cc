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
// While others append: every element that is counted must be in a chunk that is linked (or reading it would
// not stop at its own value or zero).
COPPICE_KERNEL(append_and_read, Append<int> list, Item i, uint32_t* wrong)
{
  list.append(i, {0}, static_cast<int>(i.index) + 1);
  const uint32_t n = list.length(i, {0});
  const int last = n == 0 ? -1 : list.at(i, {0}, n - 1);
  if (last < 0) coppice_fetch_add_u32(wrong, 1);
}

// ---- lists that are appended to and cleared in one launch

// Item i appends i + 1 to list i % lists and notes the index, or clears that list;
// `random` says which, one in `clears`.
COPPICE_KERNEL(append_or_clear, Append<int> list, Item i, int lists, uint32_t random, uint32_t clears,
               uint32_t* index)
{
  const int at = static_cast<int>(i.index) % lists, value = static_cast<int>(i.index) + 1;
  if (hash_u32(random, static_cast<uint32_t>(i.index), 0) % clears == 0)
    list.deactivate(i, {at});
  else
    index[i.index] = list.append(i, {at}, value);
}
// Every item's own clear comes before its own append, so the last append of all
// stays; and the other way round.
COPPICE_KERNEL(clear_then_append, Append<int> list, Item i, int lists)
{
  const int at = static_cast<int>(i.index) % lists;
  list.deactivate(i, {at});
  list.append(i, {at}, static_cast<int>(i.index) + 1);
}
COPPICE_KERNEL(append_then_clear, Append<int> list, Item i, int lists)
{
  const int at = static_cast<int>(i.index) % lists;
  list.append(i, {at}, static_cast<int>(i.index) + 1);
  list.deactivate(i, {at});
}
// While others append and clear: an element is a value of its own list, or zero; a length
// is one that the list may have.
COPPICE_KERNEL(read_while_others_clear, Append<int> list, Item i, int lists, uint32_t random, uint32_t* wrong)
{
  const int at = static_cast<int>(i.index) % lists;
  const uint32_t what = hash_u32(random, static_cast<uint32_t>(i.index), 0) % 4;
  if (what == 0)
    list.deactivate(i, {at});
  else
    list.append(i, {at}, static_cast<int>(i.index) + 1);
  const uint32_t length = list.length(i, {at});
  const int last = length == 0 ? 0 : list.at(i, {at}, length - 1);
  if (length > 1u << 20 || (last != 0 && (last - 1) % lists != at)) coppice_fetch_add_u32(wrong, 1);
}
// Each writes element `index` of its list, or clears the list.
COPPICE_KERNEL(set_or_clear, Append<int> list, Item i, int lists, uint32_t random, int length)
{
  const int at = static_cast<int>(i.index) % lists;
  const uint32_t what = hash_u32(random, static_cast<uint32_t>(i.index), 0);
  if (what % 8 == 0)
    list.deactivate(i, {at});
  else
    list.set(i, {at}, what / 8 % static_cast<uint32_t>(length), at + 1);
}
COPPICE_KERNEL(sum_entries, Read<int> x, Entry1 e, int* sum)
{ coppice_fetch_add_u32(reinterpret_cast<uint32_t*>(sum), static_cast<uint32_t>(x[e])); }
// An item's own append is counted, and is there, whatever others append.
COPPICE_KERNEL(append_and_find, Append<int> list, Item i, int lists, uint32_t* wrong)
{
  const int at = static_cast<int>(i.index) % lists, value = static_cast<int>(i.index) + 1;
  const uint32_t index = list.append(i, {at}, value);
  if (list.length(i, {at}) <= index || list.at(i, {at}, index) != value) coppice_fetch_add_u32(wrong, 1);
}
