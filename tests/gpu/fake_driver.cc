// A GPU driver that records and checks (see fake_driver.h). The file is long because the driver has that many
// functions: each is a few lines, and they are read one by one.
#include "tests/gpu/fake_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/check.h"
#include "gpu/cuda/driver_error.h"
#include "gpu/cuda/primary_contexts.h"
#include "gpu/jit/specializer.h"
#include "gpu/primitives.h"
#include "tests/gpu/fake_graph.h"

namespace coppice::fake {
namespace {

FakeDriver* current_driver = nullptr;  // a driver's functions know no object
constexpr uint64_t kContext = 0x100;
thread_local cuda::ContextHandle current_context = nullptr;
thread_local std::unique_lock<std::mutex>* call_lock = nullptr;          // of the thread's call under way
constexpr int kRegisters = 255, kStackBytes = 16, kOwnSharedBytes = 32;  // of every kernel
constexpr double kKernelMs = 0.25;                                       // that every kernel takes
constexpr int kSharedBytes = 48 << 10, kMaxSharedBytes = 227 << 10;

template <class Handle>
uint64_t number(Handle handle) {
  return reinterpret_cast<uint64_t>(handle);
}

}  // namespace

struct FakeDriver::Event {
  uint64_t recorded = 0, reached = 0;  // how often
  bool is_captured = false;            // last recorded while its stream was captured
  bool has_time = false;               // made to be timed
  double reached_ms = 0;
};
struct FakeDriver::Operation {
  struct Use {
    uintptr_t at;
    size_t bytes;
  };
  std::string what;
  std::function<void()> run;
  std::vector<Use> uses{};
  uint64_t event = 0;       // recorded or waited for
  uint64_t wait_for = 0;    // how often the event must have been reached
  uint64_t module = 0;      // of a kernel
  uint64_t exec = 0;        // the graph it is launched with
  void* scratch = nullptr;  // of a primitive
};
struct FakeDriver::Graph {
  std::vector<Operation> operations;
  GraphEdges edges;  // between them
};
struct FakeDriver::Stream {
  std::deque<Operation> queue;
  std::unique_ptr<Graph> capture;
  GraphEdges::Nodes dependencies;  // of the next operation that is captured
  bool is_capture_invalid = false;
};
struct FakeDriver::Module {
  std::set<std::string> kernels;
  std::map<uint64_t, std::string> functions;
  Kernel kernel;  // empty: by its name
  int shared_bytes = kSharedBytes;
  int blocks = 0;  // that it asks for on a multiprocessor
};

// Every function takes the lock, notes the call, checks what all have in common, and fails where the test
// said so.
Result FakeDriver::call(const char* name, unsigned kind, const std::function<Result()>& body) {
  std::unique_lock lock(mutex_);
  call_lock = &lock;
  ++calls_[name];
  call_log_.push_back(name);
  const bool needs_context = (kind & kNeedsContext) != 0;
  if (needs_context && number(current_context) != kContext) {
    problem(fmt::format("{}: without the device's context", name));
    return Result::kInvalidContext;
  }
  if (calls_to_failure_ > 0 && failing_ == name && --calls_to_failure_ == 0) {
    if (cuda::is_fatal(failure_)) lose(failure_);
    if ((kind & kFrees) != 0) body();
    return failure_;
  }
  if (lost_ != Result::kSuccess && needs_context) {
    if ((kind & kFrees) != 0) body();
    return lost_;
  }
  return body();
}

FakeDriver::Stream* FakeDriver::find(cuda::StreamHandle handle) {
  const auto found = streams_.find(number(handle));
  if (found == streams_.end()) problem("a stream that is not there");
  return found == streams_.end() ? nullptr : found->second.get();
}
FakeDriver::Event* FakeDriver::find(cuda::EventHandle handle) {
  const auto found = events_.find(number(handle));
  if (found == events_.end()) problem("an event that is not there");
  return found == events_.end() ? nullptr : found->second.get();
}
FakeDriver::Module* FakeDriver::find(cuda::ModuleHandle handle) {
  const auto found = modules_.find(number(handle));
  if (found == modules_.end()) problem("a module that is not there");
  return found == modules_.end() ? nullptr : found->second.get();
}

Result FakeDriver::push(cuda::StreamHandle handle, Operation operation) {
  Stream* const stream = find(handle);
  if (stream == nullptr) return Result::kInvalidHandle;
  for (const Operation::Use& use : operation.uses) {
    if (memory_.is_reserved(use.at) && !memory_.is_accessible(use.at, use.bytes)) {
      problem(fmt::format("{} uses device memory that is not mapped", operation.what));
      return Result::kInvalidValue;
    }
  }
  if (stream->capture) {
    if (stream->is_capture_invalid) return Result::kStreamCaptureInvalidated;
    Graph& graph = *stream->capture;
    graph.operations.push_back(std::move(operation));
    stream->dependencies = {graph.edges.add(std::move(stream->dependencies))};
    return Result::kSuccess;
  }
  stream->queue.push_back(std::move(operation));
  stir(2);
  return Result::kSuccess;
}

Result FakeDriver::refuse_captured(const char* name, Stream& stream) {
  if (!stream.capture) return Result::kSuccess;
  problem(fmt::format("{}: the stream is being captured", name));
  stream.is_capture_invalid = true;
  return Result::kStreamCaptureUnsupported;
}

void FakeDriver::check_scratch(const Graph& graph) {
  for (size_t later = 0; later < graph.operations.size(); ++later) {
    void* const scratch = graph.operations[later].scratch;
    for (size_t earlier = 0; scratch != nullptr && earlier < later; ++earlier) {
      if (graph.operations[earlier].scratch == scratch && !graph.edges.is_behind(later, earlier))
        problem("two primitives of a graph that nothing orders share their scratch memory");
    }
  }
}

bool FakeDriver::is_queued(const std::function<bool(const Operation&)>& test) const {
  return std::any_of(streams_.begin(), streams_.end(), [&](const auto& entry) {
    const auto& queue = entry.second->queue;
    return std::any_of(queue.begin(), queue.end(), test);
  });
}

bool FakeDriver::is_ready(const Stream& stream) const {
  if (stream.queue.empty()) return false;
  const Operation& next = stream.queue.front();
  if (next.wait_for == 0) return true;
  const auto event = events_.find(next.event);
  return event == events_.end() || event->second->reached >= next.wait_for;
}

void FakeDriver::run(Stream& stream) {
  const Operation operation = std::move(stream.queue.front());
  stream.queue.pop_front();
  if (operation.run) {
    const FakeMemory::Access access(memory_);
    operation.run();
  }
  if (operation.event == 0 || operation.wait_for != 0) return;
  Event& event = *events_.at(operation.event);
  ++event.reached;
  event.reached_ms = clock_ms_;
}

bool FakeDriver::run_any() {
  std::vector<Stream*> ready;
  for (const auto& [handle, stream] : streams_) {
    if (is_ready(*stream)) ready.push_back(stream.get());
  }
  if (is_held_ || ready.empty()) return false;
  run(*ready[random_() % ready.size()]);
  return true;
}

// Now and then something runs although nobody waits for it.
void FakeDriver::stir(int most) {
  for (uint64_t n = random_() % static_cast<uint64_t>(most + 1); n > 0 && run_any(); --n) continue;
}

Result FakeDriver::synchronize(const std::function<bool()>& is_done) {
  while (!is_done()) {
    released_.wait(*call_lock, [this] { return !is_held_; });
    if (lost_ == Result::kSuccess && !run_any() && !is_done()) {
      problem("a stream waits for what never comes");
      return Result::kUnknown;
    }
    if (lost_ != Result::kSuccess) return lost_;
  }
  return lost_;
}

// Operations that are queued never run.
void FakeDriver::lose(Result result) {
  if (lost_ == Result::kSuccess) lost_ = result;
  for (const auto& [handle, stream] : streams_) stream->queue.clear();
}

bool FakeDriver::is_used(uintptr_t at, size_t bytes) const {
  for (const auto& [handle, stream] : streams_) {
    for (const Operation& operation : stream->queue) {
      for (const Operation::Use& use : operation.uses) {
        if (use.at < at + bytes && at < use.at + use.bytes) return true;
      }
    }
  }
  return false;
}

Result FakeDriver::launch(cuda::FunctionHandle function, const KernelLaunch& given, cuda::StreamHandle stream,
                          void** parameters) {
  KernelLaunch launch = given;
  uint64_t module = 0;
  for (const auto& [handle, candidate] : modules_) {
    const auto found = candidate->functions.find(number(function));
    if (found == candidate->functions.end()) continue;
    module = handle;
    launch.name = found->second;
  }
  if (module == 0 || launch.blocks == 0 || launch.threads == 0 || launch.threads > 1024 ||
      static_cast<int>(launch.shared_bytes) > modules_.at(module)->shared_bytes) {
    problem(fmt::format("cuLaunchKernel: {} with {} blocks of {} threads and {} bytes of shared memory",
                        module == 0 ? "no kernel" : launch.name, launch.blocks, launch.threads,
                        launch.shared_bytes));
    return Result::kInvalidValue;
  }
  LaunchBlock block;  // as the driver does: the parameter is copied by the call
  std::memcpy(&block, parameters[0], sizeof block);
  Operation operation{launch.name, nullptr};
  operation.module = module;
  const auto use = [&](const void* pointer, size_t bytes) {
    const auto at = reinterpret_cast<uintptr_t>(pointer);
    if (memory_.is_reserved(at)) operation.uses.push_back({at, bytes});
  };
  use(block.context, sizeof(DeviceContext)), use(block.count, sizeof(uint64_t)), use(block.elements, 1);
  use(block.neighbours, 1);
  for (const void* tree : block.trees) use(tree, 1);
  operation.run = [this, block, launch, own = modules_.at(module)->kernel] {
    launches_.push_back(launch);
    clock_ms_ += kKernelMs;
    if (const auto fault = faults_.find(launch.name); fault != faults_.end()) return lose(fault->second);
    // As the entry of every compiled kernel does.
    if ((block.flags & kRecorded) != 0 &&
        is_skipped(block, block.context->status, block.context->replayed_from))
      return;
    if (own) return own(block, launch);
    if (const auto kernel = kernels_.find(launch.name); kernel != kernels_.end())
      kernel->second(block, launch);
  };
  return push(stream, std::move(operation));
}

// The driver's functions: each finds the one fake.
struct FakeDriver::Functions {
  static FakeDriver& self() { return *current_driver; }

