// Kernels of the conformance tests of dynamic nodes, beside those of lists.kernels.cc.
#include "coppice/kernel.h"
#include "core/math.h"

using namespace coppice;

// Item i appends `each` numbers to list i of a tree of one dimension.
COPPICE_KERNEL(append_each1, Append<int> list, Item i, int each)
{
  for (int k = 0; k < each; ++k) list.append(i, {static_cast<int>(i.index)}, k);
}
COPPICE_KERNEL(lengths1, Read<int> list, Item i, uint32_t* lengths)
{ lengths[i.index] = list.length(i, {static_cast<int>(i.index)}); }
COPPICE_KERNEL(lengths2, Read<int> list, Item i, int n, uint32_t* lengths)
{ lengths[i.index] = list.length(i, {static_cast<int>(i.index) / n, static_cast<int>(i.index) % n}); }
COPPICE_KERNEL(clear_list2, Append<int> list, Item i, int n)
{ list.deactivate(i, {static_cast<int>(i.index) / n, static_cast<int>(i.index) % n}); }
COPPICE_KERNEL(clear_by_topology1, Topology list, Item i, const int* at)
{ list.deactivate(i, {at[i.index]}); }

// The numbers of particles on closed orbits of n steps, in the lists of the cells that they are in.
COPPICE_KERNEL(enter_lists2, Append<int> particles, Item i, int step, int n)
{
  const auto at = [&](int speed) {
    return static_cast<int>((i.index * (37 + speed) + int64_t{step} * speed) % n);
  };
  particles.append(i, {at(3), at(5)}, static_cast<int>(i.index));
}
COPPICE_KERNEL(mark_entries2, Read<int> x, Entry2 e, uint32_t* marks)
{ coppice_fetch_add_u32(marks + x[e], 1); }

// For each element: how often it is visited, in which list of 64 elements at most.
COPPICE_KERNEL(mark_places1, Read<int> x, Entry1 e, uint32_t* visits, uint32_t* wrong)
{
  coppice_fetch_add_u32(visits + 64 * e.coord(0) + e.index, 1);
  if (x[e] != static_cast<int>(e.index)) coppice_fetch_add_u32(wrong, 1);
}

COPPICE_KERNEL(activate_each1, Grow<int> x, Item i, int n)
{ x.activate(i, {static_cast<int>(i.index) % n}); }

// Counts cells that cannot be found, or whose headers say something else.
COPPICE_KERNEL(check_headers1, Read<int> x, Item i, int n, uint32_t* wrong)
{
  const device::FieldBinding& f = coppice_fields[device::HandleAccess::id_of(x).field];
  const device::NodeLayout& node = coppice_nodes[f.node];
  for (int k = 0; k < n; ++k) {
    const device::CellRef p = device::find(node, device::tree_state(i.launch, f.tree), {0, 0, k});
    const auto* header =
        reinterpret_cast<const device::CellHeader*>(p.container - node.level[0].child_offset);
    if (!p.active || header->coord[2] != k || header->state != device::CellState::kLive)
      coppice_fetch_add_u32(wrong, 1);
  }
}

// A kernel that does not append leaves a list as long as it is.
COPPICE_KERNEL(write_entries1, Write<int> x, Entry1 e, int value)
{ x[e] = value; }
COPPICE_KERNEL(add_to_entries1, Update<int> x, Entry1 e, int value)
{ x[e] += value; }
COPPICE_KERNEL(add_to_list1, Accumulate<int> x, Item i, int at)
{ x.add(i, {at}, 1); }
COPPICE_KERNEL(read_first1, Read<int> x, Item i, int at, int* out)
{ out[i.index] = x.at(i, {at}); }

// ---- elements of any type: item i appends the i-th of the values

struct Particle {
  float x[3];
  uint8_t kind;
  double mass;
};
struct Weight {
  uint8_t tag;
  double value;
};
struct alignas(32) Nested {
  Weight weights[2];
  float sum;
};
COPPICE_KERNEL(append_u8, Append<uint8_t> list, Item i, const uint8_t* values)
{ list.append(i, {0}, values[i.index]); }
COPPICE_KERNEL(append_u64, Append<uint64_t> list, Item i, const uint64_t* values)
{ list.append(i, {0}, values[i.index]); }
COPPICE_KERNEL(append_particle, Append<Particle> list, Item i, const Particle* values)
{ list.append(i, {0}, values[i.index]); }
COPPICE_KERNEL(append_matrix, Append<Mat3d> list, Item i, const Mat3d* values)
{ list.append(i, {0}, values[i.index]); }
COPPICE_KERNEL(append_nested, Append<Nested> list, Item i, const Nested* values)
{ list.append(i, {0}, values[i.index]); }
COPPICE_KERNEL(count_misaligned, Update<Nested> x, Update<uint64_t> y, Entry1 e, uint32_t* misaligned)
{
  const bool aligned = reinterpret_cast<uintptr_t>(&x[e]) % alignof(Nested) == 0 &&
                       reinterpret_cast<uintptr_t>(&y[e]) % alignof(uint64_t) == 0;
  if (!aligned) coppice_fetch_add_u32(misaligned, 1);
}
