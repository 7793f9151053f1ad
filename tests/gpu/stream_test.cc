// gpu/stream.h on every device: order, errors and what they skip, copies, and the life of queued work.
#include "gpu/stream.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/log.h"
#include "core/trace.h"
#include "gpu/cuda/cuda_device.h"
#include "gpu/cuda/primary_contexts.h"
#include "gpu/device.h"
#include "tests/gpu/fake_driver.h"

namespace coppice {
namespace {

// Holds a stream until it is opened, so that work piles up behind it.
class Gate {
 public:
  std::function<void(InStream&)> closed() {
    return [opened = opened_.get_future().share()](InStream&) { opened.wait(); };
  }
  void open() { opened_.set_value(); }

 private:
  std::promise<void> opened_;
};

class StreamTest : public testing::TestWithParam<const char*> {
 protected:
  IntrusivePtr<Device> make_device() const {
    if (driver) return cuda::make_device(driver->table());
    return std::string(GetParam()) == "cpu" ? Device::cpu(2) : Device::named(GetParam());
  }
  // For the cuda device's own tests see cuda_stream_test.cc.
  const std::unique_ptr<fake::FakeDriver> driver =
      std::string(GetParam()) == "cuda_on_fake" ? std::make_unique<fake::FakeDriver>() : nullptr;
  IntrusivePtr<Device> device = make_device();
  IntrusivePtr<Stream> stream = device->create_stream();

  static std::string error_of(const AsyncValueRef<Chain>& done) {
    wait(done);
    return done.is_error() ? done.error().what() : "";
  }
};

TEST_P(StreamTest, RunsOperationsInTheOrderTheyWereGiven) {
  constexpr int kCount = 20000;
  std::vector<int> order;
  for (int i = 0; i < kCount; ++i) stream->enqueue("append", [&order, i](InStream&) { order.push_back(i); });
  EXPECT_EQ(error_of(stream->barrier()), "");
  std::vector<int> expected(kCount);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
}

TEST_P(StreamTest, IsNotAvailableBeforeItsOperationIsDone) {
  Gate gate;
  auto held = stream->enqueue("gate", gate.closed());
  auto after = stream->barrier();
  EXPECT_FALSE(held.value().is_available());
  EXPECT_FALSE(after.value().is_available());
  gate.open();
  EXPECT_EQ(error_of(after), "");
  EXPECT_TRUE(held.value().is_available());
}

TEST_P(StreamTest, CopiesAndFillsInOrder) {
  std::vector<unsigned char> a(1000, 1), b(1000, 2);
  stream->fill(a.data(), 7, 500);
  stream->copy(b.data(), a.data(), 1000);
  stream->fill(a.data(), 9, 1000);
  EXPECT_EQ(error_of(stream->barrier()), "");
  EXPECT_EQ(b[0], 7);
  EXPECT_EQ(b[499], 7);
  EXPECT_EQ(b[500], 1);
  EXPECT_EQ(a[999], 9);
}

TEST_P(StreamTest, SkipsWhatIsBehindAFailureUntilTheErrorIsCleared) {
  Gate gate;
  stream->enqueue("gate", gate.closed());
  int runs = 0;
  auto failed = stream->enqueue("fail", [](InStream&) { throw Error(ErrorCode::kOutOfMemory, "no more"); });
  auto behind = stream->enqueue("count", [&](InStream&) { ++runs; });
  auto copied = stream->copy(nullptr, nullptr, 0);
  gate.open();
  EXPECT_EQ(error_of(failed), "no more");
  EXPECT_EQ(error_of(behind), "no more");
  EXPECT_EQ(error_of(copied), "no more");
  EXPECT_EQ(behind.error().code(), ErrorCode::kOutOfMemory);
  EXPECT_EQ(runs, 0);
  stream->clear_error();
  EXPECT_EQ(error_of(stream->enqueue("count", [&](InStream&) { ++runs; })), "");
  EXPECT_EQ(runs, 1);
}

// An operation is skipped or not by when it was queued, not by how fast the stream is.
TEST_P(StreamTest, ClearingAnErrorDoesNotReviveWhatWasQueuedBefore) {
  for (int round = 0; round < 200; ++round) {
    Gate gate;
    int skipped_runs = 0, later_runs = 0;
    auto failed = stream->enqueue("fail", [](InStream&) { throw Error(ErrorCode::kNumeric, "bad"); });
    stream->enqueue("gate", gate.closed());
    std::vector<AsyncValueRef<Chain>> before, after;
    for (int i = 0; i < 20; ++i)
      before.push_back(stream->enqueue("before", [&](InStream&) { ++skipped_runs; }));
    wait(failed);
    stream->clear_error();
    for (int i = 0; i < 20; ++i) after.push_back(stream->enqueue("after", [&](InStream&) { ++later_runs; }));
    gate.open();
    for (const auto& done : before) ASSERT_EQ(error_of(done), "bad");
    for (const auto& done : after) ASSERT_EQ(error_of(done), "");
    ASSERT_EQ(skipped_runs, 0);
    ASSERT_EQ(later_runs, 20);
  }
}

// A program that ended without a wait lost its errors.
TEST_P(StreamTest, LogsAnErrorThatNobodyWaitedForWhenItGoes) {
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel level, std::string_view line) {
    if (level == LogLevel::kError) lines.emplace_back(line);
  });
  const auto fail = [](InStream&) { throw Error(ErrorCode::kNumeric, "it is 42"); };
  // Its value has been let go before it fails.
  const auto give = [&](std::string_view name) {
    Gate gate;
    stream->enqueue("gate", gate.closed());
    stream->enqueue(name, fail);
    gate.open();
  };
  const auto go = [&] {
    stream.reset();
    stream = device->create_stream();
    return std::exchange(lines, {});
  };
  give("first");
  EXPECT_EQ(go(), std::vector<std::string>{"an operation failed, and nobody waited for it: it is 42"});
  // Whoever holds a value of one that failed, or was skipped, can know; so does who clears the error.
  const AsyncValueRef<Chain> held = stream->enqueue("first", fail);
  EXPECT_EQ(go(), std::vector<std::string>());
  stream->enqueue("first", fail);
  EXPECT_EQ(error_of(stream->barrier()), "it is 42");
  stream->enqueue("second", fail);
  EXPECT_EQ(go(), std::vector<std::string>());
  stream->enqueue("first", fail);
  wait(stream->enqueue("a place in the order", [](InStream&) {}));
  stream->clear_error();
  stream->enqueue("works", [](InStream&) {});
  EXPECT_EQ(go(), std::vector<std::string>());
  // After a clear_error() all begins anew.
  EXPECT_EQ(error_of(stream->enqueue("first", fail)), "it is 42");
  stream->clear_error();
  give("second");
  EXPECT_EQ(go().size(), 1u);
  set_log_sink({});
}

