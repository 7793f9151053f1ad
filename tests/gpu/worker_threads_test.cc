// core/worker_thread.h on the threads of streams and of the compiler: waiting there is refused, available or
// not.
#include <gtest/gtest.h>

#include <latch>

#include "core/error.h"
#include "core/worker_thread.h"
#include "gpu/device.h"
#include "gpu/kernel_store.h"

namespace coppice {
namespace {

const AsyncValueRef<int> kReady = make_available_async_value<int>(1);

TEST(WorkerThreadsDeathTest, AStreamsThreadMayNotWait) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto device = Device::cpu(2);
  const IntrusivePtr<Stream> stream = device->create_stream();
  constexpr const char* kRefusal = "wait\\(\\) on a stream's thread would block work that it waits for";
  EXPECT_DEATH(wait(stream->enqueue("waits", [](InStream&) { wait(kReady); })), kRefusal);
  EXPECT_DEATH(wait(stream->issue("waits", [](InStream&) { wait(kReady); })), kRefusal);
  const auto in_continuation = [&] {
    std::latch asked(1);
    const auto held = stream->enqueue("held", [&](InStream&) { asked.wait(); });
    std::latch ran(1);
    held.value().and_then([&] {
      wait(kReady);
      ran.count_down();
    });
    asked.count_down();
    ran.wait();
  };
  EXPECT_DEATH(in_continuation(), kRefusal);
}

class ParkedBackend final : public jit::CodeBackend {
 public:
  explicit ParkedBackend(std::latch& asked) : asked_(asked) {}
  std::string compile(const jit::SpecializeRequest&) override {
    asked_.wait();
    throw Error(ErrorCode::kCompile, "there is no kernel");
  }
  std::string why_not_loadable(const std::string&, const jit::SpecializeRequest&) override { return ""; }
  IntrusivePtr<LoadedCode> load(const std::string&, const jit::SpecializeRequest&) override { return {}; }

 private:
  std::latch& asked_;
};

TEST(WorkerThreadsDeathTest, ACompilersThreadMayNotWait) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto in_continuation = [](auto body) {
    std::latch asked(1), ran(1);
    KernelStore::Options options;
    options.threads = 1;
    options.backend = std::make_shared<ParkedBackend>(asked);
    KernelStore store(std::move(options));
    const KernelBitcode file{};
    jit::SpecializeRequest request;
    request.id = "parked", request.file = &file;
    const auto code = store.get(request);
    code.value().and_then([&] {
      body(store);
      ran.count_down();
    });
    asked.count_down();
    ran.wait();
  };
  EXPECT_DEATH(in_continuation([](KernelStore&) { wait(kReady); }),
               "wait\\(\\) on a compiler's thread would block work that it waits for");
}

}  // namespace
}  // namespace coppice
