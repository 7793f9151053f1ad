// Device work on trees and buffers as operations of the executor: what it queues on a stream returns at once.
//
//   Registry registry;
//   add_builtin_operations(registry), add_sparse_operations(registry);
//   auto value = make_available_async_value<BoundLaunch>(program.bind(diffuse, over(leaf), Heat{now, next}, 0.1f));
//
//   %e1 = sparse.launch (%e0, %diffuse)
//
// Types: launch (BoundLaunch), tree (Tree), node (Node), buffer (IntrusivePtr<Buffer>). Offsets,
// sizes and numbers of items are i64.
//
//   sparse.launch (event, launch) -> event
//   sparse.deactivate_all (event, node) -> event         every cell of the node (of a root: of the tree); memory stays
//   sparse.collect (event, tree) -> event                recycles cells that are no longer active; launches do it, too
//   sparse.update_list true (event, node) -> event       the list that loops over a node run through, and (true) its
//                                                        neighbour table; launches do it when it is out of date
//   sparse.count_blocks (event, node) -> (event, i64)    containers that a loop over the node visits
//   buffer.copy (event, to, to_offset, from, from_offset, bytes) -> event
//   buffer.fill 255 (event, buffer, offset, bytes) -> event
//   primitives.sort_by_key.T (event, keys, values, n) -> event               T = u32, u64; values are u32
//   primitives.exclusive_scan (event, in, out, n) -> (event, i64)            u32; the sum of all
//   primitives.sum.T, max.T (event, in, n) -> (event, result)                T = f32, f64, u32, u64; results are f64
//                                                        (max.f32: f32) or i64, those above 2^63 - 1 negative
//   primitives.select_if_flag (event, flags, indices, n) -> (event, i64)     how many
//   primitives.run_length_encode (event, keys, unique, counts, n) -> (event, i64)
//   primitives.bin_starts (event, keys, n, starts, n_bins) -> event
//
// All run on the request's stream, in its order: an event is available when the device has come there, and an
// error when this or an earlier operation of the stream failed. Errors before that, kInvalidArgument: the
// request has no stream, or a launch, tree or node belongs to another one, or what is copied or filled to
// another device. At the operation's turn: kInvalidArgument where a primitive's buffer is of another device,
// kOutOfRange where a buffer is too small.
//
// In sparse/, only this header and its source include executor/.
#pragma once
#include "executor/registry.h"
#include "sparse/program.h"
#include "sparse/tree.h"

namespace coppice {

// A second call for one registry is a failed check.
void add_sparse_operations(executor::Registry& registry);

}  // namespace coppice