  static Result init(unsigned flags) {
    return self().call("cuInit", kPlain,
                       [=] { return flags == 0 ? Result::kSuccess : Result::kInvalidValue; });
  }
  static Result driver_get_version(int* version) {
    return self().call("cuDriverGetVersion", kPlain, [=] {
      *version = self().options_.driver_version;
      return Result::kSuccess;
    });
  }
  // Keeps one text for each number for ever, since a driver's texts are kept so.
  static const char* text_of(Result result, const char* format) {
    static std::map<std::pair<Result, std::string>, std::string> texts;
    std::string& text = texts[{result, format}];
    if (text.empty()) text = fmt::format(fmt::runtime(format), static_cast<uint32_t>(result));
    return text.c_str();
  }
  static Result error_text(Result result, const char** to, const char* format) {
    const std::lock_guard lock(self().mutex_);
    *to = nullptr;
    if (static_cast<uint32_t>(result) > 999) return Result::kInvalidValue;
    *to = text_of(result, format);
    return Result::kSuccess;
  }
  static Result get_error_name(Result result, const char** name) {
    return error_text(result, name, "CUDA_ERROR_{}");
  }
  static Result get_error_string(Result result, const char** text) {
    return error_text(result, text, "answer {}");
  }
  static Result device_get_count(int* count) {
    return self().call("cuDeviceGetCount", kPlain, [=] {
      *count = self().options_.devices;
      return Result::kSuccess;
    });
  }
  static Result device_get(cuda::DeviceId* device, int ordinal) {
    return self().call("cuDeviceGet", kPlain, [=] {
      *device = ordinal;
      return ordinal < self().options_.devices ? Result::kSuccess : Result::kInvalidDevice;
    });
  }
  static Result device_get_name(char* name, int bytes, cuda::DeviceId) {
    return self().call("cuDeviceGetName", kPlain, [=] {
      std::snprintf(name, static_cast<size_t>(bytes), "Fake GPU");
      return Result::kSuccess;
    });
  }
  static Result device_get_attribute(int* value, cuda::DeviceAttribute attribute, cuda::DeviceId) {
    return self().call("cuDeviceGetAttribute", kPlain, [=] {
      const Options& o = self().options_;
      switch (attribute) {
        case cuda::DeviceAttribute::kMultiprocessorCount:
          *value = o.multiprocessors;
          return Result::kSuccess;
        case cuda::DeviceAttribute::kComputeCapabilityMajor:
          *value = o.sm / 10;
          return Result::kSuccess;
        case cuda::DeviceAttribute::kComputeCapabilityMinor:
          *value = o.sm % 10;
          return Result::kSuccess;
        case cuda::DeviceAttribute::kMaxSharedMemoryPerBlockOptin:
          *value = kMaxSharedBytes;
          return Result::kSuccess;
        case cuda::DeviceAttribute::kClockRate:
          *value = 1'980'000;
          return Result::kSuccess;
        case cuda::DeviceAttribute::kMemoryClockRate:
          *value = 2'619'000;
          return Result::kSuccess;
        case cuda::DeviceAttribute::kGlobalMemoryBusWidth:
          *value = 5120;
          return Result::kSuccess;
        case cuda::DeviceAttribute::kMaxThreadsPerMultiprocessor:
          *value = 2048;
          return Result::kSuccess;
        case cuda::DeviceAttribute::kVirtualMemoryManagementSupported:
          *value = o.has_virtual_memory;
          return Result::kSuccess;
      }
      return Result::kInvalidValue;
    });
  }
  static Result device_total_mem(size_t* bytes, cuda::DeviceId) {
    return self().call("cuDeviceTotalMem_v2", kPlain, [=] {
      *bytes = self().memory_.total_bytes();
      return Result::kSuccess;
    });
  }
  static Result device_primary_ctx_retain(cuda::ContextHandle* context, cuda::DeviceId) {
    return self().call("cuDevicePrimaryCtxRetain", kPlain, [=] {
      if (self().lost_ != Result::kSuccess) return self().lost_;
      ++self().retained_;
      *context = reinterpret_cast<cuda::ContextHandle>(kContext);
      return Result::kSuccess;
    });
  }
  static Result device_primary_ctx_release(cuda::DeviceId) {
    return self().call("cuDevicePrimaryCtxRelease_v2", kFrees, [] {
      if (--self().retained_ == 0) self().lost_ = Result::kSuccess;
      return Result::kSuccess;
    });
  }
  static Result ctx_set_current(cuda::ContextHandle context) {
    return self().call("cuCtxSetCurrent", kPlain, [=] {
      current_context = context;
      return Result::kSuccess;
    });
  }
  static Result ctx_get_current(cuda::ContextHandle* context) {
    return self().call("cuCtxGetCurrent", kPlain, [=] {
      *context = current_context;
      return Result::kSuccess;
    });
  }
  static Result stream_create(cuda::StreamHandle* stream, unsigned flags) {
    return self().call("cuStreamCreate", kNeedsContext, [=] {
      if (flags != cuda::kStreamNonBlocking) self().problem("cuStreamCreate: a stream that waits for others");
      const uint64_t handle = self().next_handle();
      self().streams_[handle] = std::make_unique<Stream>();
      *stream = reinterpret_cast<cuda::StreamHandle>(handle);
      return Result::kSuccess;
    });
  }
  static Result stream_destroy(cuda::StreamHandle stream) {
    return self().call("cuStreamDestroy_v2", kNeedsContext | kFrees, [=] {
      const Stream* const found = self().find(stream);
      if (found == nullptr) return Result::kInvalidHandle;
      if (!found->queue.empty()) self().problem("cuStreamDestroy: work is queued");
      if (found->capture) self().problem("cuStreamDestroy: the stream is being captured");
      self().streams_.erase(number(stream));
      return Result::kSuccess;
    });
  }
  static Result stream_synchronize(cuda::StreamHandle stream) {
    return self().call("cuStreamSynchronize", kNeedsContext, [=] {
      Stream* const found = self().find(stream);
      if (found == nullptr) return Result::kInvalidHandle;
      const Result refused = self().refuse_captured("cuStreamSynchronize", *found);
      if (refused != Result::kSuccess) return refused;
      return self().synchronize([found] { return found->queue.empty(); });
    });
  }
  static Result captured_event(const char* name) {
    self().problem(fmt::format("{}: the event was recorded in a captured stream", name));
    return Result::kCapturedEvent;
  }
  static Result stream_wait_event(cuda::StreamHandle stream, cuda::EventHandle event, unsigned) {
    return self().call("cuStreamWaitEvent", kNeedsContext, [=] {
      const Event* const found = self().find(event);
      if (found == nullptr) return Result::kInvalidHandle;
      if (found->is_captured) return captured_event("cuStreamWaitEvent");
      if (found->recorded == 0) return Result::kSuccess;
      Operation operation{"cuStreamWaitEvent", nullptr};
      operation.event = number(event);
      operation.wait_for = found->recorded;
      return self().push(stream, std::move(operation));
    });
  }
  static Result event_create(cuda::EventHandle* event, unsigned flags) {
    return self().call("cuEventCreate", kNeedsContext, [=] {
      const uint64_t handle = self().next_handle();
      self().events_[handle] = std::make_unique<Event>();
      self().events_[handle]->has_time = (flags & cuda::kEventDisableTiming) == 0;
      *event = reinterpret_cast<cuda::EventHandle>(handle);
      return Result::kSuccess;
    });
  }
  static Result event_record(cuda::EventHandle event, cuda::StreamHandle stream) {
    return self().call("cuEventRecord", kNeedsContext, [=] {
      Event* const found = self().find(event);
      if (found == nullptr) return Result::kInvalidHandle;
      Stream* const of = self().find(stream);
      if (of == nullptr) return Result::kInvalidHandle;
      found->is_captured = of->capture != nullptr;
      if (found->is_captured) return Result::kSuccess;  // a place in the graph, and no more
      ++found->recorded;
      Operation operation{"cuEventRecord", nullptr};
      operation.event = number(event);
      return self().push(stream, std::move(operation));
    });
  }
  static Result event_query(cuda::EventHandle event) {
    return self().call("cuEventQuery", kNeedsContext, [=] {
      const Event* const found = self().find(event);
      if (found == nullptr) return Result::kInvalidHandle;
      if (found->is_captured) return captured_event("cuEventQuery");
      self().stir(3);
      if (self().lost_ != Result::kSuccess) return self().lost_;
      return found->reached >= found->recorded ? Result::kSuccess : Result::kNotReady;
    });
  }
  static Result event_synchronize(cuda::EventHandle event) {
    return self().call("cuEventSynchronize", kNeedsContext, [=] {
      const Event* const found = self().find(event);
      if (found == nullptr) return Result::kInvalidHandle;
      if (found->is_captured) return captured_event("cuEventSynchronize");
      return self().synchronize([found] { return found->reached >= found->recorded; });
    });
  }
  static Result event_elapsed_time(float* milliseconds, cuda::EventHandle begin, cuda::EventHandle end) {
    return self().call("cuEventElapsedTime", kNeedsContext, [=] {
      const Event *const first = self().find(begin), *const last = self().find(end);
      if (first == nullptr || last == nullptr) return Result::kInvalidHandle;
      for (const Event* event : {first, last}) {
        if (event->is_captured) return captured_event("cuEventElapsedTime");
        if (!event->has_time || event->recorded == 0) {
          self().problem("cuEventElapsedTime: an event without a time");
          return Result::kInvalidHandle;
        }
        if (event->reached < event->recorded) return Result::kNotReady;
      }
      *milliseconds = static_cast<float>(last->reached_ms - first->reached_ms);
      return Result::kSuccess;
    });
  }
  static Result event_destroy(cuda::EventHandle event) {
    return self().call("cuEventDestroy_v2", kNeedsContext | kFrees, [=] {
      const Event* const found = self().find(event);
      if (found == nullptr) return Result::kInvalidHandle;
      // A lost device reaches nothing any more, so its events stay pending.
      if (found->reached < found->recorded && self().lost_ == Result::kSuccess)
        self().problem("cuEventDestroy: the event is pending");
      self().events_.erase(number(event));
      return Result::kSuccess;
    });
  }
  static Result stream_begin_capture(cuda::StreamHandle stream, cuda::CaptureMode mode) {
    return self().call("cuStreamBeginCapture_v2", kNeedsContext, [=] {
      Stream* const found = self().find(stream);
      if (found == nullptr) return Result::kInvalidHandle;
      if (found->capture || mode != cuda::CaptureMode::kRelaxed) {
        self().problem("cuStreamBeginCapture: twice, or in another mode");
        return Result::kIllegalState;
      }
      found->capture = std::make_unique<Graph>();
      found->dependencies.clear();
      found->is_capture_invalid = false;
      return Result::kSuccess;
    });
  }
  static Result stream_get_capture_info(cuda::StreamHandle stream, cuda::CaptureStatus* status,
                                        unsigned long long* id, cuda::GraphHandle* graph,
                                        const cuda::GraphNodeHandle** dependencies, size_t* count) {
    return self().call("cuStreamGetCaptureInfo_v2", kNeedsContext, [=] {
      const Stream* const found = self().find(stream);
      if (found == nullptr) return Result::kInvalidHandle;
      *id = 1, *graph = nullptr;
      *status = !found->capture             ? cuda::CaptureStatus::kNone
                : found->is_capture_invalid ? cuda::CaptureStatus::kInvalidated
                                            : cuda::CaptureStatus::kActive;
      *dependencies = found->dependencies.data(), *count = found->dependencies.size();
      return Result::kSuccess;
    });
  }
  static Result stream_update_capture_dependencies(cuda::StreamHandle stream,
                                                   cuda::GraphNodeHandle* dependencies, size_t count,
                                                   unsigned flags) {
    return self().call("cuStreamUpdateCaptureDependencies", kNeedsContext, [=] {
      Stream* const found = self().find(stream);
      if (found == nullptr) return Result::kInvalidHandle;
      if (!found->capture || flags != cuda::kSetCaptureDependencies) {
        self().problem("cuStreamUpdateCaptureDependencies: the stream is not captured, or they are added");
        return Result::kIllegalState;
      }
      GraphEdges::Nodes nodes(dependencies, dependencies + count);
      for (const cuda::GraphNodeHandle node : nodes) {
        if (found->capture->edges.has(node)) continue;
        self().problem("cuStreamUpdateCaptureDependencies: a node that is not there");
        return Result::kInvalidValue;
      }
      found->dependencies = std::move(nodes);
      return Result::kSuccess;
    });
  }
  static Result end_capture(cuda::StreamHandle stream, cuda::GraphHandle* graph) {
    Stream* const found = self().find(stream);
    if (found == nullptr) return Result::kInvalidHandle;
    if (!found->capture) {
      self().problem("cuStreamEndCapture: the stream is not captured");
      return Result::kIllegalState;
    }
    std::unique_ptr<Graph> made = std::move(found->capture);
    if (found->is_capture_invalid) return Result::kStreamCaptureInvalidated;
    const uint64_t handle = self().next_handle();
    self().graphs_[handle] = std::move(made);
    *graph = reinterpret_cast<cuda::GraphHandle>(handle);
    return Result::kSuccess;
  }
  static Result stream_end_capture(cuda::StreamHandle stream, cuda::GraphHandle* graph) {
    *graph = nullptr;
    const Result result =
        self().call("cuStreamEndCapture", kNeedsContext | kFrees, [=] { return end_capture(stream, graph); });
    if (result != Result::kSuccess && *graph != nullptr) {  // the answer that the test asked for
      const std::lock_guard lock(self().mutex_);
      self().graphs_.erase(number(std::exchange(*graph, nullptr)));
    }
    return result;
  }
  static Result graph_instantiate(cuda::GraphExecHandle* exec, cuda::GraphHandle graph,
                                  unsigned long long flags) {
    return self().call("cuGraphInstantiateWithFlags", kNeedsContext, [=] {
      const auto found = self().graphs_.find(number(graph));
      if (found == self().graphs_.end() || flags != 0) {
        self().problem("cuGraphInstantiate: a graph that is not there, or flags");
        return Result::kInvalidValue;
      }
      const uint64_t handle = self().next_handle();
      auto made = std::make_unique<Graph>(*found->second);
      for (Operation& operation : made->operations) operation.exec = handle;
      self().check_scratch(*made);
      self().execs_[handle] = std::move(made);
      *exec = reinterpret_cast<cuda::GraphExecHandle>(handle);
      return Result::kSuccess;
    });
  }
  // Its operations are queued one by one: those of other streams come between them.
  static Result graph_launch(cuda::GraphExecHandle exec, cuda::StreamHandle stream) {
    return self().call("cuGraphLaunch", kNeedsContext, [=] {
      Stream* const to = self().find(stream);
      const auto found = self().execs_.find(number(exec));
      if (to == nullptr || found == self().execs_.end()) {
        self().problem("cuGraphLaunch: a graph or a stream that is not there");
        return Result::kInvalidValue;
      }
      if (to->capture) {
        self().problem("cuGraphLaunch: inside a capture");
        return Result::kStreamCaptureUnsupported;
      }
      for (const size_t i : found->second->edges.any_order(self().random_)) {
        const Result result = self().push(stream, found->second->operations[i]);
        if (result != Result::kSuccess) return result;
      }
      return Result::kSuccess;
    });
  }
  static Result graph_exec_destroy(cuda::GraphExecHandle exec) {
    return self().call("cuGraphExecDestroy", kNeedsContext | kFrees, [=] {
      const uint64_t handle = number(exec);
      if (self().execs_.erase(handle) == 0) {
        self().problem("cuGraphExecDestroy: a graph that is not there");
        return Result::kInvalidValue;
      }
      if (self().is_queued([=](const Operation& operation) { return operation.exec == handle; }))
        self().problem("cuGraphExecDestroy: the graph is queued");
      return Result::kSuccess;
    });
  }
  static Result graph_destroy(cuda::GraphHandle graph) {
    return self().call("cuGraphDestroy", kNeedsContext | kFrees, [=] {
      if (self().graphs_.erase(number(graph)) == 0) {
        self().problem("cuGraphDestroy: a graph that is not there");
        return Result::kInvalidValue;
      }
      return Result::kSuccess;
    });
  }
  static Result mem_get_info(size_t* free, size_t* total) {
    return self().call("cuMemGetInfo_v2", kNeedsContext, [=] {
      *total = self().memory_.total_bytes();
      *free = *total - self().memory_.used_bytes();
      return Result::kSuccess;
    });
  }
  static Result mem_get_allocation_granularity(size_t* bytes, const cuda::AllocationProperties* properties,
                                               cuda::Granularity) {
    return self().call("cuMemGetAllocationGranularity", kPlain, [=] {
      if (properties->location.type != cuda::LocationType::kDevice)
        self().problem("memory that is not the device's");
      *bytes = self().options_.granule_bytes;
      return Result::kSuccess;
    });
  }
  // Returns what memory says about the call, with the call's name.
  template <class Body>
  static Result memory_call(const char* name, unsigned kind, const Body& body) {
    return self().call(name, kind, [&] {
      std::string problem;
      const Result result = body(problem);
      if (!problem.empty()) self().problem(fmt::format("{}: {}", name, problem));
      return result;
    });
  }
  static Result mem_address_reserve(cuda::DeviceAddress* at, size_t bytes, size_t, cuda::DeviceAddress wanted,
                                    unsigned long long flags) {
    return memory_call("cuMemAddressReserve", kNeedsContext, [=](std::string& problem) {
      if (wanted != 0 || flags != 0) problem = "wrong arguments";
      uintptr_t found = 0;
      const Result result = self().memory_.reserve(&found, bytes);
      *at = found;
      return result;
    });
  }
  static Result mem_address_free(cuda::DeviceAddress at, size_t bytes) {
    return memory_call("cuMemAddressFree", kNeedsContext | kFrees,
                       [=](std::string& problem) { return self().memory_.free_range(at, bytes, problem); });
  }
  static Result mem_create(cuda::MemoryHandle* memory, size_t bytes,
                           const cuda::AllocationProperties* properties, unsigned long long flags) {
    return memory_call("cuMemCreate", kNeedsContext, [=](std::string& problem) {
      if (properties->type != cuda::AllocationType::kPinned || flags != 0) problem = "wrong arguments";
      uint64_t handle = 0;
      const Result result = self().memory_.create(&handle, bytes, problem);
      *memory = handle;
      return result;
    });
  }
  static Result mem_release(cuda::MemoryHandle memory) {
    return memory_call("cuMemRelease", kNeedsContext | kFrees,
                       [=](std::string& problem) { return self().memory_.release(memory, problem); });
  }
  static Result mem_map(cuda::DeviceAddress at, size_t bytes, size_t offset, cuda::MemoryHandle memory,
                        unsigned long long flags) {
    return memory_call("cuMemMap", kNeedsContext, [=](std::string& problem) {
      if (offset != 0 || flags != 0) problem = "wrong arguments";
      return self().memory_.map(at, bytes, memory, problem);
    });
  }
  static Result mem_unmap(cuda::DeviceAddress at, size_t bytes) {
    return memory_call("cuMemUnmap", kNeedsContext | kFrees, [=](std::string& problem) {
      if (self().is_used(at, bytes)) {
        problem = "queued work uses the memory";
        return Result::kInvalidValue;
      }
      return self().memory_.unmap(at, bytes, problem);
    });
  }
  static Result mem_set_access(cuda::DeviceAddress at, size_t bytes, const cuda::AccessDescriptor* access,
                               size_t count) {
    return memory_call("cuMemSetAccess", kNeedsContext, [=](std::string& problem) {
      if (count != 1 || access->flags != cuda::AccessFlags::kReadWrite) problem = "wrong arguments";
      return self().memory_.allow(at, bytes, problem);
    });
  }
  static Result mem_alloc_host(void** memory, size_t bytes) {
    return self().call("cuMemAllocHost_v2", kNeedsContext, [=] {
      *memory = ::operator new(bytes);
      std::memset(*memory, 0x5B, bytes);
      self().pinned_[*memory] = bytes;
      return Result::kSuccess;
    });
  }
  static Result mem_free_host(void* memory) {
    return self().call("cuMemFreeHost", kNeedsContext | kFrees, [=] {
      const auto found = self().pinned_.find(memory);
      if (found == self().pinned_.end()) {
        self().problem("cuMemFreeHost: memory that is not the driver's");
        return Result::kInvalidValue;
      }
      if (self().is_used(reinterpret_cast<uintptr_t>(memory), found->second))
        self().problem("cuMemFreeHost: queued work uses the memory");
      self().pinned_.erase(found);
      ::operator delete(memory);
      return Result::kSuccess;
    });
  }
  static Result memcpy_async(cuda::DeviceAddress to, cuda::DeviceAddress from, size_t bytes,
                             cuda::StreamHandle stream) {
    return self().call("cuMemcpyAsync", kNeedsContext, [=] {
      Operation operation{
          "cuMemcpyAsync",
          [=] { std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes); }};
      operation.uses = {{to, bytes}, {from, bytes}};
      return self().push(stream, std::move(operation));
    });
  }
  static Result memset_d8_async(cuda::DeviceAddress to, unsigned char byte, size_t bytes,
                                cuda::StreamHandle stream) {
    return self().call("cuMemsetD8Async", kNeedsContext, [=] {
      if (!self().memory_.is_reserved(to)) self().problem("cuMemsetD8Async: memory that is not the device's");
      Operation operation{"cuMemsetD8Async", [=] { std::memset(reinterpret_cast<void*>(to), byte, bytes); }};
      operation.uses = {{to, bytes}};
      return self().push(stream, std::move(operation));
    });
  }
  static Result module_load_data_ex(cuda::ModuleHandle* module, const void* image, unsigned num_options,
                                    cuda::JitOption* options, void** values) {
    return self().call("cuModuleLoadDataEx", kNeedsContext, [=] {
      FakeDriver& fake = self();
      const auto say = [&](cuda::JitOption buffer, cuda::JitOption size, const std::string& text) {
        char* log = nullptr;
        size_t bytes = 0;
        for (unsigned i = 0; i < num_options; ++i) {
          if (options[i] == buffer) log = static_cast<char*>(values[i]);
          if (options[i] == size) bytes = reinterpret_cast<size_t>(values[i]);
        }
        if (log != nullptr) std::snprintf(log, bytes, "%s", text.c_str());
      };
      say(cuda::JitOption::kInfoLogBuffer, cuda::JitOption::kInfoLogBufferSizeBytes,
          fmt::format("ptxas info    : Used {} registers\n", kRegisters));
      if (fake.refusal_ != Result::kSuccess) {
        say(cuda::JitOption::kErrorLogBuffer, cuda::JitOption::kErrorLogBufferSizeBytes, fake.refusal_log_);
        return std::exchange(fake.refusal_, Result::kSuccess);
      }
      auto made = std::make_unique<Module>();
      const std::string_view text = static_cast<const char*>(image);
      for (size_t at = text.find(".entry "); at != text.npos; at = text.find(".entry ", at + 1))
        made->kernels.emplace(text.substr(at + 7, text.find('(', at) - at - 7));
      constexpr std::string_view kBlocks = ".minnctapersm ";
      if (const size_t at = text.find(kBlocks); at != text.npos)
        made->blocks = std::atoi(text.data() + at + kBlocks.size());
      fake.loaded_ptx_.emplace_back(text);
      if (const auto known =
              fake.kernels_of_ptx_.find(jit::with_blocks_per_multiprocessor(fake.loaded_ptx_.back(), 1));
          known != fake.kernels_of_ptx_.end())
        made->kernel = known->second;
      const uint64_t handle = fake.next_handle();
      fake.modules_[handle] = std::move(made);
      *module = reinterpret_cast<cuda::ModuleHandle>(handle);
      return Result::kSuccess;
    });
  }
  static Result module_unload(cuda::ModuleHandle module) {
    return self().call("cuModuleUnload", kNeedsContext | kFrees, [=] {
      if (self().find(module) == nullptr) return Result::kInvalidHandle;
      const auto uses = [=](const Operation& operation) { return operation.module == number(module); };
      if (self().is_queued(uses)) self().problem("cuModuleUnload: a kernel of it is queued");
      for (const auto& [handle, graph] : self().execs_) {
        if (std::any_of(graph->operations.begin(), graph->operations.end(), uses))
          self().problem("cuModuleUnload: a kernel of it is in a graph");
      }
      self().modules_.erase(number(module));
      return Result::kSuccess;
    });
  }
  static Result module_get_function(cuda::FunctionHandle* function, cuda::ModuleHandle module,
                                    const char* name) {
    return self().call("cuModuleGetFunction", kNeedsContext, [=] {
      Module* const found = self().find(module);
      if (found == nullptr || !found->kernels.contains(name)) return Result::kNotFound;
      const uint64_t handle = self().next_handle();
      found->functions[handle] = name;
      *function = reinterpret_cast<cuda::FunctionHandle>(handle);
      return Result::kSuccess;
    });
  }
  static Module* module_of(cuda::FunctionHandle function) {
    for (const auto& [handle, module] : self().modules_) {
      if (module->functions.contains(number(function))) return module.get();
    }
    self().problem("a function that is not there");
    return nullptr;
  }
  static int stack_bytes(cuda::FunctionHandle function) {
    const Module* const module = module_of(function);
    return module != nullptr && module->blocks >= self().options_.stack_from_blocks ? kStackBytes : 0;
  }
  static Result func_get_attribute(int* value, cuda::FunctionAttribute which, cuda::FunctionHandle function) {
    return self().call("cuFuncGetAttribute", kNeedsContext, [=] {
      *value = which == cuda::FunctionAttribute::kNumRegs          ? kRegisters
               : which == cuda::FunctionAttribute::kLocalSizeBytes ? stack_bytes(function)
                                                                   : kOwnSharedBytes;
      return module_of(function) != nullptr ? Result::kSuccess : Result::kInvalidHandle;
    });
  }
  static Result func_set_attribute(cuda::FunctionHandle function, cuda::FunctionAttribute attribute,
                                   int value) {
    return self().call("cuFuncSetAttribute", kNeedsContext, [=] {
      Module* const module = module_of(function);
      if (module == nullptr || attribute != cuda::FunctionAttribute::kMaxDynamicSharedSizeBytes ||
          value > kMaxSharedBytes)
        return Result::kInvalidValue;
      module->shared_bytes = value;
      return Result::kSuccess;
    });
  }
  static Result occupancy_max_active_blocks(int* blocks, cuda::FunctionHandle function, int,
                                            size_t shared_bytes) {
    return self().call("cuOccupancyMaxActiveBlocksPerMultiprocessor", kNeedsContext, [=] {
      const Module* const module = module_of(function);
      if (module == nullptr) return Result::kInvalidHandle;
      *blocks = static_cast<int>(shared_bytes) > module->shared_bytes
                    ? 0
                    : self().options_.blocks_per_multiprocessor;
      return Result::kSuccess;
    });
  }
  static Result launch_kernel(cuda::FunctionHandle function, unsigned grid_x, unsigned grid_y,
                              unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                              unsigned shared_bytes, cuda::StreamHandle stream, void** parameters,
                              void** extra) {
    return self().call("cuLaunchKernel", kNeedsContext, [=] {
      if (grid_y != 1 || grid_z != 1 || block_y != 1 || block_z != 1 || extra != nullptr)
        self().problem("cuLaunchKernel: wrong arguments");
      return self().launch(function, {"", grid_x, block_x, shared_bytes}, stream, parameters);
    });
  }

