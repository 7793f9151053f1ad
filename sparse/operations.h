// Device work on trees and buffers as operations of the executor: what it queues on a stream returns at once.
//
//   Registry registry;
//   add_builtin_operations(registry), add_sparse_operations(registry);
//   Bindings bindings;
//   bindings.add("diffuse", program.bind(diffuse, over(leaf), Heat{now, next}, 0.1f));
//
//   %e1 = sparse.launch $diffuse (%e0)
//
// Types: launch (BoundLaunch), tree (Tree), node (Node), buffer (IntrusivePtr<Buffer>), slot (Slot<int32_t>),
// function (Function); all are bound by name. Offsets, sizes and numbers of items are integers of the text.
// Every operation takes the events that it comes behind, one at least. These are device work and may be in
// functions that are traced (sparse/function.h):
//
//   sparse.launch $launch (event...) -> event
//   sparse.deactivate_all $node (event...) -> event      every cell of the node (of a root: of the tree); memory stays
//   sparse.repeat 32, @body (event...) -> event          the body, (event) -> event, so many times
//   sparse.repeat_by $slot, @body (event...) -> event    as many times as the slot says at the loop's turn
//   sparse.while $buffer, 0, @body (event...) -> event   while the u32 at that offset in bytes is not 0
//   sparse.branch $buffer, 0, @then, @else (event...) -> event
//   sparse.run $function (event...) -> event
//   buffer.copy $to, to_offset, $from, from_offset, bytes (event...) -> event
//   buffer.fill 255, $buffer, offset, bytes (event...) -> event
//   primitives.sort_by_key.T $keys, $values, n (event...) -> event            T = u32, u64; values are u32
//   primitives.exclusive_scan $in, $out, n (event...) -> event                u32
//   primitives.sum_to.T $in, n, $out, offset (event...) -> event              T = f32, f64, u32, u64
//   primitives.histogram $keys, n, $counts, n_bins (event...) -> event
//   primitives.bin_starts $keys, n, $starts, n_bins (event...) -> event
//
// And these give the host a value:
//
//   sparse.collect $tree (event...) -> event             recycles cells that are no longer active; launches do it, too
//   sparse.update_list true, $node (event...) -> event   the list that loops over a node run through, and (true) its
//                                                        neighbour table; launches do it when it is out of date
//   sparse.count_blocks $node (event...) -> (event, i64) containers that a loop over the node visits
//   primitives.scan_and_sum $in, $out, n (event...) -> (event, i64)           u32; the sum of all
//   primitives.sum.T, max.T $in, n (event...) -> (event, result)              T = f32, f64, u32, u64; results are f64
//                                                        (max.f32: f32) or i64, those above 2^63 - 1 negative
//   primitives.select_if_flag $flags, $indices, n (event...) -> (event, i64)  how many
//   primitives.run_length_encode $keys, $unique, $counts, n (event...) -> (event, i64)
//
// All run on the request's stream, in its order: an event is available when the device has come there, and an
// error when this or an earlier operation of the stream failed. Errors before that, kInvalidArgument: the
// request has no stream, or a launch, tree or node belongs to another one, or what is copied or filled to
// another device. At the operation's turn: kInvalidArgument where a primitive's buffer is of another device,
// kOutOfRange where a buffer is too small.
//
// In sparse/, only this header, those of functions (function.h and what it is made of) and their sources
// include executor/.
#pragma once
#include "executor/registry.h"
#include "sparse/program.h"
#include "sparse/tree.h"

namespace coppice {

// A second call for one registry is a failed check.
void add_sparse_operations(executor::Registry& registry);

// Returns the registry that functions of device work are loaded with: the built-in operations and these.
const executor::Registry& function_registry();

}  // namespace coppice
