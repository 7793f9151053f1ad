// The kernels of one device (see kernel_store.h).
#include "gpu/kernel_store.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>

#include "core/log.h"
#include "gpu/jit/code_loader.h"
#include "gpu/jit/dump.h"

namespace coppice {

using Clock = std::chrono::steady_clock;

struct KernelStore::State {
  explicit State(Options o) : options(std::move(o)), cache(options.folder, options.max_bytes) {
    if (!options.backend) options.backend = jit::host_backend();
    for (int i = 0; i < options.threads; ++i) workers.emplace_back([this] { work(); });
  }
  ~State() {
    {
      std::lock_guard lock(mutex);
      stopping = true;
    }
    changed.notify_all();
    for (std::thread& worker : workers) worker.join();
  }

  struct Entry {
    std::string id;
    AsyncValueRef<LoadedCodeRef> code;
  };
  // What happened since the last summary.
  struct Burst {
    int compiled = 0, cached = 0;
    bool announced = false;
    std::optional<Clock::time_point> start;  // of the first request
    Clock::time_point end;                   // of the last compilation
  };
  Options options;  // as given; constant from the constructor on
  std::mutex mutex;
  std::unordered_map<Hash128, Entry> entries;
  Burst burst;

  // Threads of its own, not TBB's: a stream blocks on a kernel, and with one TBB thread nobody would be left to compile.
  std::vector<std::thread> workers;
  std::condition_variable changed;
  std::deque<std::function<void()>> queue;
  int running = 0;
  bool stopping = false;
  jit::KernelCache cache;

  LoadedCodeRef load_cached(const jit::SpecializeRequest& request, const std::string& key);
  LoadedCodeRef compile_anew(const jit::SpecializeRequest& request, const std::string& key);
  void compile(const jit::SpecializeRequest& request, const Hash128& key,
               const AsyncValueRef<LoadedCodeRef>& result);
  void work();
};

void KernelStore::State::work() {
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [&] { return stopping || !queue.empty(); });
    if (queue.empty()) return;
    std::function<void()> task = std::move(queue.front());
    queue.pop_front();
    ++running;
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
    --running;
    changed.notify_all();
  }
}

// Null when there is no entry, or one that this program cannot take.
LoadedCodeRef KernelStore::State::load_cached(const jit::SpecializeRequest& request, const std::string& key) {
  if (jit::is_dumping()) return {};  // only a compilation has something to dump
  const std::optional<std::string> image = cache.load(key);
  if (!image) return {};
  std::string why = options.backend->why_not_loadable(*image, request);
  try {
    if (why.empty()) return options.backend->load(*image, request);
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
  if (is_first) log_info("kernels: compiling; the result is kept in {}", cache.folder().string());
  const std::string image = options.backend->compile(request);
  cache.store(key, image);
  return options.backend->load(image, request);
}

void KernelStore::State::compile(const jit::SpecializeRequest& request, const Hash128& key,
                                 const AsyncValueRef<LoadedCodeRef>& result) {
  try {
    LoadedCodeRef code = load_cached(request, key.hex());
    const bool hit = static_cast<bool>(code);
    if (!hit) code = compile_anew(request, key.hex());
    {
      std::lock_guard lock(mutex);
      ++(hit ? burst.cached : burst.compiled);
      burst.end = options.now();
    }
    log_debug("kernel {}: {} ({})", request.id, hit ? "from the cache" : "compiled", key.hex());
    result.emplace(std::move(code));
  } catch (const Error& error) {
    result.set_error(error);
  } catch (const std::exception& error) {
    result.set_error(Error(ErrorCode::kCompile, "kernel " + request.id + ": " + error.what()));
  }
}

KernelStore::KernelStore(int threads) : KernelStore(Options{.threads = threads}) {}
KernelStore::KernelStore(Options options) : state_(std::make_shared<State>(std::move(options))) {}
KernelStore::~KernelStore() = default;

AsyncValueRef<LoadedCodeRef> KernelStore::get(jit::SpecializeRequest request) {
  const Hash128 key = specialization_key(request, state_->options.key);
  AsyncValueRef<LoadedCodeRef> result;
  {
    std::lock_guard lock(state_->mutex);
    if (auto found = state_->entries.find(key); found != state_->entries.end()) return found->second.code;
    if (!state_->burst.start) state_->burst.start = state_->options.now();
    result = make_unconstructed_async_value<LoadedCodeRef>();
    state_->entries.emplace(key, State::Entry{request.id, result});
  }
  // The constants' bytes belong to the caller; the task needs its own.
  struct Task {
    jit::SpecializeRequest request;
    std::vector<std::vector<std::byte>> bytes;
  };
  auto task = std::make_shared<Task>(Task{std::move(request), {}});
  for (jit::ConstantGlobal& c : task->request.constants) {
    task->bytes.emplace_back(c.bytes.begin(), c.bytes.end());
    c.bytes = task->bytes.back();
  }
  State* state = state_.get();
  {
    std::lock_guard lock(state->mutex);
    state->queue.push_back([state, task, key, result] { state->compile(task->request, key, result); });
  }
  state->changed.notify_all();
  return result;
}

void KernelStore::remove(const std::string& id) {
  std::lock_guard lock(state_->mutex);
  std::erase_if(state_->entries, [&](const auto& entry) { return entry.second.id == id; });
}

void KernelStore::wait_compiled() {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return state_->queue.empty() && state_->running == 0; });
  const State::Burst burst = std::exchange(state_->burst, {});
  for (const auto& [key, entry] : state_->entries) {
    if (entry.code.is_error()) throw entry.code.error();
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

jit::KernelCache& KernelStore::disk_cache() { return state_->cache; }

}  // namespace coppice
