// The handle that changes the lists of a dynamic node.
//
// Device-clean. `coord` names the list: a coordinate of the dynamic node's parent, in the tree's axes without
// the dynamic node's own. Reading is Read's: `field.at(from, coord, index)`, `field.length(from, coord)`.
#pragma once
#include "sparse/device/handles.h"

namespace coppice {

using device::kNoIndex;

// Items may append to, write, clear and read one list in one launch: what results is what some order of these
// calls gives (docs/sparse.md, "Lists").
template <class T>
struct Append : Handle<T, Role::kAppend> {
  using Handle<T, Role::kAppend>::Handle;
  // Returns the element's index, unique among the appends between two clears of the list; kNoIndex where the
  // list or memory is full (an error of the launch). Cost: an atomic add per warp and list. On a CPU, in a
  // kernel over items that does not use what it returns and neither reads, writes by index nor empties lists,
  // it is one for up to 64 of a thread's appends to one list behind each other.
  template <class From, int D>
  COPPICE_ACTIVATES COPPICE_INLINE uint32_t append(const From& from, const int32_t (&coord)[D],
                                                   const T& value) const {
    if (!this->may(from, effect::kAppends | effect::kActivates, device::kAnyReach)) return kNoIndex;
    return device::append(device::launch_of(from), this->id.field, this->coord_of(from, coord), value,
                          device::appends_of(from));
  }
  // A list that is shorter becomes index + 1 long; what lies between is zero.
  template <class From, int D>
  COPPICE_ACTIVATES COPPICE_INLINE void set(const From& from, const int32_t (&coord)[D], int64_t index,
                                            const T& value) const {
    if (!this->may(from, effect::kAppends | effect::kActivates, device::kAnyReach)) return;
    device::set_element(device::launch_of(from), this->id.field, this->coord_of(from, coord), index, value);
  }
  template <class From, int D>
  COPPICE_ACCESS COPPICE_INLINE T at(const From& from, const int32_t (&coord)[D], int64_t index) const {
    if (!this->may(from, effect::kReads, device::kAnyReach)) return T{};
    return device::element<T>(device::launch_of(from), this->id.field, this->coord_of(from, coord, false),
                              index);
  }
  // Returns the length. While others append, what is counted can be read, though it may be zero still.
  template <class From, int D>
  COPPICE_ACCESS COPPICE_INLINE uint32_t length(const From& from, const int32_t (&coord)[D]) const {
    if (!this->may(from, effect::kReads, device::kAnyReach)) return 0;
    return device::length_at(device::launch_of(from), this->id.field, this->coord_of(from, coord, false));
  }
  // Empties the list.
  template <class From, int D>
  COPPICE_DEACTIVATES COPPICE_INLINE void deactivate(const From& from, const int32_t (&coord)[D]) const {
    if (!this->may_do(from, effect::kDeactivates)) return;
    const Coord c = this->coord_of(from, coord);
    device::check_domain(device::launch_of(from), this->id.field, c);
    device::deactivate(device::launch_of(from), this->layout(), this->binding().tree, c);
  }
};

}  // namespace coppice
