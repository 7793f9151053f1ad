// Streams of the cpu device and of the emulated GPU (see cpu_stream.h).
#include "gpu/cpu/cpu_stream.h"

#include <fmt/format.h>
#include <pthread.h>

#include <cstring>
#include <utility>

#include "core/trace.h"
#include "gpu/jit/code_loader.h"
#include "gpu/messages.h"

namespace coppice {

CpuStream::CpuStream(std::unique_ptr<LoopRunner> runner, DeviceContext& context, std::string name)
    : runner_(std::move(runner)), context_(context), thread_([this, name] { work(name); }) {
  pthread_setname_np(thread_.native_handle(), name.substr(0, 15).c_str());
}

CpuStream::~CpuStream() {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  if (std::this_thread::get_id() == thread_.get_id()) {
    // A thread cannot join itself: it does here what is left to do, and touches nothing of this object afterwards.
    bool* const destroyed = destroyed_;
    while (!queue_.empty()) run_next(lock);
    *destroyed = true;
    thread_.detach();
    return;
  }
  lock.unlock();
  ready_.notify_one();
  thread_.join();
}

AsyncValueRef<Chain> CpuStream::push(std::string_view name, std::function<void()> function,
                                     IntrusivePtr<const SharedLaunch> launch) {
  auto done = make_unconstructed_async_value<Chain>();
  {
    std::lock_guard lock(mutex_);
    queue_.push_back({name, std::move(function), std::move(launch), done, epoch_});
  }
  ready_.notify_one();
  return done;
}

bool CpuStream::run_next(std::unique_lock<std::mutex>& lock) {
  Operation operation = std::move(queue_.front());
  queue_.pop_front();
  std::optional<Error> failed;
  if (error_ && error_epoch_ == operation.epoch) failed = error_;
  const bool skipped = failed.has_value();
  bool destroyed = false;
  destroyed_ = &destroyed;
  lock.unlock();
  if (!skipped) {
    const LaunchProfile::Timer timer(profile_, operation.name);
    const TraceScope trace(operation.name);
    try {
      run(operation);
    } catch (const Error& error) {
      failed = error;
    } catch (const std::exception& error) {
      failed = Error(ErrorCode::kInternal, fmt::format("{}: {}", operation.name, error.what()));
    } catch (...) {
      failed = Error(ErrorCode::kInternal,
                     fmt::format("{}: an exception that is no std::exception", operation.name));
    }
    read_messages(context_);  // not sooner: a launch that is repeated forgets what it printed
  }
  if (failed && !skipped) {
    lock.lock();
    error_ = failed, error_epoch_ = operation.epoch;
    lock.unlock();
  }
  // Drops what it holds before its completion is known; perhaps this stream, too.
  operation.function = nullptr;
  operation.shared_launch.reset();
  if (failed) {
    operation.done.set_error(*failed);
  } else {
    operation.done.emplace();
  }
  if (destroyed) return false;
  lock.lock();
  return true;
}

void CpuStream::work(std::string name) {
  name_this_thread_row(std::move(name));
  std::unique_lock lock(mutex_);
  for (;;) {
    ready_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    if (!run_next(lock)) {
      lock.release();  // the mutex is gone
      return;
    }
  }
}

void CpuStream::run(const Operation& operation) {
  if (!operation.shared_launch) {
    operation.function();
    return;
  }
  const Launch& launch = operation.shared_launch->launch;
  LaunchBlock block = launch.block;
  run(launch, block);
}

void CpuStream::run_inline(Launch& launch) {
  const TraceScope trace(launch.name);
  run(launch, launch.block);
}

void CpuStream::run(const Launch& launch, LaunchBlock& block) {
  block.context = &context_;
  if (launch.skip_on_status && __atomic_load_n(&context_.status, __ATOMIC_ACQUIRE) != 0) return;
  if (launch.skip_on_status) block.number = launches_++;
  wait(launch.code);
  if (launch.code.is_error()) throw launch.code.error();
  if (launch.prepare) launch.prepare(block);
  const uint64_t count = block.count != nullptr ? *block.count : block.item_count;
  const KernelEntry entry = jit::host_entry(*launch.code.get());
  do {
    if (count > 0) runner_->run(launch, block, entry, count);
  } while (launch.finish && launch.finish(block));
}

AsyncValueRef<Chain> CpuStream::launch(Launch launch) {
  const std::string_view name = launch.name;
  return push(name, [this, launch = std::move(launch)]() mutable { run(launch, launch.block); });
}
AsyncValueRef<Chain> CpuStream::launch(IntrusivePtr<const SharedLaunch> launch) {
  const std::string_view name = launch->launch.name;
  return push(name, nullptr, std::move(launch));
}

AsyncValueRef<Chain> CpuStream::enqueue(std::string_view name, std::function<void()> function) {
  return push(name, [this, function = std::move(function)] { runner_->run_function(function); });
}
AsyncValueRef<Chain> CpuStream::copy(void* to, const void* from, size_t bytes) {
  return push("copy", [=] { std::memcpy(to, from, bytes); });
}
AsyncValueRef<Chain> CpuStream::fill(void* to, int byte, size_t bytes) {
  return push("fill", [=] { std::memset(to, byte, bytes); });
}
AsyncValueRef<Chain> CpuStream::barrier() {
  return push("barrier", [] {});
}
void CpuStream::wait_copy_inline(void* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); }
void CpuStream::clear_error() {
  std::lock_guard lock(mutex_);
  ++epoch_;
}

}  // namespace coppice