TEST_P(StreamTest, NamesTheOperationThatThrewAnotherException) {
  EXPECT_EQ(error_of(stream->enqueue("apps.emit", [](InStream&) { throw std::runtime_error("went wrong"); })),
            "apps.emit: went wrong");
  stream->clear_error();
  auto odd = stream->enqueue("apps.emit", [](InStream&) { throw 42; });
  EXPECT_EQ(error_of(odd), "apps.emit: an exception that is no std::exception");
  EXPECT_EQ(odd.error().code(), ErrorCode::kInternal);
}

TEST_P(StreamTest, FinishesQueuedWorkWhenDestroyed) {
  int runs = 0;
  Gate gate;
  stream->enqueue("gate", gate.closed());
  for (int i = 0; i < 100; ++i) stream->enqueue("count", [&](InStream&) { ++runs; });
  gate.open();
  stream.reset();
  EXPECT_EQ(runs, 100);
}

// An operation may own the last reference to the device whose stream runs it.
TEST_P(StreamTest, MayDestroyItsDeviceFromItsOwnThread) {
  Gate gate;
  std::promise<void> destroyed;
  struct Signal {
    std::promise<void>* promise;
    ~Signal() { promise->set_value(); }
  };
  auto signal = std::make_shared<Signal>(&destroyed);
  int runs = 0;
  {
    IntrusivePtr<Device> own = make_device();
    Stream& queue = own->default_stream();
    queue.enqueue("gate", gate.closed());
    queue.enqueue("owner", [own](InStream&) {});
    queue.enqueue("count", [&runs](InStream&) { ++runs; });
    queue.enqueue("signal", [signal = std::move(signal)](InStream&) {});
  }
  gate.open();
  destroyed.get_future().wait();
  EXPECT_EQ(runs, 1);
  // The device is still going meanwhile, and uses its driver until it has let go of
  // the context; the fixture's stays.
  const auto& contexts = cuda::PrimaryContexts::of_process();
  while (driver && contexts.users(driver->table()) > 1) std::this_thread::yield();
}

// Its error is noted before the device is let go: the note was written into memory that was freed.
TEST_P(StreamTest, MayDestroyItsDeviceWithAnOperationThatFails) {
  std::promise<std::string> logged;
  set_log_sink([&](LogLevel level, std::string_view line) {
    if (level == LogLevel::kError) logged.set_value(std::string(line));
  });
  Gate gate;
  {
    IntrusivePtr<Device> own = make_device();
    own->default_stream().enqueue("gate", gate.closed());
    own->default_stream().enqueue("owner",
                                  [own](InStream&) { throw Error(ErrorCode::kNumeric, "it is 42"); });
  }
  gate.open();
  EXPECT_EQ(logged.get_future().get(), "an operation failed, and nobody waited for it: it is 42");
  set_log_sink({});
  const auto& contexts = cuda::PrimaryContexts::of_process();
  while (driver && contexts.users(driver->table()) > 1) std::this_thread::yield();
}

TEST_P(StreamTest, AFailedCompilationIsTheLaunchsError) {
  Launch launch;
  launch.name = "test.kernel";
  launch.code =
      make_error_async_value<IntrusivePtr<LoadedCode>>(Error(ErrorCode::kCompile, "kernel test.kernel: no"));
  launch.block.item_count = 1;
  bool finished = false;
  launch.needs_repeat = [&](InStream&, LaunchBlock&) { return finished = true; };
  auto done = stream->launch(std::move(launch));
  EXPECT_EQ(error_of(done), "kernel test.kernel: no");
  EXPECT_FALSE(finished);
}

INSTANTIATE_TEST_SUITE_P(Devices, StreamTest, testing::Values("cpu", "simt", "cuda_on_fake"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Stream, ItsOperationsAreEventsOfATraceInARowOfItsOwn) {
  char folder[] = "/tmp/coppice_stream_XXXXXX";
  const std::string path = std::string(mkdtemp(folder)) + "/trace.json";
  Trace::start(path);
  {
    auto device = Device::cpu(1);
    wait(device->default_stream().enqueue("traced operation", [](InStream&) {}));
    wait(device->default_stream().barrier());  // the event ends after its operation
  }
  Trace::stop();
  std::ifstream file(path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  std::filesystem::remove_all(folder);
  for (const char* part : {"\"coppice.stream\"", "\"traced operation\""})
    EXPECT_NE(text.find(part), std::string::npos) << part << text;
}

}  // namespace
}  // namespace coppice
