// Kernels of tests of appends whose indices nobody asks for, which threads of a CPU gather, and of some that
// are not gathered.
#include "coppice/kernel.h"

using namespace coppice;

// Item i appends `each` numbers, one behind the other, to lists from number i modulo `lists` on.
COPPICE_KERNEL(append_to_next1, Append<int> list, Item i, int lists, int each, int stride)
{
  for (int k = 0; k < each; ++k) {
    const int64_t number = i.index * each + k;
    list.append(i, {static_cast<int>((number / stride) % lists)}, static_cast<int>(number));
  }
}
COPPICE_KERNEL(append_and_keep_index1, Append<int> list, Item i, uint32_t* index)
{ index[i.index] = list.append(i, {0}, static_cast<int>(i.index)); }

struct FortyBytes {
  int64_t number;
  int32_t more[8];
};
COPPICE_KERNEL(append_forty_bytes1, Append<FortyBytes> list, Item i)
{
  FortyBytes value{i.index, {}};
  for (int k = 0; k < 8; ++k) value.more[k] = static_cast<int32_t>(i.index) + k;
  list.append(i, {0}, value);
}
COPPICE_KERNEL(count_wrong_forty_bytes1, Read<FortyBytes> list, Entry1 e, uint32_t* visits, uint32_t* wrong)
{
  const FortyBytes value = list[e];
  coppice_fetch_add_u32(visits + value.number, 1);
  for (int k = 0; k < 8; ++k)
    if (value.more[k] != value.number + k) coppice_fetch_add_u32(wrong, 1);
}
// The nodes above a list are active as soon as an item has appended to it.
COPPICE_KERNEL(append_and_count1, Append<int> list, Accumulate<int> count, Item i)
{
  const int at = static_cast<int>(i.index) / 4;
  list.append(i, {at}, 1);
  count.add(i, {at}, 1);
}