  // ---- primitives: as much scratch as a sort would need, all of it overwritten
  static unsigned primitive_scratch(const PrimitiveCall& call, size_t* bytes) {
    *bytes = 16 * call.n;
    return static_cast<unsigned>(
        self().call("primitive_scratch", kNeedsContext, [] { return Result::kSuccess; }));
  }
  static unsigned run_primitive(const PrimitiveCall& call, void* stream, void* scratch, size_t bytes) {
    return static_cast<unsigned>(self().call("run_primitive", kNeedsContext, [=] {
      if (bytes == 0 || bytes < 16 * call.n ||
          !self().memory_.is_reserved(reinterpret_cast<uintptr_t>(scratch)))
        self().problem("a primitive without scratch memory");
      Operation operation{std::string(cuda::name_of(call.kind)), [=] {
                            std::memset(scratch, 0x5C, bytes);
                            primitives::run_on_host(
                                call, [](const void* address) { return const_cast<void*>(address); },
                                scratch);
                          }};
      const auto use = [&](const void* pointer, size_t used) {
        if (pointer != nullptr && used > 0)
          operation.uses.push_back({reinterpret_cast<uintptr_t>(pointer), used});
      };
      const bool is_wide = call.type == PrimitiveCall::Type::kU64 || call.type == PrimitiveCall::Type::kF64;
      use(scratch, bytes), use(call.in, call.n * (is_wide ? 8 : 4)), use(call.first, 1), use(call.second, 1);
      use(call.result, is_wide ? 8 : 4), use(call.starts, (call.count + 1) * sizeof(uint32_t));
      operation.scratch = scratch;
      return self().push(static_cast<cuda::StreamHandle>(stream), std::move(operation));
    }));
  }
  static Error primitive_error(unsigned answer, std::string_view what) {
    return cuda::driver_error(self().table_, static_cast<Result>(answer), what);
  }
};

