// The queue of a stream (see stream_queue.h).
#include "gpu/stream_queue.h"

#include <fmt/format.h>
#include <pthread.h>

#include <chrono>
#include <utility>

#include "core/check.h"
#include "core/error.h"
#include "core/log.h"
#include "core/process_end.h"
#include "core/trace.h"
#include "core/work_refusal.h"
#include "core/worker_thread.h"
#include "gpu/buffer_ranges.h"
#include "gpu/wait_for_code.h"

namespace coppice {
namespace {

constexpr size_t kMostPending = 512;  // each keeps an event, and what it uses
// Polling goes first without a pause, then with one, which costs a long operation next to nothing.
constexpr int kEagerPolls = 200;
constexpr std::chrono::microseconds kPollPause{20};
constexpr const char* kStreamsThread = "a stream's thread";

// Returns what the function throws.
template <class F>
std::optional<Error> error_of(std::string_view name, const F& function) {
  try {
    function();
    return std::nullopt;
  } catch (const Error& error) {
    return error;
  } catch (const std::exception& error) {
    return Error(ErrorCode::kInternal, fmt::format("{}: {}", name, error.what()));
  } catch (...) {
    return Error(ErrorCode::kInternal, fmt::format("{}: an exception that is no std::exception", name));
  }
}

Error ending_error(std::string_view what) {
  return Error(ErrorCode::kCancelled, fmt::format("{}: the process ends", what));
}

}  // namespace

StreamQueue::StreamQueue(std::unique_ptr<StreamBackend> backend, DeviceContext& context, std::string name,
                         IntrusivePtr<RefCounted> device)
    : device_(std::move(device)),
      backend_(std::move(backend)),
      context_(context),
      order_(*backend_, context, profile_),
      watch_([this]() -> std::function<void()> {
        const std::lock_guard lock(mutex_);
        is_ending_ = true;
        ready_->notify_one();
        std::string overtaken = describe_overtaken();
        if (overtaken.empty()) return nullptr;
        return [text = std::move(overtaken)] { log_info("{}", text); };
      }),
      thread_(start_thread([this, name] { work(name); })) {
  pthread_setname_np(thread_.native_handle(), name.substr(0, 15).c_str());
}

StreamQueue::~StreamQueue() {
  if (guard_.is_in_child()) {
    forget_thread(thread_);
    return;
  }
  Lock lock(mutex_);
  stopping_ = true;
  if (std::this_thread::get_id() == thread_.get_id()) {
    // A thread cannot join itself: it does here what is left to do, and touches nothing of this object
    // afterwards.
    bool* const destroyed = destroyed_;
    if (is_ending_) {  // nothing is left to do, and it may be an operation that called exit()
      if (destroyed != nullptr) *destroyed = true;
      thread_.detach();
      return;
    }
    COPPICE_CHECK(destroyed != nullptr, "an operation's own function destroyed its stream");
    while (has_work()) step(lock);
    lock.unlock();
    log_untold();
    *destroyed = true;
    thread_.detach();
    return;
  }
  lock.unlock();
  ready_->notify_one();
  thread_.join();
  log_untold();
}

AsyncValueRef<Chain> StreamQueue::push(Operation operation) {
  AsyncValueRef<Chain> done = make_event();
  operation.done = done;
  guard_.check(operation.name);
  WorkRefusal::check(operation.name);
  {
    Lock lock(mutex_);
    if (has_left_ || is_ending_) {  // others may give work faster than it is done
      lock.unlock();
      done.set_error(ending_error(operation.name));
      return done;
    }
    operation.epoch = epoch_;
    queue_.push_back(std::move(operation));
  }
  ready_->notify_one();
  return done;
}

void StreamQueue::work(std::string name) {
  name_this_thread_row(std::move(name));
  const WorkerThreadScope scope(this, kStreamsThread);
  Lock lock(mutex_);
  for (;;) {
    ready_->wait(lock, [&] { return stopping_ || is_ending_ || has_work(); });
    if (!has_work()) {
      if (is_ending_ && !stopping_) log_untold();  // nobody joins the thread and does it then
      has_left_ = true;
      return;
    }
    if (!step(lock)) {
      lock.release();  // the mutex is gone
      return;
    }
  }
}

// It does not begin while its code is being compiled: that may take long, and what is pending ends
// meanwhile.
bool StreamQueue::can_begin() const {
  if (queue_.empty()) return false;
  if (pending_.empty()) return true;
  const Operation& next = queue_.front();
  const bool may_skip = num_unsettled_ > 0 || pending_.back().tells_error;
  if (may_skip && !can_begin_behind_unsettled(next)) return false;
  const auto is_there = [](const auto& code) { return !code || code.is_available(); };
  if (is_ending_) return true;
  return !next.waits && pending_.size() < kMostPending && is_there(next.code) && is_there(next.room_code);
}

// All that was begun behind a launch that turns out to have left a status was skipped, or does nothing.
bool StreamQueue::can_begin_behind_unsettled(const Operation& next) const {
  const Operation& last = pending_.back();
  if (last.epoch != next.epoch || last.failed) return false;  // who knows whether it is to be skipped
  return next.launch ? order_.can_begin_behind_unsettled(next.launch->launch) : !next.function;
}

bool StreamQueue::step(Lock& lock) {
  if (!can_begin()) return wait_oldest(lock);
  if (!begin_next(lock)) return false;
  return pending_.empty() || !reach_oldest(lock, false) || end_oldest(lock);
}

bool StreamQueue::begin_next(Lock& lock) {
  Operation operation = std::move(queue_.front());
  queue_.pop_front();
  std::optional<Error>& failed = operation.failed;
  if (error_ && error_epoch_ == operation.epoch) failed = error_;
  if (is_ending_ && !failed) failed = ending_error(operation.name);
  const bool skipped = failed.has_value();
  lock.unlock();
  if (!skipped) {
    std::optional<LaunchProfile::Timer> timer;  // launches have one each, wherever they are given
    if (!operation.code) timer.emplace(profile_, operation.name);
    const TraceScope trace(operation.name);
    failed = error_of(operation.name, [&] { run(operation); });
    if (operation.unsettled && operation.unsettled->failed) failed = operation.unsettled->failed;
    try {
      operation.marked = backend_->mark_end(operation.name, context_, operation.used);
    } catch (const Error& error) {
      if (!failed) failed = error;
    }
  }
  lock.lock();
  operation.tells_error = failed && !skipped && num_unsettled_ > 0;
  if (failed && !skipped && !operation.tells_error) set_error(*failed, operation.epoch);
  if (!operation.marked && !operation.unsettled && pending_.empty()) return end(lock, std::move(operation));
  num_unsettled_ += operation.unsettled != nullptr;
  pending_.push_back(std::move(operation));
  return true;
}

void StreamQueue::set_error(const Error& error, uint64_t epoch) { error_ = error, error_epoch_ = epoch; }

// Returns whether the oldest of those begun may end; an error of its work is then its own.
bool StreamQueue::reach_oldest(Lock& lock, bool wait) {
  Operation& oldest = pending_.front();
  if (!oldest.marked) return true;
  lock.unlock();
  std::optional<Error> error;
  bool reached = true;
  try {
    reached = backend_->reach_oldest_mark(wait, oldest.used);
  } catch (const Error& e) {
    error = e;
  }
  lock.lock();
  if (error && !oldest.failed) {
    oldest.failed = error;
    set_error(*error, oldest.epoch);
  }
  return reached;
}

bool StreamQueue::wait_oldest(Lock& lock) {
  for (int polls = 0;; ++polls) {
    if (can_begin()) return true;
    const bool must_wait = !queue_.empty();  // what is queued cannot be begun before this is done
    if (reach_oldest(lock, must_wait)) break;
    if (polls >= kEagerPolls) {
      ready_->wait_for(lock, kPollPause);
    } else {
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    }
  }
  return end_oldest(lock);
}

bool StreamQueue::end_oldest(Lock& lock) {
  Operation oldest = std::move(pending_.front());
  pending_.pop_front();
  if (oldest.unsettled && !settle(lock, oldest)) return true;
  if (oldest.tells_error) set_error(*oldest.failed, oldest.epoch);
  return end(lock, std::move(oldest));
}

// Returns whether the launch may end. Otherwise it is pending again, because what settled it is under way, or
// queued again. All that was begun behind it is queued again.
bool StreamQueue::settle(Lock& lock, Operation& oldest) {
  --num_unsettled_;
  const LaunchEnd end = *std::exchange(oldest.unsettled, nullptr);
  const Launch& launch = oldest.launch->launch;
  if (end.is_settled()) return order_.settle(launch, end);
  lock.unlock();
  std::deque<Operation> behind = std::exchange(pending_, {});
  for (Operation& operation : behind) wait_unbegin(operation);
  num_unsettled_ = 0;
  bool has_run = true;
  std::optional<Error> failed = error_of(oldest.name, [&] { has_run = order_.settle(launch, end); });
  const auto mark = [&] { oldest.marked = backend_->mark_end(oldest.name, context_, oldest.used); };
  if (const std::optional<Error> unmarked = error_of(oldest.name, mark); !failed) failed = unmarked;
  backend_->hand_over_messages();
  if (!oldest.failed) oldest.failed = failed;
  has_run |= oldest.failed.has_value();
  if (!has_run) {
    wait_unbegin(oldest);
    behind.push_front(std::move(oldest));
  }
  lock.lock();
  if (has_run && oldest.failed) set_error(*oldest.failed, oldest.epoch);
  if (has_run) oldest.tells_error = false;
  const bool is_pending = has_run && oldest.marked;
  if (is_pending) pending_.push_back(std::move(oldest));
  for (; !behind.empty(); behind.pop_back()) queue_.push_front(std::move(behind.back()));
  return has_run && !is_pending;
}

// Waits for what was begun of an operation, which is to be begun again.
void StreamQueue::wait_unbegin(Operation& operation) {
  try {
    if (operation.marked) backend_->reach_oldest_mark(true, operation.used);
  } catch (const Error&) {  // it is met again
  }
  operation.marked = operation.tells_error = false;
  operation.failed.reset(), operation.unsettled.reset();
}

bool StreamQueue::end(Lock& lock, Operation operation) {
  bool destroyed = false;
  destroyed_ = &destroyed;
  // This comes first: below, the stream's last reference may be dropped.
  if (operation.failed)
    note_error(*operation.failed, operation.epoch,
               !operation.done.is_unique() || operation.done.value().has_waiters());
  lock.unlock();
  // Drops what it holds before its completion is known; perhaps this stream, too.
  operation.function = nullptr;
  operation.launch.reset();
  operation.code.reset(), operation.room_code.reset();
  operation.used.clear();
  if (operation.failed) {
    operation.done.set_error(*operation.failed);
  } else {
    operation.done.emplace();
  }
  operation.done.reset();
  if (destroyed) return false;
  destroyed_ = nullptr;
  lock.lock();
  return true;
}

// The values of all operations behind a failed one have its error: whoever holds one of them can know.
void StreamQueue::note_error(const Error& error, uint64_t epoch, bool is_told) {
  if (is_told) {
    told_in_ = epoch, untold_.reset();
    return;
  }
  // Kernels that nobody compiles any more may end a launch before this stream is told of the process's end.
  const bool is_overtaken = error.code() == ErrorCode::kCancelled && (is_ending_ || process_is_ending());
  if (told_in_ != epoch && !untold_ && epoch == epoch_ && !is_overtaken) untold_ = error;
}

void StreamQueue::log_untold() const {
  if (untold_) log_error("an operation failed, and nobody waited for it: {}", untold_->what());
}

// Returns a line about launches that the process's end keeps from running and that nobody waited for, if
// there are such. It is no warning: a program may mean to end before all is done.
std::string StreamQueue::describe_overtaken() const {
  size_t count = 0;
  std::string_view first;
  for (const Operation& o : queue_)
    if (o.launch && o.done.is_unique() && count++ == 0) first = o.name;
  if (count == 0) return {};
  return fmt::format("the process ends before {} launch{} ({}{}) that nobody waited for", count,
                     count == 1 ? "" : "es", count == 1 ? "" : "first ", first);
}

void StreamQueue::run(Operation& operation) {
  if (operation.function) operation.function(order_);
  if (!operation.launch) return;
  const Launch& launch = operation.launch->launch;
  LaunchBlock block = launch.block;
  operation.unsettled = order_.begin(launch, block, num_unsettled_ > 0);
}

AsyncValueRef<Chain> StreamQueue::launch(Launch launch) {
  return this->launch(make_intrusive<const SharedLaunch>(std::move(launch)));
}
AsyncValueRef<Chain> StreamQueue::launch(IntrusivePtr<const SharedLaunch> launch) {
  Operation operation{
      .name = launch->launch.name, .code = launch->launch.code, .room_code = launch->launch.room_code};
  operation.launch = std::move(launch);
  return push(std::move(operation));
}

AsyncValueRef<Chain> StreamQueue::enqueue(std::string_view name, std::function<void(InStream&)> function) {
  return push({.name = name,
               // The back end may have it run by a thread of its own.
               .function =
                   [this, function = std::move(function)](InStream& s) {
                     backend_->run_function([&] {
                       const WorkerThreadScope scope(this, kStreamsThread);
                       function(s);
                     });
                   },
               .waits = true});
}
AsyncValueRef<Chain> StreamQueue::issue(std::string_view name, std::function<void(InStream&)> function) {
  return push({.name = name, .function = std::move(function)});
}
AsyncValueRef<Chain> StreamQueue::copy(void* to, const void* from, size_t bytes) {
  check_copied(context_, to, from, bytes);
  return push({.name = "copy", .function = [=, this](InStream&) { backend_->copy(to, from, bytes); }});
}
AsyncValueRef<Chain> StreamQueue::fill(void* to, int byte, size_t bytes) {
  check_bytes(context_, to, bytes, "what is to be filled");
  return push({.name = "fill", .function = [=](InStream& s) { s.fill(to, byte, bytes); }});
}
AsyncValueRef<Chain> StreamQueue::barrier() { return push({.name = "barrier"}); }
void StreamQueue::clear_error() {
  WorkRefusal::check("clear_error");
  guard_.check("clear_error");  // before the mutex, which a thread of the parent's may have held
  std::lock_guard lock(mutex_);
  ++epoch_;
  untold_.reset();
}

}  // namespace coppice
