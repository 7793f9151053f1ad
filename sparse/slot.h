// Arguments of launches that may be others from run to run: the step of time, a force, a frame's number.
//
//   Slot<float> dt(device, 0.1f);
//   Function step = trace(device, [&] { program.launch(diffuse, over(leaf), Heat{now, next}, dt); });
//   step.run();
//   dt.set(0.05f);                    // in the stream's order: for what is given from now on
//   step.run();
//
// A Slot<T> is given where the kernel takes a T by value; the kernel's code stays the same. Its value lies in
// device memory, and a launch reads it there when it runs, once for each range of items that a thread takes;
// any other argument is part of the launch as it was when it was given, or traced. So a launch that is given
// again and again (a BoundLaunch, a Function) uses what the slot holds when its turn comes. Copies share the
// value. Beside its value a slot takes 8 of the launch's 384 bytes of plain arguments. Thread-safe.
#pragma once
#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#include "gpu/device.h"
#include "sparse/device/handle_base.h"

namespace coppice {

// Holds a slot's value: in device memory for kernels, and for the host as its stream has it.
class SlotStorage final : public RefCounted {
 public:
  SlotStorage(IntrusivePtr<Device> device, std::span<const std::byte> value);
  AsyncValueRef<Chain> set(std::span<const std::byte> value);
  Device& device() const { return *device_; }
  const IntrusivePtr<Buffer>& buffer() const { return buffer_; }
  // Returns the value that was set last before the stream's turn.
  std::span<const std::byte> value(InStream&) const { return value_; }

 private:
  IntrusivePtr<Device> device_;
  IntrusivePtr<Buffer> buffer_;
  std::vector<std::byte> value_;  // of the stream's thread
};

template <class T>
class Slot {
  static_assert(device::is_value<T>, "a slot's value is copied byte by byte");

 public:
  using Value = T;
  // Errors: kInvalidArgument without a device, kOutOfMemory.
  explicit Slot(IntrusivePtr<Device> device, const T& value = T{})
      : storage_(make_intrusive<SlotStorage>(std::move(device), bytes_of(value))) {}

  // Sets it in the order of its device's default stream; waits for nothing. Errors: kInvalidArgument while
  // a function is traced on this thread, or when it was moved from.
  AsyncValueRef<Chain> set(const T& value) const { return storage().set(bytes_of(value)); }
  SlotStorage& storage() const;
  const IntrusivePtr<SlotStorage>& shared() const { return storage_; }

 private:
  static std::span<const std::byte> bytes_of(const T& value) { return std::as_bytes(std::span(&value, 1)); }

  IntrusivePtr<SlotStorage> storage_;
};

namespace detail {
// Errors: kInvalidArgument where it is null.
SlotStorage& check_slot(SlotStorage* storage);
template <class T>
inline constexpr bool is_slot = false;
template <class T>
inline constexpr bool is_slot<Slot<T>> = true;
}  // namespace detail

template <class T>
SlotStorage& Slot<T>::storage() const {
  return detail::check_slot(storage_.get());
}

}  // namespace coppice
