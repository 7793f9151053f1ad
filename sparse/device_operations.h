// The operations of functions that are device work: what each does when its turn comes, and what it uses. One
// table serves functions that are traced or loaded from text (sparse/function.h), operations that the
// executor runs (sparse/operations.h), and calls outside of both (sparse/buffer_operations.h).
//
// They take events and give one, so that the text says what orders them:
//   sparse.launch $kernel (event...) -> event
//   sparse.deactivate_all $node (event...) -> event
//   sparse.repeat 32, @body (event...) -> event
// sparse/operations.h lists all of them.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "executor/loader.h"
#include "sparse/ordering.h"
#include "sparse/segment.h"
#include "sparse/temporary_buffer.h"
#include "sparse/temporary_fields.h"

namespace coppice {

class Function;

using BufferRef = IntrusivePtr<Buffer>;
using CountSlot = Slot<int32_t>;

// Returns the buffer. Errors: kInvalidArgument where there is none.
const Buffer& existing(const BufferRef& buffer);
// Errors: kOutOfRange where the buffer has no room for n items, kInvalidArgument where it is a temporary of a
// function that was not traced to its end.
void check_items(std::string_view operation, const Buffer& buffer, int64_t n, size_t item_bytes);
// Returns the buffer's first n items. Its size is known at the operation's turn only, since operations before
// it may let it grow. Errors: as above.
template <class T>
T* items(std::string_view operation, const BufferRef& buffer, int64_t n) {
  check_items(operation, existing(buffer), n, sizeof(T));
  return place_as<T>(*buffer);
}

// Holds an operation, ready to be a part of a segment.
struct DeviceWork {
  Segment::Part part;
  ResourceUses uses;
  TemporaryFieldUses temporaries;
};

// These make an operation of its attributes. Errors: kInvalidArgument, kOutOfRange.
DeviceWork launch_work(const BoundLaunch& launch);
DeviceWork deactivate_all_work(const Node& node);
DeviceWork copy_work(const BufferRef& to, int64_t to_offset, const BufferRef& from, int64_t from_offset,
                     int64_t bytes);
DeviceWork fill_work(int32_t byte, const BufferRef& buffer, int64_t offset, int64_t bytes);
DeviceWork sort_u32_work(const BufferRef& keys, const BufferRef& values, int64_t n);
DeviceWork sort_u64_work(const BufferRef& keys, const BufferRef& values, int64_t n);
DeviceWork scan_work(const BufferRef& in, const BufferRef& out, int64_t n);
template <class T>
DeviceWork sum_work(const BufferRef& in, int64_t n, const BufferRef& out, int64_t out_offset);
DeviceWork histogram_work(const BufferRef& keys, int64_t n, const BufferRef& counts, int64_t n_bins);
DeviceWork bin_starts_work(const BufferRef& keys, int64_t n, const BufferRef& starts, int64_t n_bins);
DeviceWork repeat_work(int64_t times, const executor::LoadedFunction& body);
DeviceWork repeat_by_work(const CountSlot& times, const executor::LoadedFunction& body);
DeviceWork while_work(const BufferRef& flag, int64_t offset, const executor::LoadedFunction& body);
DeviceWork branch_work(const BufferRef& flag, int64_t offset, const executor::LoadedFunction& then,
                       const executor::LoadedFunction& otherwise);

DeviceWork run_work(const Function& function);

// Calls visit(name, make) for each of them.
template <class Visit>
void for_each_device_operation(Visit&& visit) {
  visit("sparse.launch", &launch_work);
  visit("sparse.deactivate_all", &deactivate_all_work);
  visit("sparse.repeat", &repeat_work);
  visit("sparse.repeat_by", &repeat_by_work);
  visit("sparse.while", &while_work);
  visit("sparse.branch", &branch_work);
  visit("sparse.run", &run_work);
  visit("buffer.copy", &copy_work);
  visit("buffer.fill", &fill_work);
  visit("primitives.sort_by_key.u32", &sort_u32_work);
  visit("primitives.sort_by_key.u64", &sort_u64_work);
  visit("primitives.exclusive_scan", &scan_work);
  visit("primitives.sum_to.f32", &sum_work<float>);
  visit("primitives.sum_to.f64", &sum_work<double>);
  visit("primitives.sum_to.u32", &sum_work<uint32_t>);
  visit("primitives.sum_to.u64", &sum_work<uint64_t>);
  visit("primitives.histogram", &histogram_work);
  visit("primitives.bin_starts", &bin_starts_work);
}
bool is_device_operation(std::string_view name);

// A function as device work.
struct DeviceFunction {
  IntrusivePtr<Segment> segment;
  ResourceUses uses;  // of all of it
  TemporaryFieldUses temporaries;
};
// Makes one of a function that takes an event, gives one, and has operations on the device's stream only;
// they run in the order of its text, as far as that is one of its events. Errors: kInvalidArgument with the
// place of what it cannot be made of: another operation, what belongs to another device than the one that it
// is made for, or to two (null: to two), null buffers, operations of which one changes what the other uses,
// and which no event orders, or which the function's own event does not follow, one that needs a temporary
// field whose bytes another one has stored to; kOutOfRange, so, for a flag beyond the end of its buffer.
DeviceFunction device_function(const executor::LoadedFunction& function, Device* made_for = nullptr);
// Returns what each operation comes behind, by its events; all by their places in run_order().
Predecessors events_before(const executor::LoadedFunction& function, const std::vector<uint32_t>& order);
// Returns which of its operations, in that order, are recorded and replayed as one, where the device records.
// Errors: as above, but for the order.
std::vector<Segment::Range> replayed_as_one(const executor::LoadedFunction& function);
// Returns what each of its operations uses; nothing of those that only join events. Errors: as above, but for
// the order.
std::vector<ResourceUses> uses_of_operations(const executor::LoadedFunction& function);

}  // namespace coppice
