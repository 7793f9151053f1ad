// Addresses of the emulated GPU's memory: those of the host's memory behind it with a bit set that no valid
// address has, so that whatever uses them on the host faults, at any time and without any page being
// protected. What stands in for the hardware (symbols.cc, copies, primitives) takes the bit away.
#pragma once
#include <cstdint>

namespace coppice::simt {

// With bits 47 to 61 and 63 clear, as user space has them, an address that has bit 62 alone is not canonical.
inline constexpr uintptr_t kDeviceBit = uintptr_t{1} << 62;

inline bool is_device_address(const void* address) {
  return (reinterpret_cast<uintptr_t>(address) & kDeviceBit) != 0;
}
template <class T>
T* device_address(T* host) {
  return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(host) | kDeviceBit);
}
// Returns the address in the host's memory: itself where it is the host's.
template <class T>
T* host_address(T* address) {
  return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(address) & ~kDeviceBit);
}

}  // namespace coppice::simt
