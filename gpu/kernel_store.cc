// The kernels of one device (see kernel_store.h).
#include "gpu/kernel_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>

#include "core/log.h"
#include "core/process_end.h"
#include "core/work_refusal.h"
#include "core/worker_thread.h"
#include "gpu/cpu/memory_limits.h"
#include "gpu/jit/code_loader.h"
#include "gpu/jit/dump.h"
#include "gpu/wait_for_code.h"

namespace coppice {

using Clock = std::chrono::steady_clock;

namespace {

// A kernel that somebody else compiles is looked for this often. Compilations take 20 to 60 ms.
constexpr auto kRetryPeriod = std::chrono::milliseconds(5);

// The threads of every store work for this owner, whose address is only compared.
constexpr char kCompiler = 0;

// Keeps what progress() tells: counts of the process, and what they were when the last burst began.
// Numbers that change while they are read may be of two moments.
struct Counts {
  std::atomic<uint64_t> asked{0}, compiled{0}, cached{0}, failed{0};
  std::atomic<uint64_t> asked_before{0}, compiled_before{0}, cached_before{0}, failed_before{0};
  std::atomic<Clock::time_point> began{}, ended{};

  uint64_t done() const { return compiled + cached + failed; }
  void ask() {
    if (asked == done()) {
      asked_before = asked.load(), compiled_before = compiled.load();
      cached_before = cached.load(), failed_before = failed.load();
      began = Clock::now();
    }
    ++asked;
  }
  void finish(std::atomic<uint64_t>& how) {
    ended = Clock::now();
    ++how;
  }
  void take_back() {
    ended = Clock::now();
    --asked;
  }
};
constinit Counts counts;

Error ending_error(const std::string& id) {
  return Error(ErrorCode::kCancelled, "kernel " + id + ": the process ends");
}

}  // namespace

struct KernelStore::State : std::enable_shared_from_this<State> {
  explicit State(Options o) : options(std::move(o)), cache(options.folder, options.max_bytes) {
    if (!options.backend) options.backend = jit::host_backend();
  }
  // Threads keep their state: a continuation of a kernel's value, which runs on one of them, may drop the
  // device.
  static void start(const std::shared_ptr<State>& state) {
    for (int i = 0; i < state->options.threads; ++i)
      state->workers.push_back(start_thread([state] { state->work(); }));
  }
  void stop() {
    const bool is_in_child = guard.is_in_child();
    if (!is_in_child) {
      std::lock_guard lock(mutex);
      stopping = true;
      drop_unwanted();  // notifies
    }
    for (std::thread& worker : workers) {
      if (is_in_child)
        forget_thread(worker);
      else if (worker.get_id() == std::this_thread::get_id())
        worker.detach();
      else
        worker.join();
    }
  }

  struct Entry {
    std::string id;
    AsyncValueRef<LoadedCodeRef> code;
    uint64_t asked = 0;  // when it was last asked for, by the count of requests

    bool is_unused() const {
      return code.is_available() && code.is_unique() && (code.is_error() || code.get().unique());
    }
  };
  struct Compilation {
    jit::SpecializeRequest request;
    Hash128 hash;                               // by which `entries` has it
    std::vector<std::vector<std::byte>> bytes;  // of the request's constants, which belong to the caller
    std::string key;
    AsyncValueRef<LoadedCodeRef> result;
    std::optional<Clock::time_point> patience_ends;  // set when it was put off for the first time
  };
  // Says what a thread is to do: compile a kernel, or, without one, drop what is not needed any more.
  struct Job {
    std::unique_ptr<Compilation> compilation;
    std::vector<AsyncValueRef<LoadedCodeRef>> unused;
    Clock::time_point not_before{};  // of a compilation that was put off
  };
  // Counts what happened since the last summary.
  struct Burst {
    int compiled = 0, cached = 0;
    bool announced = false;
    std::optional<Clock::time_point> start;  // of the first request
    Clock::time_point end;                   // of the last compilation
  };
  Options options;  // as given; constant from the constructor on
  std::mutex mutex;
  std::unordered_map<Hash128, Entry> entries;
  uint64_t requests = 0;
  Burst burst;

