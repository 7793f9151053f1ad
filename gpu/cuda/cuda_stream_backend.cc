// Issues a stream's operations to a CUstream (see cuda_stream_backend.h).
#include "gpu/cuda/cuda_stream_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/check.h"
#include "core/extents.h"
#include "gpu/cuda/cuda_code.h"

namespace coppice::cuda {
namespace {

DeviceAddress address_of(const void* pointer) { return reinterpret_cast<DeviceAddress>(pointer); }

// Each item has a thread block, or a thread, as the entry of compiled kernels has it
// (gpu/jit/compile_ptx.cc).
uint64_t blocks_for(const LaunchBlock& block) {
  const bool item_per_thread = (block.flags & kThreadItems) != 0;
  return item_per_thread ? div_up(block.item_count, uint64_t{kGpuThreadsPerBlock}) : block.item_count;
}

}  // namespace

CudaStreamBackend::CudaStreamBackend(IntrusivePtr<Context> context, IntrusivePtr<SmallMemory> small,
                                     IntrusivePtr<Buffer> device_context, MessageLog& log, bool exact_errors,
                                     bool owns_status)
    : context_(std::move(context)),
      small_(std::move(small)),
      device_context_(std::move(device_context)),
      log_(log),
      exact_errors_(exact_errors),
      owns_status_(owns_status),
      staging_(context_) {
  context_->throw_if_lost();
  const Context::Scope scope(*context_);
  stream_ = context_->create_stream();
  if (context_->profile() != nullptr) timer_.emplace(*context_);
}

CudaStreamBackend::~CudaStreamBackend() {
  const Driver& driver = context_->driver();
  const Context::FreeingScope scope(*context_);
  driver.stream_synchronize(stream_);
  timer_.reset();
  for (const Mark& mark : marks_) driver.event_destroy(mark.event);
  for (const EventHandle event : free_events_) driver.event_destroy(event);
  context_->wait_destroy_stream(stream_);
}

void CudaStreamBackend::begin() {
  context_->throw_if_lost();
  context_->make_current();
}

// Work that runs on the device fails at a call behind it, and the driver does not say which work it was.
Error CudaStreamBackend::at_fault(Result result, std::string_view call) {
  if (!is_fatal(result)) return driver_error(context_->driver(), result, call);
  std::string names = marks_.empty() ? names_ : marks_.front().names;
  if (exact_errors_ && !names_.empty()) names = names_;
  if (names.empty()) names = call;
  Error error = driver_error(context_->driver(), result, names);
  if (!exact_errors_)
    error = Error(
        error.code(),
        fmt::format("{}, noticed there; COPPICE_DEBUG=checks names the kernel at fault", error.message()));
  return context_->lost_or(result, error);
}

void CudaStreamBackend::check(Result result, std::string_view call) {
  if (result != Result::kSuccess) throw at_fault(result, call);
}

void CudaStreamBackend::run_loop(const Launch& launch, const LaunchBlock& block) {
  begin();
  const bool is_counted_here = block.count == nullptr;
  if (is_counted_here && block.item_count == 0) return;
  auto& code = static_cast<CudaCode&>(*launch.code.get());
  // There are as many blocks as run at once: each takes items until there are no more, however many there
  // turn out to be.
  unsigned blocks = code.max_blocks(launch.shared_bytes);
  if (is_counted_here) blocks = static_cast<unsigned>(std::min<uint64_t>(blocks, blocks_for(block)));
  void* parameters[] = {const_cast<LaunchBlock*>(&block)};  // copied by the call
  keep(launch);
  if (capture_)
    capture_->note(launch.name);
  else
    names_ = fmt::format("kernel {}", launch.name), is_issued_ = true;
  const auto issue = [&] {
    check(context_->driver().launch_kernel(code.function(), blocks, 1, 1, kGpuThreadsPerBlock, 1, 1,
                                           launch.shared_bytes, stream_, parameters, nullptr),
          fmt::format("launching kernel {}", launch.name));
  };
  issue_timed([&] { return work_of(launch, block); }, issue);
  if (capture_) return;
  if (launch.may_leave_status()) context_->note_status_change();
  if (exact_errors_) wait_begun();
}

// A list's length is known on the device alone: it is fetched before the launch, which may change it.
LaunchTimer::Work CudaStreamBackend::work_of(const Launch& launch, const LaunchBlock& block) {
  // Bytes are those of an entry of a loop's list, of which pieces are items.
  LaunchTimer::Work work{std::string(launch.name), block.item_count / block.pieces, launch.item_bytes};
  if (block.count != nullptr && launch.item_bytes > 0) {
    std::byte* const count = take_staging(sizeof *block.count);
    issue_copy(count, block.count, sizeof *block.count);
    work.count = reinterpret_cast<const uint64_t*>(count);
  }
  work.resources = static_cast<CudaCode&>(*launch.code.get()).resources(launch.shared_bytes);
  return work;
}

// In a recording, an event is a node of the graph and tells no time: the whole is timed when it is launched.
void CudaStreamBackend::issue_timed(const std::function<LaunchTimer::Work()>& work,
                                    const std::function<void()>& issue) {
  if (!timer_ || capture_) return issue();
  LaunchTimer::Work timed = work();
  check(timer_->begin(stream_), "cuEventRecord");
  issue();
  check(timer_->end(stream_, std::move(timed), next_mark_), "cuEventRecord");
}

void CudaStreamBackend::keep(const Launch& launch) {
  KeepAlive& used = capture_ ? capture_->used : used_;
  used.emplace_back(launch.code.get());
  used.insert(used.end(), launch.keep_alive.begin(), launch.keep_alive.end());
}

// Runs when everything before it is done (the queue sees to that), since it may look at what copies brought.
void CudaStreamBackend::run_function(const std::function<void()>& function) {
  begin();
  context_->note_status_change();
  function();
}

void CudaStreamBackend::issue_copy(void* to, const void* from, size_t bytes) {
  if (!capture_) is_issued_ = true;
  check(context_->driver().memcpy_async(address_of(to), address_of(from), bytes, stream_), "cuMemcpyAsync");
}

std::byte* CudaStreamBackend::take_staging(size_t bytes) {
  if (std::byte* const piece = staging_.take(bytes)) return piece;
  wait_begun();
  return staging_.take(bytes);
}

// Lets earlier copies to the host arrive first.
void CudaStreamBackend::host_memory_is_used() {
  const auto is_callers = [](const Delivery& d) { return !d.status_of.has_value(); };
  if (std::any_of(deliveries_.begin(), deliveries_.end(), is_callers)) wait_begun();
}

void CudaStreamBackend::copy_to_device(void* to, const void* from, size_t bytes, bool is_free_at_return) {
  host_memory_is_used();
  if (bytes <= Staging::kMostBytes) {
    std::byte* const piece = take_staging(bytes);
    std::memcpy(piece, from, bytes);
    return issue_copy(to, piece, bytes);
  }
  issue_copy(to, from, bytes);
  if (is_free_at_return) wait_begun();
}

void CudaStreamBackend::copy_to_host(void* to, const void* from, size_t bytes) {
  if (bytes <= Staging::kMostBytes) {
    std::byte* const piece = take_staging(bytes);
    issue_copy(piece, from, bytes);
    deliveries_.push_back({next_mark_, to, piece, bytes, {}});
    return;
  }
  host_memory_is_used();
  issue_copy(to, from, bytes);
  deliveries_.push_back({next_mark_, to, nullptr, bytes, {}});
}

void CudaStreamBackend::refuse_to_record(std::string_view what) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("device cuda: {} cannot be recorded", what));
}

