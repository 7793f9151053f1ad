// Values in device memory, read and written by the host inside a stream's order. Each is one copy, and each
// reading waits for a device whose memory is not the host's: read together what is needed together.
#pragma once
#include <type_traits>
#include <vector>

#include "gpu/device.h"

namespace coppice {

template <class T>
T wait_read(InStream& s, const T* from) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  s.wait_copy(&value, from, sizeof value);
  return value;
}
template <class T>
std::vector<T> wait_read(InStream& s, const T* from, size_t n) {
  std::vector<T> values(n);
  if (n > 0) s.wait_copy(values.data(), from, n * sizeof(T));
  return values;
}

// This waits for nothing: the value may be used for something else at once.
template <class T>
void write_value(InStream& s, T* to, const std::type_identity_t<T>& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  s.wait_copy(to, &value, sizeof value);
}

// Returns what a kernel has counted, `most` at most. A recording leaves it where it is.
inline Count wait_count(InStream& s, const uint64_t* counted, uint64_t most) {
  return s.is_recording() ? Count::on_device(counted, most) : Count::known(wait_read(s, counted));
}

// Returns a new buffer that holds a copy of host values; in no stream's order.
template <class T>
IntrusivePtr<Buffer> wait_device_copy(Device& device, const T* from, size_t n) {
  static_assert(std::is_trivially_destructible_v<T>,
                "copied byte by byte");  // Eigen's are not trivially copyable
  IntrusivePtr<Buffer> buffer = device.reserve(n * sizeof(T), n * sizeof(T));
  if (n > 0) device.wait_copy(buffer->data(), from, n * sizeof(T));
  return buffer;
}
template <class T>
IntrusivePtr<Buffer> wait_device_copy(Device& device, const std::vector<T>& from) {
  return wait_device_copy(device, from.data(), from.size());
}

}  // namespace coppice
