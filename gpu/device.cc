// Devices by name, and what is the same for all (see device.h).
#include "gpu/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "gpu/buffer_ranges.h"
#include "gpu/cuda/cuda_device.h"
#include "gpu/host_access.h"
#include "gpu/messages.h"
#include "gpu/simt/environment.h"

namespace coppice {
namespace {

IntrusivePtr<Device> cuda_device() {
  try {
    return cuda::make_device(cuda::load_driver());
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnavailable) throw;
    const std::string_view who = error.message().starts_with("device cuda: ") ? "" : "device cuda: ";
    throw Error(ErrorCode::kUnavailable, fmt::format("{}{}; use the cpu device", who, error.message()));
  }
}

}  // namespace

// Nobody gets a cuda device unasked until all that a CPU can do has been seen to work on one.
IntrusivePtr<Device> Device::best() { return cpu(); }
IntrusivePtr<Device> Device::simt() { return simt(coppice::simt::Options{}); }
IntrusivePtr<Device> Device::named(std::string_view name) {
  if (name == "cpu") return cpu();
  if (name == "auto") return best();
  if (name == "simt") return simt(simt::options_from_environment());
  if (name == "cuda") return cuda_device();
  throw Error(ErrorCode::kUsage,
              fmt::format("device '{}' is not known; expected cpu, cuda, simt or auto", name));
}

IntrusivePtr<Buffer> Device::reserve(size_t reserved_bytes, size_t initial_bytes, Filling filling) {
  guard_.check("reserve memory of a device");
  // Nothing has so many addresses, and what is rounded up below stays a number.
  constexpr size_t kMostBytes = size_t{1} << 62;
  if (const size_t bytes = std::max(reserved_bytes, initial_bytes); bytes > kMostBytes)
    throw Error(ErrorCode::kOutOfMemory, fmt::format("device {}: cannot reserve {} bytes of memory; no "
                                                     "machine has more than {}",
                                                     name(), bytes, kMostBytes));
  return new_buffer(reserved_bytes, initial_bytes, filling);
}

IntrusivePtr<Stream> Device::create_stream() {
  guard_.check("create a stream of a device");
  return new_stream_beside();
}

void Device::set_message_handler(std::function<void(std::string_view)> handler) {
  if (MessageLog* log = message_log()) log->set_handler(std::move(handler));
}

void Device::set_seed(uint64_t seed) {
  default_stream().enqueue("set_seed",
                           [to = &context().random_seed, seed](InStream& s) { write_value(s, to, seed); });
}

}  // namespace coppice
