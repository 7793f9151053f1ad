// A profiler hears of a stream of the cuda device by NVTX. This is a program of its own: NVTX looks for a
// profiler once in a process, at its first call.
#include "gpu/cuda/nvtx.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/trace.h"
#include "tests/gpu/fake_cuda.h"

namespace coppice::fake {
namespace {

using Lines = std::vector<std::string>;

// Returns what the injected library noted since the last call.
Lines take_log() {
  void* const library = dlopen(COPPICE_NVTX_INJECTION, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return {"the library was not injected"};
  const auto take = reinterpret_cast<void (*)(std::string*)>(dlsym(library, "coppice_test_take_nvtx_log"));
  std::string text;
  take(&text);
  dlclose(library);
  std::istringstream in(text);
  Lines lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

class Nvtx : public testing::Test {
 protected:
  static void SetUpTestSuite() { setenv("NVTX_INJECTION64_PATH", COPPICE_NVTX_INJECTION, 1); }
};

// Seen to fail without the pop.
TEST_F(Nvtx, HasARangeForEveryOperationOnTheStreamsThread) {
  FakeCuda fake;
  EXPECT_TRUE(cuda::trace_to_nvtx()) << "the device was made";
  Stream& stream = fake.device->default_stream();
  auto buffer = fake.device->reserve(1000, 1000);
  const Launch kernel = launch_of(fake.driver.table(), "test.kernel");
  Launch inner = launch_of(fake.driver.table(), "test.inner");
  const std::string long_name(300, 'n');
  const Lines first = take_log();
  EXPECT_EQ(std::count_if(first.begin(), first.end(),
                          [](const auto& line) { return line.find(": domain coppice") != line.npos; }),
            1);

  const std::string_view text = "test.copied and more";
  Launch named = kernel;
  named.name = text.substr(0, 11);
  stream.launch(kernel);
  stream.launch(named);
  stream.fill(buffer->data(), 1, 10);
  stream.enqueue("outer", [&](InStream& s) { s.run(inner); });
  stream.enqueue(long_name, [](InStream&) { throw std::runtime_error("fails"); });
  stream.fill(buffer->data(), 1, 10);  // skipped
  stream.clear_error();
  EXPECT_EQ(error_of(stream.barrier()), "");
  const Lines expected{"push test.kernel",
                       "pop",
                       "push test.copied",
                       "pop",
                       "push fill",
                       "pop",
                       "push outer",
                       "push test.inner",
                       "pop",
                       "pop",
                       "push " + long_name.substr(0, 255),
                       "pop",
                       "push barrier",
                       "pop"};
  Lines found = take_log();
  for (std::string& line : found) {
    EXPECT_EQ(line.rfind("coppice.cuda: ", 0), 0u) << line;
    line = line.substr(std::min(line.size(), std::string_view("coppice.cuda: ").size()));
  }
  EXPECT_EQ(found, expected);
}

// Seen to fail when a scope that is told whether to record told the listener, too.
TEST_F(Nvtx, IsToldOfScopesOfAllThreadsAndOnce) {
  EXPECT_TRUE(cuda::trace_to_nvtx());
  take_log();
  pthread_setname_np(pthread_self(), "here");
  {
    const TraceScope stage("stage");
    const TraceScope again("stage", false);  // told by the one before
  }
  EXPECT_EQ(take_log(), (Lines{"here: push stage", "here: pop"}));
}

}  // namespace
}  // namespace coppice::fake