void CudaStreamBackend::copy_by_addresses(void* to, const void* from, size_t bytes, bool waits) {
  begin();
  if (bytes == 0) return;
  const bool to_device = context_->is_device_memory(to), from_device = context_->is_device_memory(from);
  if (to_device && from_device) return issue_copy(to, from, bytes);
  if (capture_) refuse_to_record("a copy to or from the host's memory");
  if (to_device) return copy_to_device(to, from, bytes, waits);
  if (from_device) copy_to_host(to, from, bytes);
  try {
    if (waits || !from_device) wait_begun();
  } catch (...) {
    // A caller that has waited in vain may be gone with its memory when the copy comes.
    if (waits && from_device) deliveries_.pop_back();
    throw;
  }
  if (!from_device) std::memcpy(to, from, bytes);
}
void CudaStreamBackend::copy(void* to, const void* from, size_t bytes) {
  copy_by_addresses(to, from, bytes, false);
}
void CudaStreamBackend::wait_copy(void* to, const void* from, size_t bytes) {
  copy_by_addresses(to, from, bytes, true);
}

void CudaStreamBackend::fill(void* to, int byte, size_t bytes) {
  begin();
  if (bytes == 0) return;
  if (!context_->is_device_memory(to)) {
    if (capture_) refuse_to_record("a fill of the host's memory");
    wait_begun();
    std::memset(to, byte, bytes);
    return;
  }
  if (!capture_) is_issued_ = true;
  check(context_->driver().memset_d8_async(address_of(to), static_cast<unsigned char>(byte), bytes, stream_),
        "cuMemsetD8Async");
}

