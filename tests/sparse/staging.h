// A test's values as arguments of kernels: in device memory for the time of a launch, back on the host after
// it.
//
//     std::vector<int> coords{1, 2}, out(2);
//     int sum = 0;
//     run_on(program, read_and_add, range(2), x, coords, out, inout(sum));
//
// A vector is given by its name, one value or a C array by inout(); where a kernel takes a pointer or a
// View it gets the device's. Values are copied both ways; what is const only to the device. All other
// arguments are passed on as they are.
#pragma once
#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/error.h"
#include "gpu/host_access.h"
#include "sparse/program.h"

namespace coppice {

inline void finish(const AsyncValueRef<Chain>& done) {
  wait(done);
  if (done.is_error()) throw done.error();
}

template <class T>
struct InOut {
  T* first;
  size_t count;
};
template <class T>
InOut<T> inout(T& value) {
  return {&value, 1};
}
template <class T, size_t N>
InOut<T> inout(T (&values)[N]) {
  return {values, N};
}
template <class T>
InOut<T> inout(std::vector<T>& values) {
  return {values.data(), values.size()};
}
template <class T>
InOut<const T> inout(const std::vector<T>& values) {
  return {values.data(), values.size()};
}

inline uint32_t status_of(Device& device) {
  uint32_t status;
  device.wait_copy(&status, &device.context().status, sizeof status);
  return status;
}

namespace detail {

template <class T>
inline constexpr bool is_array_of = false;
template <class T, size_t N>
inline constexpr bool is_array_of<std::array<T, N>> = true;

// Stands for host values in a launch.
template <class T>
class StagedItems {
 public:
  StagedItems(Device& device, InOut<T> values)
      : device_(device), values_(values), buffer_(wait_device_copy(device, values.first, values.count)) {}

  T* data() const { return buffer_->template as<T>(); }
  size_t size() const { return values_.count; }
  template <class U>
  requires std::is_same_v<std::remove_const_t<U>, std::remove_const_t<T>>
  operator U*() const { return const_cast<U*>(data()); }
  // The items of arrays, one behind the other.
  template <class U>
  requires is_array_of<std::remove_const_t<T>> && std::is_same_v < std::remove_const_t<U>,
  typename T::value_type > operator U*() const { return const_cast<U*>(data()->data()); }
  operator void*() const { return const_cast<std::remove_const_t<T>*>(data()); }

  void wait_copy_back() const {
    if constexpr (!std::is_const_v<T>)
      if (values_.count > 0) device_.wait_copy(values_.first, buffer_->data(), values_.count * sizeof(T));
  }

 private:
  Device& device_;
  InOut<T> values_;
  IntrusivePtr<Buffer> buffer_;
};

template <class Argument>
struct PassedOn {
  const Argument& argument;
  void wait_copy_back() const {}
};

template <class Argument>
PassedOn<Argument> stage(Device&, const Argument& argument) {
  return {argument};
}
template <class T>
StagedItems<T> stage(Device& device, const InOut<T>& values) {
  return {device, values};
}
template <class T>
StagedItems<T> stage(Device& device, std::vector<T>& values) {
  return {device, inout(values)};
}
template <class T>
StagedItems<const T> stage(Device& device, const std::vector<T>& values) {
  return {device, inout(values)};
}

template <class T>
const StagedItems<T>& argument_of(const StagedItems<T>& staged) {
  return staged;
}
template <class Argument>
const Argument& argument_of(const PassedOn<Argument>& staged) {
  return staged.argument;
}

}  // namespace detail

// Launches, and waits until that is done, well or with an error.
template <class Kernel, class... Arguments>
AsyncValueRef<Chain> launch_and_wait(Program& program, const Kernel& kernel, const Loop& loop,
                                     Arguments&&... arguments) {
  return [&](const auto&... staged) {
    const AsyncValueRef<Chain> done = program.launch(kernel, loop, detail::argument_of(staged)...);
    wait(done);
    (staged.wait_copy_back(), ...);
    return done;
  }(detail::stage(program.device(), arguments)...);
}

template <class Kernel, class... Arguments>
void run_on(Program& program, const Kernel& kernel, const Loop& loop, Arguments&&... arguments) {
  finish(launch_and_wait(program, kernel, loop, std::forward<Arguments>(arguments)...));
}

}  // namespace coppice
