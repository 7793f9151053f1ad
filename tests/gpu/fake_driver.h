// A GPU driver that records and checks instead of driving: host code of the cuda device is tested against it.
//
// Device memory is host memory that nobody may touch but an operation that runs: any other access is a fault.
// Fresh memory is not zero. Copies, fills, kernels and events are only recorded; they run later, in any order
// that streams and events allow (a seed chooses): when something synchronizes, and now and then. So host code
// that forgets to wait, or frees what is still used, is found. A kernel is a function that the test gives; a
// GPU's answers can be replaced by any error at any call. What a captured stream is given runs when its graph
// is launched, as often as that is. Primitives are the host's, in stream order. One at a time in a process,
// since a driver's functions know no object. Thread-safe.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/cuda/driver.h"
#include "gpu/cuda/primitives.h"
#include "gpu/launch_block.h"
#include "tests/gpu/fake_memory.h"

namespace coppice::fake {

using cuda::Result;

struct Options {
  uint64_t seed = 1;
  size_t granule_bytes = size_t{64} << 10;
  size_t memory_bytes = size_t{64} << 20;
  int devices = 1;
  int sm = 90;
  int multiprocessors = 4;
  int blocks_per_multiprocessor = 16;
  int driver_version = 12040;
  bool has_virtual_memory = true;
  // Kernels whose PTX asks for so many thread blocks on a multiprocessor have 16 bytes of stack.
  int stack_from_blocks = 100;
};

struct KernelLaunch {
  std::string name;  // in PTX
  unsigned blocks, threads, shared_bytes;
};
using Kernel = std::function<void(const LaunchBlock&, const KernelLaunch&)>;

class FakeDriver {
 public:
  explicit FakeDriver(const Options& options = {});
  ~FakeDriver();
  FakeDriver(const FakeDriver&) = delete;
  const cuda::Driver& table() const { return table_; }

  void set_kernel(const std::string& name, Kernel kernel);
  // The same for the kernel of modules that will be loaded from exactly this PTX, whatever else has its name.
  void set_kernel_of(const std::string& ptx, Kernel kernel);
  // The nth call of a function from now on (1: the next) gives `result`. A function that frees something does
  // that all the same. A fatal result loses the device, as does a kernel that faults.
  void fail(const std::string& function, Result result, int nth = 1);
  bool has_failed() const;  // the last one that was asked for
  void fault_in(const std::string& kernel, Result result);
  // The driver's assembler answers so to the next PTX.
  void refuse_ptx(Result result, std::string log);
  // Nothing runs, and who synchronizes waits, until release().
  void hold();
  void release();

  int calls(const std::string& function) const;
  std::vector<std::string> functions_called() const;
  // All calls so far, in order: "cuGraphLaunch", ...
  std::vector<std::string> call_log() const;
  std::vector<KernelLaunch> launches() const;  // in the order in which they ran
  std::vector<std::string> loaded_ptx() const;
  size_t used_bytes() const;  // of the device's memory
  // Says what was done wrong, and what is left now: one line each, empty for a program without fault.
  std::string report() const;

 private:
  struct Functions;
  struct Stream;
  struct Event;
  struct Module;
  struct Operation;
  struct Graph;
  enum Kind : unsigned { kPlain = 0, kNeedsContext = 1, kFrees = 2 };

  Result call(const char* name, unsigned kind, const std::function<Result()>& body);
  void problem(std::string text) { problems_.push_back(std::move(text)); }
  // With mutex_ held:
  Stream* find(cuda::StreamHandle handle);
  Event* find(cuda::EventHandle handle);
  Module* find(cuda::ModuleHandle handle);
  // Answers, and remembers, that a captured stream cannot be asked for this; success for one that is not
  // captured.
  Result refuse_captured(const char* name, Stream& stream);
  void check_scratch(const Graph& graph);
  bool is_queued(const std::function<bool(const Operation&)>& test) const;
  Result push(cuda::StreamHandle stream, Operation operation);
  bool is_ready(const Stream& stream) const;
  bool run_any();
  void run(Stream& stream);
  void stir(int most);
  Result synchronize(const std::function<bool()>& is_done);
  void lose(Result result);
  bool is_used(uintptr_t at, size_t bytes) const;
  Result launch(cuda::FunctionHandle function, const KernelLaunch& launch, cuda::StreamHandle stream,
                void** parameters);
  uint64_t next_handle() { return next_handle_ += 16; }

  const Options options_;
  cuda::Driver table_;
  mutable std::mutex mutex_;
  std::condition_variable released_;
  bool is_held_ = false;
  std::mt19937_64 random_;
  FakeMemory memory_;
  uint64_t next_handle_ = 0x1000;
  int retained_ = 0;
  Result lost_ = Result::kSuccess;
  double clock_ms_ = 0;  // goes on with every kernel
  std::map<uint64_t, std::unique_ptr<Stream>> streams_;
  std::map<uint64_t, std::unique_ptr<Event>> events_;
  std::map<uint64_t, std::unique_ptr<Module>> modules_;
  std::map<uint64_t, std::unique_ptr<Graph>> graphs_, execs_;
  std::map<void*, size_t> pinned_;
  std::map<std::string, Kernel> kernels_, kernels_of_ptx_;
  std::vector<std::string> loaded_ptx_;
  std::map<std::string, Result> faults_;
  std::map<std::string, int> calls_;
  std::vector<const char*> call_log_;
  std::vector<KernelLaunch> launches_;
  std::vector<std::string> problems_;
  std::string failing_;
  Result failure_ = Result::kSuccess;
  int calls_to_failure_ = 0;
  Result refusal_ = Result::kSuccess;
  std::string refusal_log_;
};

}  // namespace coppice::fake