void CudaStreamBackend::deliver(uint64_t mark) {
  for (; !deliveries_.empty() && deliveries_.front().mark <= mark; deliveries_.pop_front()) {
    const Delivery& d = deliveries_.front();
    if (d.from != nullptr) std::memcpy(d.to, d.from, d.bytes);
    if (!d.status_of || *static_cast<uint32_t*>(d.to) != 0) continue;
    status_none_at_ = d.status_of->changes;
    log_.let_through(d.status_of->launch);
  }
}

void CudaStreamBackend::wait_begun() {
  begin();
  COPPICE_CHECK(!capture_, "a recording waits for nothing");
  if (!is_issued_ && marks_.empty()) return;
  check(context_->driver().stream_synchronize(stream_), "cuStreamSynchronize");
  is_issued_ = false;
  reached_marks_ = next_mark_;
  deliver(next_mark_);
  if (timer_) timer_->collect(next_mark_);
  staging_.give_back(staging_.position());
}

bool CudaStreamBackend::has_status(const DeviceContext& context) {
  const uint64_t changes = context_->status_changes();
  if (status_none_at_ == changes) return false;
  uint32_t status = 0;
  wait_copy(&status, &context.status, sizeof status);
  if (status == 0) status_none_at_ = changes;
  return is_final_status(status);
}

void CudaStreamBackend::fetch_status(const DeviceContext& context, LaunchEnd& end) {
  begin();
  std::byte* const piece = take_staging(sizeof end.status);
  std::memset(piece, 0, sizeof end.status);  // no status, should the copy fail
  const uint64_t changes = context_->status_changes();
  issue_copy(piece, &context.status, sizeof end.status);
  deliveries_.push_back({next_mark_, &end.status, piece, sizeof end.status, StatusOf{changes, end.id}});
  log_.hold(end.id);
}

void CudaStreamBackend::hand_over_messages() {
  log_.let_all_through();
  read_messages(log_);
}

bool CudaStreamBackend::mark_end(std::string_view name, DeviceContext&, KeepAlive& released) {
  const std::string names = names_.empty() ? std::string(name) : names_;
  KeepAlive used = std::exchange(used_, {});
  const bool was_issued = std::exchange(is_issued_, false);
  EventHandle event = nullptr;
  try {
    begin();
    if (was_issued) {
      if (free_events_.empty()) {
        check(context_->driver().event_create(&event, kEventDisableTiming), "cuEventCreate");
        free_events_.push_back(event);
      }
      event = free_events_.back();
      check(context_->driver().event_record(event, stream_), "cuEventRecord");
      free_events_.pop_back();
    }
  } catch (...) {
    // Without a mark, its end is waited for.
    if (was_issued && !context_->is_lost()) context_->driver().stream_synchronize(stream_);
    deliver(next_mark_);
    released = std::move(used);
    names_.clear();
    throw;
  }
  names_.clear();
  if (!was_issued) {
    released = std::move(used);
    read_messages(log_);
    return false;
  }
  marks_.push_back({event, names, staging_.position(), next_mark_++, std::move(used)});
  return true;
}

void CudaStreamBackend::forget_oldest_mark(KeepAlive& released) {
  Mark& mark = marks_.front();
  free_events_.push_back(mark.event);
  released = std::move(mark.used);
  marks_.pop_front();
}

bool CudaStreamBackend::reach_oldest_mark(bool wait, KeepAlive& released) {
  const Driver& driver = context_->driver();
  const uint64_t number = marks_.front().number;
  if (number < reached_marks_) {
    read_messages(log_);
    forget_oldest_mark(released);
    return true;
  }
  try {
    begin();
    const EventHandle event = marks_.front().event;
    const Result result = wait ? driver.event_synchronize(event) : driver.event_query(event);
    if (result == Result::kNotReady) return false;
    if (result != Result::kSuccess) {
      const Error error = at_fault(result, wait ? "cuEventSynchronize" : "cuEventQuery");
      if (!is_fatal(result)) driver.stream_synchronize(stream_);  // what it used is let go now
      throw error;
    }
  } catch (...) {
    for (; !deliveries_.empty() && deliveries_.front().mark <= number; deliveries_.pop_front()) {
      // The host settles what a status says although something else went wrong.
      const Delivery& d = deliveries_.front();
      if (d.status_of && !context_->is_lost()) std::memcpy(d.to, d.from, d.bytes);
    }
    forget_oldest_mark(released);
    throw;
  }
  deliver(number);
  if (timer_) timer_->collect(number);
  read_messages(log_);
  staging_.give_back(marks_.front().staged);
  forget_oldest_mark(released);
  return true;
}

}  // namespace coppice::cuda
