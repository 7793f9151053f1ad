// The kernels of one device (see kernel_store.h).
#include "gpu/kernel_store.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "core/log.h"

namespace coppice {

namespace jit {
std::span<const std::byte> cpu_intrinsics_bitcode();
}

struct KernelStore::State {
  explicit State(int threads)
      : cache(jit::KernelCache::default_folder()),
        loader(jit::codegen_options().step),
        start(std::chrono::steady_clock::now()) {
    for (int i = 0; i < threads; ++i) workers.emplace_back([this] { work(); });
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
  std::mutex mutex;
  std::unordered_map<Hash128, Entry> entries;
  int compiled = 0, cached = 0;  // since the last summary
  bool announced = false;

  // Threads of its own, not TBB's: a stream blocks on a kernel, and with one TBB thread nobody would be left to compile.
  std::vector<std::thread> workers;
  std::condition_variable changed;
  std::deque<std::function<void()>> queue;
  int running = 0;
  bool stopping = false;
  jit::KernelCache cache;
  jit::CodeLoader loader;
  std::chrono::steady_clock::time_point start;

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

Hash128 specialization_key(const jit::SpecializeRequest& request) {
  Hasher hasher;
  hasher.update(request.file->bitcode).update(request.entry).update(jit::cpu_intrinsics_bitcode());
  for (const jit::ConstantGlobal& c : request.constants)
    hasher.update(c.name).update(uint64_t{c.bytes.size()}).update(c.bytes);
  hasher.update(uint32_t{request.options.step}).update(uint32_t{request.options.checks});
  hasher.update(jit::host_target().cpu).update(jit::host_target().features).update(jit::llvm_version());
  return hasher.update(jit::kPipelineVersion).update(kLaunchBlockVersion).digest();
}

void KernelStore::State::compile(const jit::SpecializeRequest& request, const Hash128& key,
                                 const AsyncValueRef<LoadedCodeRef>& result) {
  try {
    std::optional<std::string> object = cache.load(key.hex());
    const bool hit = object.has_value();
    if (!hit) {
      {
        std::lock_guard lock(mutex);
        if (!announced) log_info("kernels: compiling; the result is kept in {}", cache.folder().string());
        announced = true;
      }
      object = jit::compile_x86(request);
      cache.store(key.hex(), *object);
    }
    LoadedCodeRef code = loader.load(*object, request.entry, request.id);
    {
      std::lock_guard lock(mutex);
      ++(hit ? cached : compiled);
    }
    log_debug("kernel {}: {} ({})", request.id, hit ? "from the cache" : "compiled", key.hex());
    result.emplace(std::move(code));
  } catch (const Error& error) {
    result.set_error(error);
  } catch (const std::exception& error) {
    result.set_error(Error(ErrorCode::kCompile, "kernel " + request.id + ": " + error.what()));
  }
}

KernelStore::KernelStore(int threads) : state_(std::make_shared<State>(threads)) {}
KernelStore::~KernelStore() = default;

AsyncValueRef<LoadedCodeRef> KernelStore::get(jit::SpecializeRequest request) {
  const Hash128 key = specialization_key(request);
  AsyncValueRef<LoadedCodeRef> result;
  {
    std::lock_guard lock(state_->mutex);
    if (auto found = state_->entries.find(key); found != state_->entries.end()) return found->second.code;
    if (state_->compiled + state_->cached == 0 && !state_->announced)
      state_->start = std::chrono::steady_clock::now();
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
  for (const auto& [key, entry] : state_->entries) {
    if (entry.code.is_error()) throw entry.code.error();
  }
  if (state_->compiled + state_->cached == 0) return;
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - state_->start).count();
  if (state_->compiled > 0) {
    log_info("kernels: {} compiled in {:.2f} s, {} from the cache", state_->compiled, seconds,
             state_->cached);
  } else {
    log_info("kernels: {} from the cache in {:.2f} s", state_->cached, seconds);
  }
  state_->compiled = state_->cached = 0;
  state_->announced = false;
}

jit::KernelCache& KernelStore::disk_cache() { return state_->cache; }

}  // namespace coppice
