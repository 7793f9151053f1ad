// Bulk append: many elements at once, to the lists that their coordinates name.
//
//     append(particles, cells, values, n);      // i32[n][3] and Particle[n], in device memory
//
// Elements arrive in the order in which they are given, each list getting whole chunks at once, and what
// lies above the lists is activated. It happens in the order of the tree's stream, like a launch: what is
// given must stay as it is until then. Other fields of the node are zero in the new elements. Cost: four
// passes over the elements where there are no more lists than about twice as many, a sort of keys of 64
// bits where there may be more; scratch of up to 20 bytes for each.
//
// Errors: kInvalidArgument at once when the field is on no dynamic node. The stream's errors: kOutOfRange
// when a coordinate is outside the domain or a list would be longer than it may be, which is named;
// kOutOfMemory. Then nothing of the call is appended (of more than 2^28 elements: nothing from the 2^28 on
// among which that is).
#pragma once
#include <cstdint>
#include <type_traits>

#include "sparse/tree.h"

namespace coppice {

namespace detail {

AsyncValueRef<Chain> append_bytes(const TreeRef& tree, const FieldId& field, const int32_t* coords,
                                  const void* values, uint64_t n);

}  // namespace detail

// `coords` are i32[n][3], missing leading axes 0 as for Node::activate; both are addresses of the device.
template <class T>
AsyncValueRef<Chain> append(const Field<T>& field, const int32_t* coords,
                            const std::type_identity_t<T>* values, uint64_t n) {
  return detail::append_bytes(field.tree, field.id, coords, values, n);
}
}  // namespace coppice