  // The store has threads of its own, not TBB's: a stream blocks on a kernel, and with one TBB thread
  // nobody would be left to compile.
  std::vector<std::thread> workers;
  std::condition_variable changed;
  std::deque<Job> queue;
  int running = 0;
  bool stopping = false;
  bool is_ending = false;  // the process is: nothing is compiled any more
  jit::KernelCache cache;
  const ForkGuard guard;
  // The one thread may be the one that called exit(), so that somebody else must cancel what is queued.
  const ProcessEndWatch watch{[this]() -> std::function<void()> {
    const std::lock_guard lock(mutex);
    is_ending = true;
    changed.notify_all();
    return [state = weak_from_this().lock()] {
      if (state) state->cancel();
    };
  }};

  LoadedCodeRef load_image(const std::string& image, const jit::SpecializeRequest& request);
  LoadedCodeRef compile_anew(const jit::SpecializeRequest& request, const std::string& key);
  bool is_put_off(Compilation& c, const jit::KernelCache::Lock& lock) const;
  bool find_or_compile(Compilation& c);
  bool complete(Compilation& c);
  void unload_surplus();
  bool is_wanted(Compilation& c);
  void drop_unwanted();
  std::optional<Job> wait_for_job(std::unique_lock<std::mutex>& lock);
  void cancel();
  void work();
};

// Returns null at the end. Jobs that were put off let others pass.
std::optional<KernelStore::State::Job> KernelStore::State::wait_for_job(std::unique_lock<std::mutex>& lock) {
  const auto is_earlier = [](const Job& a, const Job& b) { return a.not_before < b.not_before; };
  for (;;) {
    if (is_ending) return std::nullopt;
    if (queue.empty()) {
      if (stopping) return std::nullopt;
      changed.wait(lock);
      continue;
    }
    const auto next = std::min_element(queue.begin(), queue.end(), is_earlier);
    if (next->not_before <= Clock::now()) {
      Job job = std::move(*next);
      queue.erase(next);
      return job;
    }
    changed.wait_until(lock, Clock::time_point(next->not_before));
  }
}

// Whoever waits for what is queued learns that it will not come.
void KernelStore::State::cancel() {
  const std::deque<Job> cancelled = [this] {
    const std::lock_guard lock(mutex);
    return std::exchange(queue, {});
  }();
  for (const Job& job : cancelled) {
    if (!job.compilation) continue;
    counts.finish(counts.failed);
    job.compilation->result.set_error(ending_error(job.compilation->request.id));
  }
}

void KernelStore::State::work() {
  const WorkerThreadScope scope(&kCompiler, "a compiler's thread");
  std::unique_lock lock(mutex);
  while (std::optional<Job> job = wait_for_job(lock)) {
    ++running;
    lock.unlock();
    const bool is_done = !job->compilation || complete(*job->compilation);
    if (is_done) job.reset();
    lock.lock();
    --running;
    if (!is_done) {
      job->not_before = Clock::now() + kRetryPeriod;
      queue.push_back(std::move(*job));
    }
    changed.notify_all();
  }
  const bool must_cancel = is_ending;  // what was put off meanwhile, too
  lock.unlock();
  if (must_cancel) cancel();
}

// Called with the mutex held. A kernel that is unused here stays so: only get() could hand it out.
void KernelStore::State::unload_surplus() {
  std::vector<std::pair<uint64_t, Hash128>> unused;
  for (const auto& [key, entry] : entries) {
    if (entry.is_unused()) unused.emplace_back(entry.asked, key);
  }
  if (unused.size() <= options.max_unused) return;
  const auto surplus_end = unused.end() - static_cast<ptrdiff_t>(options.max_unused);
  std::nth_element(unused.begin(), surplus_end, unused.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  Job job;
  for (auto it = unused.begin(); it != surplus_end; ++it) {
    job.unused.push_back(std::move(entries.extract(it->second).mapped().code));
  }
  queue.push_back(std::move(job));
  changed.notify_all();
}

// Is called with the mutex held, as the next one. Returns whether a kernel is wanted, and forgets one that
// is not: a compilation that has not begun, and that nobody but this store has the result of.
bool KernelStore::State::is_wanted(Compilation& c) {
  const auto found = entries.find(c.hash);
  const bool is_known = found != entries.end() && found->second.code == c.result;
  if (is_known) found->second.code.reset();
  const bool wanted = c.result.value().has_waiters() || !c.result.is_unique();
  if (is_known && wanted) found->second.code = c.result;
  if (is_known && !wanted) entries.erase(found);
  return wanted;
}

void KernelStore::State::drop_unwanted() {
  std::erase_if(queue, [&](const Job& job) {
    if (!job.compilation || is_wanted(*job.compilation)) return false;
    counts.take_back();
    return true;
  });
  changed.notify_all();
}

// Returns null for an image that this program cannot take.
LoadedCodeRef KernelStore::State::load_image(const std::string& image,
                                             const jit::SpecializeRequest& request) {
  std::string why = options.backend->why_not_loadable(image, request);
  try {
    if (why.empty()) return options.backend->load(image, request);
  } catch (const Error& error) {
    why = error.what();
  }
  log_debug("kernel {}: its entry in the cache cannot be used ({}) and is replaced", request.id, why);
  return {};
}

LoadedCodeRef KernelStore::State::compile_anew(const jit::SpecializeRequest& request,
                                               const std::string& key) {
  bool is_first = false;
  {
    std::lock_guard lock(mutex);
    is_first = !std::exchange(burst.announced, true);
  }
  if (is_first)
    log_info("kernels: compiling{}",
             cache.can_store() ? "; the result is kept in " + cache.folder().string() : std::string());
  jit::make_llvms_static_objects();
  const std::string image = options.backend->compile(request);
  cache.store(key, image);
  return options.backend->load(image, request);
}

bool KernelStore::State::is_put_off(Compilation& c, const jit::KernelCache::Lock& lock) const {
  if (!lock.is_elsewhere()) return false;
  if (!c.patience_ends) c.patience_ends = Clock::now() + options.patience;
  return Clock::now() < *c.patience_ends;
}

// Returns false where somebody else is compiling the kernel.
bool KernelStore::State::find_or_compile(Compilation& c) {
  std::optional<std::string> image;
  jit::KernelCache::Lock lock;
  if (!jit::is_dumping()) {  // only a compilation has something to dump
    image = c.patience_ends ? cache.load_again(c.key) : cache.load(c.key);
    if (!image) lock = cache.try_lock(c.key);
    if (is_put_off(c, lock)) return false;
    if (lock.is_held()) image = cache.load_again(c.key);  // stored between the look and the lock
  }
  LoadedCodeRef code = image ? load_image(*image, c.request) : LoadedCodeRef();
  const bool hit = static_cast<bool>(code);
  if (!hit) code = compile_anew(c.request, c.key);
  {
    std::lock_guard guard(mutex);
    ++(hit ? burst.cached : burst.compiled);
    burst.end = options.now();
  }
  counts.finish(hit ? counts.cached : counts.compiled);
  log_debug("kernel {}: {} ({})", c.request.id, hit ? "from the cache" : "compiled", c.key);
  c.result.emplace(std::move(code));
  return true;
}

// Returns false where it is to be tried again later.
bool KernelStore::State::complete(Compilation& c) {
  try {
    return find_or_compile(c);
  } catch (const Error& error) {
    counts.finish(counts.failed);
    c.result.set_error(error);
  } catch (const std::bad_alloc&) {
    counts.finish(counts.failed);
    c.result.set_error(Error(
        ErrorCode::kOutOfMemory,
        fmt::format("kernel {}: there is no memory to compile it{}", c.request.id, near_address_limit())));
  } catch (const std::system_error& error) {  // such as a thread that the system does not give
    counts.finish(counts.failed);
    c.result.set_error(
        Error(ErrorCode::kOutOfMemory, fmt::format("kernel {}: it cannot be compiled: {}{}", c.request.id,
                                                   error.code().message(), near_address_limit())));
  } catch (const std::exception& error) {
    counts.finish(counts.failed);
    c.result.set_error(Error(ErrorCode::kCompile, "kernel " + c.request.id + ": " + error.what()));
  }
  return true;
}

KernelStore::KernelStore(int threads) : KernelStore(Options{.threads = threads}) {}
KernelStore::KernelStore(Options options) : state_(std::make_shared<State>(std::move(options))) {
  try {
    State::start(state_);
  } catch (...) {
    state_->stop();
    throw;
  }
}
KernelStore::~KernelStore() { state_->stop(); }

AsyncValueRef<LoadedCodeRef> KernelStore::get(jit::SpecializeRequest request) {
  state_->guard.check("kernel " + request.id);
  const Hash128 key = specialization_key(request, state_->options.key);
  auto compilation = std::make_unique<State::Compilation>();
  compilation->request = std::move(request);
  compilation->key = key.hex();
  compilation->hash = key;
  const std::lock_guard lock(state_->mutex);
  const uint64_t asked = ++state_->requests;
  if (auto found = state_->entries.find(key); found != state_->entries.end()) {
    // A misuse names the fields of the launch that was refused, and another launch of the same layouts has
    // other fields.
    const AsyncValueRef<LoadedCodeRef>& code = found->second.code;
    const bool is_misuse =
        code.is_available() && code.is_error() && code.error().code() == ErrorCode::kInvalidArgument;
    if (!is_misuse) {
      found->second.asked = asked;
      return code;
    }
    state_->entries.erase(found);
  }
  if (state_->is_ending) return ending_error(compilation->request.id);
  state_->unload_surplus();
  for (jit::ConstantGlobal& c : compilation->request.constants) {
    compilation->bytes.emplace_back(c.bytes.begin(), c.bytes.end());
    c.bytes = compilation->bytes.back();
  }
  if (!state_->burst.start) state_->burst.start = state_->options.now();
  auto result = make_unconstructed_async_value<LoadedCodeRef>();
  compilation->result = result;
  state_->entries.emplace(key, State::Entry{compilation->request.id, result, asked});
  counts.ask();
  state_->queue.push_back({std::move(compilation), {}, {}});
  state_->changed.notify_all();
  return result;
}

void KernelStore::release_unused() {
  const std::lock_guard lock(state_->mutex);
  state_->unload_surplus();
}

void KernelStore::drop_unwanted() {
  const std::lock_guard lock(state_->mutex);
  state_->drop_unwanted();
}

void KernelStore::remove(const std::string& id) {
  std::lock_guard lock(state_->mutex);
  std::erase_if(state_->entries, [&](const auto& entry) { return entry.second.id == id; });
}

void KernelStore::wait_compiled() {
  check_may_wait("wait_compiled()");
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return state_->queue.empty() && state_->running == 0; });
  const State::Burst burst = std::exchange(state_->burst, {});
  for (const auto& [key, entry] : state_->entries) {
    if (entry.code.is_error() && !entry.is_unused()) throw entry.code.error();
  }
  lock.unlock();
  if (burst.compiled + burst.cached == 0) return;
  const double seconds = std::chrono::duration<double>(burst.end - *burst.start).count();
  if (burst.compiled > 0) {
    log_info("kernels: {} compiled in {:.2f} s, {} from the cache", burst.compiled, seconds, burst.cached);
  } else {
    log_info("kernels: {} from the cache in {:.2f} s", burst.cached, seconds);
  }
}

KernelStore::Progress KernelStore::progress() {
  Progress p{counts.asked - counts.asked_before, counts.compiled - counts.compiled_before,
             counts.cached - counts.cached_before, counts.failed - counts.failed_before};
  const bool is_over = p.done() >= p.asked;
  const Clock::time_point began = counts.began, until = is_over ? counts.ended.load() : Clock::now();
  if (p.asked > 0) p.seconds = std::chrono::duration<double>(until - began).count();
  return p;
}

void wait_for_code(const AsyncValueRef<LoadedCodeRef>& code) {
  if (WorkerThreadScope::current_owner() == &kCompiler) check_may_wait("wait_for_code()");
  const WorkerThreadScope compiled_by_others(nullptr);
  const WorkRefusal::Scope traced_or_not(nullptr);  // it ends, whatever the streams do
  wait(code);
}

jit::KernelCache& KernelStore::disk_cache() { return state_->cache; }

}  // namespace coppice
