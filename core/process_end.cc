// The end of the process (see process_end.h).
#include "core/process_end.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/forked_child.h"
#include "core/log.h"

namespace coppice {
namespace {

// No kernel takes so long to compile: a thread that ends the process while a function of a stream waits
// for something that no longer comes must not wait for ever. Under the thread sanitizer everything takes
// many times as long.
#ifdef __SANITIZE_THREAD__
constexpr std::chrono::seconds kPatience{100};
#else
constexpr std::chrono::seconds kPatience{10};
#endif

}  // namespace

struct ProcessEnd;
namespace {
// exit() destroys the thread-local objects of the thread that calls it before it destroys anything static,
// what LLVM makes in its functions while a kernel is compiled included.
struct OfThread {
  bool is_at_work = false;  // one of the library's, within its body
  ~OfThread();
};
thread_local OfThread of_thread;
constinit thread_local bool is_in_another_library = false;  // one of its threads, in a task of ours
}  // namespace

struct ProcessEnd {
  static ProcessEnd& one() {
    static auto* const end = new ProcessEnd;  // whoever has threads may outlive every static object
    return *end;
  }
  ProcessEnd() {
    // Destructors of keys run after those of thread-local objects, and those of later keys after those of
    // oneTBB's.
    pthread_key_create(&key, [](void*) { one().leave(); });
    pthread_atfork([] { one().mutex.lock(); }, [] { one().mutex.unlock(); },
                   [] {
                     one().mutex.unlock();
                     one().begin_child();
                   });
    std::atexit(at_exit);
  }
  static void at_exit() { one().wait_for_threads(); }
  static bool is_forked_child() { return ForkGuard::forks_.load(std::memory_order_relaxed) != 0; }

  // The threads and watches of a child are its parent's.
  void begin_child() {
    ForkGuard::forks_.fetch_add(1, std::memory_order_relaxed);
    watches.clear();
    threads = 0;
    ending = false;
  }

  void leave() {
    threads.fetch_sub(1);
    // exit() says that it has begun before it looks at the number: one of the two sees what the other did.
    if (!ending.load()) return;
    const std::lock_guard lock(mutex);
    left.notify_all();
  }

  void wait_for_threads() {
    std::unique_lock lock(mutex);
    if (ending.exchange(true)) return;
    std::vector<std::function<void()>> rest;
    for (const ProcessEndWatch* watch : watches) rest.push_back(watch->let_go_());
    lock.unlock();
    for (std::function<void()>& work : rest) {
      if (work) std::exchange(work, nullptr)();
    }
    const int own = of_thread.is_at_work ? 1 : 0;  // one of them called exit()
    // Others may wait for what it would have done next.
    while (own != 0 && detail::run_next_continuation()) {
    }
    lock.lock();
    if (left.wait_for(lock, kPatience, [&] { return threads.load() <= own; })) return;
    lock.unlock();
    log_warning(
        "the process ends while threads of its devices or queues are at work: they took longer than {} s",
        kPatience.count());
  }

  std::mutex mutex;
  std::condition_variable left;
  std::list<ProcessEndWatch*> watches;
  std::atomic<int> threads{0};  // and other holds
  std::atomic<bool> ending{false};
  pthread_key_t key{};  // not null in threads that are counted
};

namespace {
bool is_main_thread() { return gettid() == getpid(); }
OfThread::~OfThread() {
  if (is_at_work || is_main_thread()) ProcessEnd::at_exit();
}
// The main thread has its object from the start, whoever makes devices.
[[maybe_unused]] const bool main_has_one = (of_thread.is_at_work = false, true);
}  // namespace

ProcessEndWatch::ProcessEndWatch(LetGo let_go) : let_go_(std::move(let_go)) {
  ProcessEnd& end = ProcessEnd::one();
  bool comes_too_late = false;
  {
    const std::lock_guard lock(end.mutex);
    at_ = end.watches.insert(end.watches.end(), this);
    comes_too_late = end.ending.load();
  }
  if (!comes_too_late) return;  // or else nobody would tell
  if (const std::function<void()> rest = let_go_()) rest();
}
ProcessEndWatch::~ProcessEndWatch() {
  if (guard_.is_in_child()) return;
  ProcessEnd& end = ProcessEnd::one();
  const std::lock_guard lock(end.mutex);
  end.watches.erase(at_);
}

std::thread start_thread(std::function<void()> body) {
  ProcessEnd& end = ProcessEnd::one();
  end.threads.fetch_add(1);
  try {
    return std::thread([&end, body = std::move(body)]() mutable {
      pthread_setspecific(end.key, &end);
      of_thread.is_at_work = true;
      std::exchange(body, nullptr)();  // what it holds goes before the thread does
      of_thread.is_at_work = false;
    });
  } catch (const std::system_error& error) {
    // It does not take leave()'s lock: the caller may hold one that a watch waits for under it.
    end.threads.fetch_sub(1);
    end.left.notify_all();
    throw Error(ErrorCode::kUnavailable, fmt::format("cannot start a thread: {}", error.code().message()));
  }
}

void forget_thread(std::thread& thread) {
  // It is reachable for ever, so that no leak checker wonders.
  struct Forgotten {
    explicit Forgotten(std::thread&& one) : thread(std::move(one)) {}
    std::thread thread;
    Forgotten* next = nullptr;
  };
  static std::atomic<Forgotten*> last{nullptr};
  auto* const forgotten = new Forgotten(std::move(thread));
  forgotten->next = last.exchange(forgotten);
}

bool process_is_ending() { return ProcessEnd::one().ending.load(std::memory_order_relaxed); }

ExitHold::ExitHold() : was_at_work_(std::exchange(of_thread.is_at_work, true)) {
  ProcessEnd& end = ProcessEnd::one();
  is_in_another_library = true;
  end.threads.fetch_add(1);
  // As in leave(), either exit() waits for this, or this sees that it has begun.
  comes_too_late_ = end.ending.load();
}
ExitHold::~ExitHold() {
  is_in_another_library = of_thread.is_at_work = was_at_work_;
  ProcessEnd::one().leave();
}

// oneTBB crashes when exit() finalizes it on a worker of its own. So such a thread ends the process before,
// and behind the static objects of the program, since those are made later than this is said.
__attribute__((constructor(101))) static void end_before_libraries() {
  on_exit(
      [](int status, void*) {
        if (!is_in_another_library) return;
        fcloseall();  // as exit() does, without waiting for threads that read a file
        _exit(status);
      },
      nullptr);
}

void wait_before_what_is_static_now() { std::atexit(ProcessEnd::at_exit); }

bool is_forked_child() { return ProcessEnd::is_forked_child(); }

bool is_alone_in_forked_child() {
  if (!ProcessEnd::is_forked_child()) return false;
  std::error_code error;  // without /proc nobody knows
  const std::filesystem::directory_iterator threads("/proc/self/task", error);
  return !error && std::distance(begin(threads), end(threads)) == 1;
}

ForkGuard::ForkGuard() : made_in_(forks_.load(std::memory_order_relaxed)) {}

void ForkGuard::refuse(std::string_view what) {
  throw Error(
      ErrorCode::kUnavailable,
      fmt::format(
          "{}: its device or queue belongs to the process that this one was forked from, whose threads are "
          "not here; use it there alone, or fork before it is made",
          what));
}

}  // namespace coppice