FakeDriver::FakeDriver(const Options& options)
    : options_(options), random_(options.seed), memory_(options.granule_bytes, options.memory_bytes) {
  COPPICE_CHECK(current_driver == nullptr, "one fake driver at a time");
  current_driver = this;
#define COPPICE_FAKE(member, symbol, parameters) table_.member = &Functions::member;
  COPPICE_CUDA_FUNCTIONS(COPPICE_FAKE)
  COPPICE_CUDA_FIRST_VERSIONS(COPPICE_FAKE)
#undef COPPICE_FAKE
  static const cuda::Primitives primitives{&Functions::primitive_scratch, &Functions::run_primitive,
                                           &Functions::primitive_error};
  table_.primitives = &primitives;
}

FakeDriver::~FakeDriver() {
  cuda::PrimaryContexts::of_process().release_all(table_);
  std::lock_guard lock(mutex_);  // a last call may be on its way out
  for (const auto& [memory, bytes] : pinned_) ::operator delete(memory);
  current_driver = nullptr;
  current_context = nullptr;
}

void FakeDriver::set_kernel(const std::string& name, Kernel kernel) {
  const std::lock_guard lock(mutex_);
  kernels_[name] = std::move(kernel);
}
void FakeDriver::set_kernel_of(const std::string& ptx, Kernel kernel) {
  const std::lock_guard lock(mutex_);
  kernels_of_ptx_[ptx] = std::move(kernel);
}
void FakeDriver::fail(const std::string& function, Result result, int nth) {
  const std::lock_guard lock(mutex_);
  failing_ = function, failure_ = result, calls_to_failure_ = nth;
}
bool FakeDriver::has_failed() const {
  const std::lock_guard lock(mutex_);
  return calls_to_failure_ == 0;
}
void FakeDriver::fault_in(const std::string& kernel, Result result) {
  const std::lock_guard lock(mutex_);
  faults_[kernel] = result;
}
void FakeDriver::refuse_ptx(Result result, std::string log) {
  const std::lock_guard lock(mutex_);
  refusal_ = result, refusal_log_ = std::move(log);
}
void FakeDriver::hold() {
  const std::lock_guard lock(mutex_);
  is_held_ = true;
}
void FakeDriver::release() {
  {
    const std::lock_guard lock(mutex_);
    is_held_ = false;
  }
  released_.notify_all();
}

