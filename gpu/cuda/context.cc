// One GPU (see context.h).
#include "gpu/cuda/context.h"

#include <fmt/format.h>

#include "gpu/cuda/primary_contexts.h"

namespace coppice::cuda {

ContextHandle Context::switch_to(ContextHandle handle) {
  ContextHandle current = nullptr;
  check(driver_.ctx_get_current(&current), "cuCtxGetCurrent");
  if (current != handle) check(driver_.ctx_set_current(handle), "cuCtxSetCurrent");
  return current;
}
void Context::make_current() { switch_to(handle_); }

Context::Scope::Scope(Context& context) : context_(context), outer_(context.switch_to(context.handle_)) {}
Context::Scope::~Scope() {
  if (outer_ != context_.handle_) context_.driver_.ctx_set_current(outer_);
}

Context::FreeingScope::FreeingScope(Context& context) : context_(context) {
  const Driver& driver = context.driver_;
  driver.ctx_get_current(&outer_);
  // It is called once more: a call may tell of what another one did wrong.
  if (driver.ctx_set_current(context.handle_) != Result::kSuccess) driver.ctx_set_current(context.handle_);
}
Context::FreeingScope::~FreeingScope() { context_.driver_.ctx_set_current(outer_); }

Context::Context(const Driver& driver, int ordinal) : driver_(driver), ordinal_(ordinal) {
  check(driver_.device_get(&device_, ordinal), "cuDeviceGet");
  read_properties();
  check(PrimaryContexts::of_process().acquire(driver_, device_, &handle_), "cuDevicePrimaryCtxRetain");
  try {
    const Scope scope(*this);
    allocation_.location = {LocationType::kDevice, ordinal_};
    check(driver_.mem_get_allocation_granularity(&properties_.granule_bytes, &allocation_,
                                                 Granularity::kMinimum),
          "cuMemGetAllocationGranularity");
    side_stream_ = create_stream();
  } catch (...) {
    PrimaryContexts::of_process().let_go(driver_, device_, is_lost());
    throw;
  }
}

// Nothing can be done about what fails here.
Context::~Context() {
  {
    const FreeingScope scope(*this);
    wait_destroy_stream(side_stream_);
  }
  PrimaryContexts::of_process().let_go(driver_, device_, is_lost());
}

int Context::attribute(DeviceAttribute which) {
  int value = 0;
  check(driver_.device_get_attribute(&value, which, device_), "cuDeviceGetAttribute");
  return value;
}

Clocks Context::clocks() const {
  const auto value_or_0 = [&](DeviceAttribute which) {
    int value = 0;
    return driver_.device_get_attribute(&value, which, device_) == Result::kSuccess ? value : 0;
  };
  return {value_or_0(DeviceAttribute::kClockRate), value_or_0(DeviceAttribute::kMemoryClockRate),
          value_or_0(DeviceAttribute::kGlobalMemoryBusWidth)};
}

void Context::read_properties() {
  char name[256] = "";
  check(driver_.device_get_name(name, sizeof name - 1, device_), "cuDeviceGetName");
  properties_.name = name;
  check(driver_.driver_get_version(&properties_.driver_version), "cuDriverGetVersion");
  check(driver_.device_total_mem(&properties_.memory_bytes, device_), "cuDeviceTotalMem");
  properties_.sm = 10 * attribute(DeviceAttribute::kComputeCapabilityMajor) +
                   attribute(DeviceAttribute::kComputeCapabilityMinor);
  properties_.multiprocessors = attribute(DeviceAttribute::kMultiprocessorCount);
  properties_.max_shared_bytes = attribute(DeviceAttribute::kMaxSharedMemoryPerBlockOptin);
  properties_.max_threads = attribute(DeviceAttribute::kMaxThreadsPerMultiprocessor);
  if (properties_.sm < 75)
    throw Error(ErrorCode::kUnavailable,
                fmt::format("device cuda: {} has compute capability {}.{}; 7.5 or newer is needed", name,
                            properties_.sm / 10, properties_.sm % 10));
  if (attribute(DeviceAttribute::kVirtualMemoryManagementSupported) == 0)
    throw Error(ErrorCode::kUnavailable,
                fmt::format("device cuda: the driver of {} has no virtual memory management", name));
}

Error Context::lost_or(Result result, Error error) {
  if (!is_fatal(result)) return error;
  const std::lock_guard lock(mutex_);
  if (!lost_) lost_ = std::move(error);
  is_lost_.store(true, std::memory_order_release);
  return *lost_;
}

void Context::check(Result result, std::string_view call) {
  if (result != Result::kSuccess) throw lost_or(result, driver_error(driver_, result, call));
}

void Context::throw_if_lost() const {
  if (!is_lost()) return;
  const std::lock_guard lock(mutex_);
  throw *lost_;
}

StreamHandle Context::create_stream() {
  const std::lock_guard lock(streams_mutex_);
  StreamHandle stream = nullptr;
  check(driver_.stream_create(&stream, kStreamNonBlocking), "cuStreamCreate");
  streams_[stream] = false;
  return stream;
}

void Context::wait_destroy_stream(StreamHandle stream) {
  const std::lock_guard lock(streams_mutex_);
  driver_.stream_synchronize(stream);
  driver_.stream_destroy(stream);
  streams_.erase(stream);
}

void Context::begin_capture(StreamHandle stream) {
  const std::lock_guard lock(streams_mutex_);
  check(driver_.stream_begin_capture(stream, CaptureMode::kRelaxed), "cuStreamBeginCapture");
  streams_.at(stream) = true;
}

Result Context::end_capture(StreamHandle stream, GraphHandle* graph) {
  const std::lock_guard lock(streams_mutex_);
  streams_.at(stream) = false;
  return driver_.stream_end_capture(stream, graph);
}

// The lock keeps a stream from being captured while it is waited for.
Result Context::synchronize_streams() {
  const std::lock_guard lock(streams_mutex_);
  Result first = Result::kSuccess;
  for (const auto& [stream, is_captured] : streams_) {
    const Result result = is_captured ? Result::kSuccess : driver_.stream_synchronize(stream);
    if (first == Result::kSuccess) first = result;
  }
  return first;
}

void Context::wait_idle() {
  if (!is_lost()) check(synchronize_streams(), "cuStreamSynchronize");
}

void Context::wait_fill(DeviceAddress to, unsigned char byte, size_t bytes) {
  if (bytes == 0) return;
  check(driver_.memset_d8_async(to, byte, bytes, side_stream_), "cuMemsetD8Async");
  check(driver_.stream_synchronize(side_stream_), "cuStreamSynchronize");
}

void Context::wait_copy(DeviceAddress to, DeviceAddress from, size_t bytes) {
  if (bytes == 0) return;
  check(driver_.memcpy_async(to, from, bytes, side_stream_), "cuMemcpyAsync");
  check(driver_.stream_synchronize(side_stream_), "cuStreamSynchronize");
}

void Context::add_range(DeviceAddress at, size_t bytes) {
  const std::lock_guard lock(ranges_mutex_);
  ranges_[at] = bytes;
}
void Context::remove_range(DeviceAddress at) {
  const std::lock_guard lock(ranges_mutex_);
  ranges_.erase(at);
}
bool Context::is_device_memory(const void* address) const {
  const auto at = reinterpret_cast<DeviceAddress>(address);
  const std::shared_lock lock(ranges_mutex_);
  auto behind = ranges_.upper_bound(at);
  if (behind == ranges_.begin()) return false;
  --behind;
  return at - behind->first < behind->second;
}

}  // namespace coppice::cuda
