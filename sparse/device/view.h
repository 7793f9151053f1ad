// A buffer's items as a kernel argument: a pointer that knows its length.
//
//     COPPICE_KERNEL(scale, View<float> values, Item i, float by) { values[i] *= by; }
//     program.launch(scale, range(n), *buffer, 2.0f);      // or View(buffer->as<float>(), n)
//
// Device-clean. With COPPICE_DEBUG=checks an index that is not in [0, size) is an error that names kernel,
// argument, index and size, provided the view is an argument of its own and no struct's member; without,
// it costs what a pointer costs.
#pragma once
#include "sparse/device/checks.h"

namespace coppice {

template <class T>
struct View {
  T* items = nullptr;
  int64_t size = 0;
  const LaunchBlock* launch = nullptr;  // the kernel's own, from where its arguments are read on
  uint32_t argument = 0;                // which of the kernel's arguments it is, from 1

  View() = default;
  View(T* first, int64_t n) : items(first), size(n) {}
  // Views all of a container (std::vector), or of a coppice::Buffer.
  template <class Container>
  requires requires(Container& c) { static_cast<T*>(c.data()), c.size(); }
  View(Container& c) : items(c.data()), size(static_cast<int64_t>(c.size())) {}
  template <class Buffer>
  requires requires(const Buffer& b) { b.template as<T>(), b.size_bytes(); }
  View(const Buffer& b) : items(b.template as<T>()), size(static_cast<int64_t>(b.size_bytes() / sizeof(T))) {}

  COPPICE_MEMORY COPPICE_INLINE T& operator[](int64_t i) const {
    if (device::debug_checks() && launch != nullptr && (i < 0 || i >= size)) {
      device::raise_status(launch, DeviceStatus::kOutOfView, 0, argument,
                           device::StatusPlace{{i, size, 0}, {0, 0, 0}});
      return device::refused(launch, items);
    }
    return items[i];
  }
};
template <class Container>
View(Container& c) -> View<std::remove_pointer_t<decltype(c.data())>>;

namespace device {

template <class T>
inline constexpr bool is_view = false;
template <class T>
inline constexpr bool is_view<View<T>> = true;

}  // namespace device

}  // namespace coppice