int FakeDriver::calls(const std::string& function) const {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(function);
  return found == calls_.end() ? 0 : found->second;
}
std::vector<std::string> FakeDriver::functions_called() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, count] : calls_) names.push_back(name);
  return names;
}
std::vector<std::string> FakeDriver::call_log() const {
  const std::lock_guard lock(mutex_);
  return {call_log_.begin(), call_log_.end()};
}
std::vector<KernelLaunch> FakeDriver::launches() const {
  const std::lock_guard lock(mutex_);
  return launches_;
}
std::vector<std::string> FakeDriver::loaded_ptx() const {
  const std::lock_guard lock(mutex_);
  return loaded_ptx_;
}
size_t FakeDriver::used_bytes() const {
  const std::lock_guard lock(mutex_);
  return memory_.used_bytes();
}

std::string FakeDriver::report() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const std::string& problem : problems_) text += problem + "\n";
  const auto left = [&](size_t count, const char* what) {
    if (count > 0) text += fmt::format("{} {} are left\n", count, what);
  };
  // One is kept for the life of the process (gpu/cuda/primary_contexts.h).
  left(static_cast<size_t>(retained_ > 1 ? retained_ : 0), "contexts");
  left(streams_.size(), "streams"), left(events_.size(), "events"), left(modules_.size(), "modules");
  left(pinned_.size(), "pinned allocations");
  left(graphs_.size(), "graphs"), left(execs_.size(), "executable graphs");
  return text + memory_.leaks();
}

}  // namespace coppice::fake
