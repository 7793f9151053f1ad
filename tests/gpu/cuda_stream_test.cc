// Streams of the cuda device on the fake driver, which runs what is issued late and
// in any order that streams allow.
//
// Every case runs with several seeds. Breaks that were seen to fail here are named at the cases.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <numeric>
#include <vector>

#include "core/error.h"
#include "gpu/cuda/staging.h"
#include "gpu/wait_for_code.h"
#include "tests/gpu/fake_cuda.h"

namespace coppice::fake {
namespace {

constexpr size_t kLarge = cuda::Staging::kMostBytes + 1000;

class CudaStreamTest : public testing::TestWithParam<uint64_t> {
 protected:
  FakeCuda fake{{.seed = GetParam()}};
  Device& device = *fake.device;
  IntrusivePtr<Stream> stream = device.create_stream();
  IntrusivePtr<Buffer> buffer = device.reserve(size_t{8} << 20, size_t{2} << 20);
  unsigned char* bytes = buffer->as<unsigned char>();

  ~CudaStreamTest() override {
    stream.reset();
    buffer.reset();
  }
  Launch launch(const char* name, uint64_t items = 1) { return launch_of(fake.driver.table(), name, items); }
};

TEST_P(CudaStreamTest, RunsOperationsInTheOrderTheyWereGiven) {
  std::vector<int> order;
  fake.driver.set_kernel("test_append", [&](const LaunchBlock& block, const KernelLaunch&) {
    order.push_back(argument<int>(block));
  });
  for (int i = 0; i < 300; ++i) {
    if (i % 7 == 0) {
      stream->enqueue("append", [&, i](InStream&) { order.push_back(i); });
    } else {
      Launch append = launch("test.append");
      set_argument(append.block, i);
      stream->launch(std::move(append));
    }
  }
  EXPECT_EQ(error_of(stream->barrier()), "");
  std::vector<int> expected(300);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
}

TEST_P(CudaStreamTest, EveryStreamKeepsItsOrderWhateverTheOthersDo) {
  constexpr int kStreams = 3, kCount = 100;
  std::vector<std::vector<int>> order(kStreams);
  fake.driver.set_kernel("test_append", [&](const LaunchBlock& block, const KernelLaunch&) {
    const auto [s, i] = argument<std::array<int, 2>>(block);
    order[static_cast<size_t>(s)].push_back(i);
  });
  const auto code = code_of(fake.driver.table(), "test.append");
  std::vector<std::thread> threads;
  for (int s = 0; s < kStreams; ++s) {
    threads.emplace_back([&, s] {
      auto own = device.create_stream();
      for (int i = 0; i < kCount; ++i) {
        Launch append;
        append.name = "test.append";
        append.code = code;
        append.block = {.version = kLaunchBlockVersion};
        append.block.item_count = 1;
        set_argument(append.block, std::array{s, i});
        own->launch(std::move(append));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<int> expected(kCount);
  std::iota(expected.begin(), expected.end(), 0);
  for (const auto& own : order) EXPECT_EQ(own, expected);
}

// Breaks: a value that does not wait for those before it; an operation's function let go once it is issued.
TEST_P(CudaStreamTest, IsAvailableOnlyBehindItsEvent) {
  struct Held : RefCounted {
    explicit Held(std::atomic<bool>& f) : flag(f) {}
    ~Held() override { flag = true; }
    std::atomic<bool>& flag;
  };
  std::atomic<bool> is_let_go = false, is_capture_let_go = false;
  wait(stream->barrier());
  fake.driver.hold();
  Launch kernel = launch("test.kernel");
  kernel.keep_alive.push_back(make_intrusive<Held>(is_let_go));
  kernel.before_loop = [captured = make_intrusive<Held>(is_capture_let_go)](InStream&, LaunchBlock&) {};
  kernel.code = code_of(fake.driver.table(), "test.kernel");
  std::vector<AsyncValueRef<Chain>> values{stream->launch(std::move(kernel)), stream->fill(bytes, 1, 10),
                                           stream->copy(bytes, bytes + 100, 10), stream->barrier()};
  const int before = fake.driver.calls("cuEventQuery");
  wait_until([&] { return fake.driver.calls("cuEventQuery") > before + 5; });
  for (const auto& value : values) EXPECT_FALSE(value.is_available());
  EXPECT_FALSE(is_let_go) << "a kernel that has not run yet uses it";
  EXPECT_FALSE(is_capture_let_go);
  fake.driver.release();
  for (const auto& value : values) EXPECT_EQ(error_of(value), "");
  EXPECT_TRUE(is_let_go);
}

// Operations that come while others are under way are begun at once: the device does not run dry.
// Break: wait_oldest() that waits for the event.
TEST_P(CudaStreamTest, IssuesWhatComesWhileTheDeviceIsBusy) {
  wait(stream->barrier());
  fake.driver.hold();
  stream->fill(bytes, 1, 10);
  const int before = fake.driver.calls("cuEventQuery");
  wait_until([&] { return fake.driver.calls("cuEventQuery") > before + 300; });  // polls with pauses
  const int records = fake.driver.calls("cuEventRecord");
  const auto last = stream->fill(bytes, 2, 10);
  wait_until([&] { return fake.driver.calls("cuEventRecord") > records; });
  EXPECT_FALSE(last.is_available());
  fake.driver.release();
  EXPECT_EQ(error_of(last), "");
}

// Break: enqueue() whose operation does not wait.
TEST_P(CudaStreamTest, AFunctionSeesWhatWasCopiedBeforeIt) {
  for (const size_t size : {size_t{100}, kLarge}) {
    std::vector<unsigned char> host(size, 0);
    bool is_seen = false;
    stream->fill(bytes, 5, size);
    stream->copy(host.data(), bytes, size);
    const auto done = stream->enqueue("look", [&](InStream&) {
      is_seen = std::count(host.begin(), host.end(), 5) == static_cast<long>(size);
    });
    EXPECT_EQ(error_of(done), "");
    EXPECT_TRUE(is_seen) << size;
  }
}

// Breaks: a small copy from the caller's memory itself; a large one that is not waited for.
TEST_P(CudaStreamTest, HostMemoryIsFreeWhenAnInlineCopyReturns) {
  const size_t sizes[] = {1, 1000, cuda::Staging::kMostBytes, kLarge};
  EXPECT_EQ(error_of(stream->enqueue("copy",
                                     [&](InStream& s) {
                                       size_t at = 0;
                                       unsigned char value = 1;
                                       for (const size_t size : sizes) {
                                         std::vector<unsigned char> own(size, value++);
                                         s.wait_copy(bytes + at, own.data(), size);
                                         std::fill(own.begin(), own.end(), 99);
                                         at += size;
                                       }
                                       at = 0, value = 1;
                                       for (const size_t size : sizes) {
                                         std::vector<unsigned char> own(size, 98);
                                         s.wait_copy(own.data(), bytes + at, size);
                                         EXPECT_EQ(std::count(own.begin(), own.end(), value++),
                                                   static_cast<long>(size));
                                         at += size;
                                       }
                                     })),
            "");
}

// The ring of pinned memory goes round many times. Break: pieces given back as soon as they are taken.
TEST_P(CudaStreamTest, StagingIsNotUsedAgainBeforeItsCopyIsDone) {
  constexpr size_t kSize = 100001;
  constexpr int kCopies = 15;
  std::vector<std::vector<unsigned char>> up, down;
  for (int i = 0; i < kCopies; ++i) {
    up.emplace_back(kSize, static_cast<unsigned char>(i + 1));
    down.emplace_back(kSize, 0);
  }
  for (int round = 0; round < 3; ++round) {
    wait(stream->barrier());
    const int copies = fake.driver.calls("cuMemcpyAsync"), waits = fake.driver.calls("cuStreamSynchronize");
    fake.driver.hold();
    for (size_t i = 0; i < kCopies; ++i) stream->copy(bytes + i * kSize, up[i].data(), kSize);
    wait_until([&] {  // the ring is full, or wrongly not
      return fake.driver.calls("cuStreamSynchronize") > waits ||
             fake.driver.calls("cuMemcpyAsync") == copies + kCopies;
    });
    fake.driver.release();
    for (size_t i = 0; i < kCopies; ++i) stream->copy(down[i].data(), bytes + i * kSize, kSize);
    EXPECT_EQ(error_of(stream->barrier()), "");
  }
  EXPECT_EQ(up, down);
}

// Copies of one stream follow each other on the host's side, too. Break:
// host_memory_is_used() that does nothing.
TEST_P(CudaStreamTest, CopiesThroughHostMemoryFollowEachOther) {
  for (const size_t size : {size_t{100}, kLarge}) {
    std::vector<unsigned char> host(size, 1), other(size, 2);
    stream->copy(bytes, host.data(), size);
    stream->fill(bytes + size, 7, size);
    stream->copy(host.data(), bytes + size, size);  // 7
    stream->copy(bytes, host.data(), size);         // 7
    stream->copy(other.data(), bytes, size);
    stream->copy(host.data(), other.data(), size);  // within the host
    stream->fill(other.data(), 8, size);
    EXPECT_EQ(error_of(stream->barrier()), "");
    EXPECT_EQ(std::count(host.begin(), host.end(), 7), static_cast<long>(size));
    EXPECT_EQ(std::count(other.begin(), other.end(), 8), static_cast<long>(size));
  }
}

TEST_P(CudaStreamTest, LaterAndLargerCopiesToTheSameMemoryWin) {
  std::vector<unsigned char> host(kLarge, 0);
  stream->fill(bytes, 1, kLarge);
  stream->fill(bytes + kLarge, 2, kLarge);
  stream->copy(host.data(), bytes, 100);
  stream->copy(host.data(), bytes + kLarge, kLarge);
  EXPECT_EQ(error_of(stream->barrier()), "");
  EXPECT_EQ(std::count(host.begin(), host.end(), 2), static_cast<long>(kLarge));
}

// Break: finish() before the loop is done.
TEST_P(CudaStreamTest, RepeatsALaunchWhileItsFinishSaysSo) {
  auto* const counter = buffer->as<uint64_t>();
  uint64_t runs = 0;
  fake.driver.set_kernel("test_count", [&](const LaunchBlock& block, const KernelLaunch&) {
    ++*argument<uint64_t*>(block);
    ++runs;
  });
  Launch count = launch("test.count");
  set_argument(count.block, counter);
  std::vector<uint64_t> seen;
  count.before_loop = [&](InStream&, LaunchBlock& block) { block.item_count = 3; };
  count.needs_repeat = [&](InStream& s, LaunchBlock&) {
    EXPECT_EQ(runs, seen.size() + 1);
    uint64_t now = 0;
    s.wait_copy(&now, counter, sizeof now);
    seen.push_back(now);
    return now < 4;
  };
  EXPECT_EQ(error_of(stream->launch(std::move(count))), "");
  EXPECT_EQ(seen, (std::vector<uint64_t>{1, 2, 3, 4}));
}

TEST_P(CudaStreamTest, SizesItsGridByItemsAndByWhatRunsAtOnce) {
  const auto blocks_of = [&](const std::function<void(LaunchBlock&)>& change) {
    Launch kernel = launch("test.kernel");
    change(kernel.block);
    EXPECT_EQ(error_of(stream->launch(std::move(kernel))), "");
    const auto launches = fake.driver.launches();
    EXPECT_EQ(launches.back().threads, 128u);
    return launches.back().blocks;
  };
  constexpr unsigned kMost = 4 * 16;
  EXPECT_EQ(blocks_of([](LaunchBlock& b) { b.item_count = 1, b.flags = kThreadItems; }), 1u);
  EXPECT_EQ(blocks_of([](LaunchBlock& b) { b.item_count = 129, b.flags = kThreadItems; }), 2u);
  EXPECT_EQ(blocks_of([](LaunchBlock& b) { b.item_count = 1'000'000'000'000, b.flags = kThreadItems; }),
            kMost);
  EXPECT_EQ(blocks_of([](LaunchBlock& b) { b.item_count = 5; }), 5u);
  EXPECT_EQ(blocks_of([&](LaunchBlock& b) { b.item_count = 7, b.elements = bytes; }), 7u);
  EXPECT_EQ(blocks_of([&](LaunchBlock& b) { b.count = buffer->as<uint64_t>(), b.elements = bytes; }), kMost);
  const size_t before = fake.driver.launches().size();
  EXPECT_EQ(error_of(stream->launch(launch("test.kernel", 0))), "");
  EXPECT_EQ(fake.driver.launches().size(), before) << "no items, no launch";
}

TEST_P(CudaStreamTest, AsksForSharedMemoryAndSaysWhereThereIsNotEnough) {
  Launch kernel = launch("test.kernel");
  kernel.shared_bytes = 100 << 10;
  EXPECT_EQ(error_of(stream->launch(kernel)), "");
  EXPECT_EQ(fake.driver.launches().back().shared_bytes, 100u << 10);
  EXPECT_EQ(fake.driver.calls("cuFuncSetAttribute"), 1);
  kernel.shared_bytes = 1000;
  EXPECT_EQ(error_of(stream->launch(kernel)), "");
  EXPECT_EQ(fake.driver.calls("cuFuncSetAttribute"), 1);
  kernel.shared_bytes = 300 << 10;
  const auto refused = stream->launch(std::move(kernel));
  EXPECT_EQ(error_of(refused),
            "kernel test.kernel: its thread blocks need 307200 bytes of shared memory, and those of "
            "Fake GPU have at most 232448");
  EXPECT_EQ(refused.error().code(), ErrorCode::kOutOfRange);
}

// Break: has_status() that is always false, or that never looks again.
TEST_P(CudaStreamTest, SkipsLaunchesWhileThereIsAStatus) {
  int runs = 0;
  fake.driver.set_kernel("test_fail",
                         [](const LaunchBlock& block, const KernelLaunch&) { block.context->status = 4; });
  fake.driver.set_kernel("test_count", [&](const LaunchBlock&, const KernelLaunch&) { ++runs; });
  Launch fail = launch("test.fail");
  fail.needs_repeat = [](InStream&, LaunchBlock&) { return false; };
  stream->launch(std::move(fail));
  const auto skipped = stream->launch(launch("test.count"));
  stream->launch(launch("test.count"));
  Launch own = launch("test.count");
  own.skip_on_status = false;
  stream->launch(std::move(own));
  EXPECT_EQ(error_of(stream->barrier()), "");
  EXPECT_EQ(error_of(skipped), "");
  EXPECT_EQ(runs, 1);
  stream->enqueue("clear", [&](InStream& s) {
    const uint32_t none = 0;
    s.wait_copy(&device.context().status, &none, sizeof none);
  });
  EXPECT_EQ(error_of(stream->launch(launch("test.count"))), "");
  EXPECT_EQ(runs, 2);
}

TEST_P(CudaStreamTest, KernelsSeeTheDevicesContextAndItsSeed) {
  uint64_t seed = 0;
  const DeviceContext* context = nullptr;
  fake.driver.set_kernel("test_look", [&](const LaunchBlock& block, const KernelLaunch&) {
    context = block.context, seed = block.context->random_seed;
  });
  device.set_seed(42);
  EXPECT_EQ(error_of(device.default_stream().launch(launch("test.look"))), "");
  EXPECT_EQ(seed, 42u);
  EXPECT_EQ(context, &device.context());
}

// Break: can_begin() that does not ask for the code: hangs.
TEST_P(CudaStreamTest, ACompilationUnderWayDoesNotHoldBackWhatIsBeforeIt) {
  wait(stream->barrier());
  fake.driver.hold();
  const auto filled = stream->fill(bytes, 1, 10);
  Launch late = launch("test.kernel");
  const auto code = late.code;
  late.code = make_unconstructed_async_value<IntrusivePtr<LoadedCode>>();
  const auto compiled = late.code;
  const auto done = stream->launch(std::move(late));
  fake.driver.release();
  EXPECT_EQ(error_of(filled), "");
  EXPECT_FALSE(done.is_available());
  compiled.emplace(code.get());
  EXPECT_EQ(error_of(done), "");
}

// Break: can_begin() that asks for the launch's own code alone: hangs in make_room(), with `filled` pending.
TEST_P(CudaStreamTest, NorDoesThatOfTheCodeThatMakesRoom) {
  wait(stream->barrier());
  fake.driver.hold();
  const auto filled = stream->fill(bytes, 1, 10);
  Launch late = launch("test.kernel");
  late.room_code = make_unconstructed_async_value<IntrusivePtr<LoadedCode>>();
  const auto compiled = late.room_code;
  late.make_room = [compiled](InStream&, LaunchBlock&) { wait_for_code(compiled); };
  const auto code = late.code;
  const auto done = stream->launch(std::move(late));
  fake.driver.release();
  EXPECT_EQ(error_of(filled), "");
  EXPECT_FALSE(done.is_available());
  compiled.emplace(code.get());
  EXPECT_EQ(error_of(done), "");
}

TEST_P(CudaStreamTest, CodeAndStreamsGoWhenTheirLastLaunchIsDone) {
  for (int i = 0; i < 20; ++i) {
    auto own = device.create_stream();
    own->launch(launch("test.kernel"));  // the only reference to its code
    own->enqueue("inline", [&, stream = own.get()](InStream& s) {
      Launch inner = launch("test.kernel");
      s.run(inner);
    });
    own->copy(bytes, bytes + 1000, 100);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaStreamTest, testing::Range(uint64_t{1}, uint64_t{6}));

}  // namespace
}  // namespace coppice::fake
