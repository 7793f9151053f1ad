// Recordings of the cuda device on the fake driver: captured while they are given,
// one graph launch for each replay.
//
// Every case runs with several seeds, since the fake runs what is issued late and in any order that streams
// allow. Breaks that were seen to fail here are named at the cases.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "core/error.h"
#include "gpu/host_access.h"
#include "gpu/stream_primitives.h"
#include "tests/gpu/fake_cuda.h"

namespace coppice::fake {
namespace {

using Log = std::vector<std::string>;

class CudaRecordingTest : public testing::TestWithParam<uint64_t> {
 protected:
  FakeCuda fake{{.seed = GetParam()}, {.exact_errors = false}};
  Device& device = *fake.device;
  IntrusivePtr<Stream> stream = device.create_stream();
  IntrusivePtr<Buffer> buffer = device.reserve(size_t{1} << 20, size_t{1} << 20);
  uint32_t* const words = buffer->as<uint32_t>();

  CudaRecordingTest() {
    fake.driver.set_kernel("test_add", [this](const LaunchBlock& block, const KernelLaunch&) {
      blocks.push_back(block);
      numbers.push_back(launch_number(block));
      ++*argument<uint32_t*>(block);
    });
  }
  ~CudaRecordingTest() override {
    stream.reset();
    buffer.reset();
  }
  Launch launch(const char* name, uint32_t* to) {
    Launch launch = launch_of(fake.driver.table(), name);
    set_argument(launch.block, to);
    return launch;
  }
  IntrusivePtr<Recording> record(const std::function<void(InStream&)>& give) {
    IntrusivePtr<Recording> recording;
    const auto done = stream->issue("test.record", [&](InStream& s) { recording = s.record(give); });
    EXPECT_EQ(error_of(done), "");
    return recording;
  }
  AsyncValueRef<Chain> replay(const IntrusivePtr<Recording>& recording) {
    return stream->issue("test.replay", [this, recording](InStream& s) { s.replay(*recording); });
  }
  // words[0] = 0, and two launches that add 1 to it and to words[1].
  void give_two(InStream& s) {
    s.fill(words, 0, sizeof *words);
    Launch first = launch("test.add", words), second = launch("test.add", words + 1);
    s.run(first);
    s.run(second);
  }

  std::vector<LaunchBlock> blocks;  // of kernels that ran
  std::vector<uint64_t> numbers;
};

Log between(const Log& log, const std::string& begin, const std::string& end) {
  const auto from = std::find(log.begin(), log.end(), begin);
  return {from, std::find(from, log.end(), end)};
}

// Break: a stream that is not captured.
TEST_P(CudaRecordingTest, IsOneGraphLaunchForEachReplayInTheStreamsOrder) {
  const auto recording = record([&](InStream& s) { give_two(s); });
  EXPECT_EQ(recording->launches, 2u);
  EXPECT_EQ(wait_read(*stream, words, 2), (std::vector<uint32_t>{0, 0})) << "only recorded";
  EXPECT_TRUE(blocks.empty());
  const int launches = fake.driver.calls("cuLaunchKernel");
  for (uint32_t round = 1; round < 4; ++round) {
    stream->fill(words, 0xFF, sizeof *words);
    replay(recording);
    EXPECT_EQ(wait_read(*stream, words, 2), (std::vector<uint32_t>{1, round}));
    EXPECT_EQ(fake.driver.calls("cuGraphLaunch"), static_cast<int>(round));
  }
  EXPECT_EQ(fake.driver.calls("cuLaunchKernel"), launches);
  EXPECT_EQ(fake.driver.calls("cuGraphInstantiateWithFlags"), 1);
}

TEST_P(CudaRecordingTest, ItsLaunchesAreMarkedAndNumberedFromTheReplaysFirst) {
  stream->launch(launch("test.add", words));  // number 0
  const auto recording = record([&](InStream& s) { give_two(s); });
  replay(recording);
  stream->launch(launch("test.add", words));
  EXPECT_EQ(error_of(replay(recording)), "");
  EXPECT_EQ(numbers, (std::vector<uint64_t>{0, 1, 2, 3, 4, 5}));
  for (const size_t i : {size_t{1}, size_t{2}, size_t{4}, size_t{5}}) {
    EXPECT_EQ(blocks[i].flags & kRecorded, kRecorded);
    EXPECT_EQ(blocks[i].number, (i - 1) % 3);
  }
  EXPECT_EQ(blocks[0].flags & kRecorded, 0u);
}

TEST_P(CudaRecordingTest, NothingIsReadBackCopiedOrMarkedWhileRecording) {
  FakeDriver& driver = fake.driver;
  Launch last = launch("test.add", words);
  last.needs_repeat = [](InStream&, LaunchBlock&) { return true; };
  const auto recording = record([&](InStream& s) {
    give_two(s);
    s.run(last);
    auto* const total = static_cast<uint64_t*>(s.result());
    primitives::exclusive_scan(s, words, words + 100, 50, total);
  });
  // Waiting for the captured stream is what the fake itself refuses.
  for (const std::string& call :
       between(driver.call_log(), "cuStreamBeginCapture_v2", "cuStreamEndCapture")) {
    for (const char* other : {"cuEvent", "cuMemcpy", "cuStreamWait", "cuGraph"})
      EXPECT_EQ(call.find(other), call.npos) << call;
  }
  EXPECT_EQ(error_of(replay(recording)), "");
}

// Break: replay() that does not note that kernels may have changed the status.
TEST_P(CudaRecordingTest, AStatusSkipsTheLaunchesBehindItInTheRecordingAndAfterIt) {
  fake.driver.set_kernel("test_fail", [](const LaunchBlock& block, const KernelLaunch&) {
    block.context->status = status_word(DeviceStatus::kStop, launch_number(block));
  });
  const auto recording = record([&](InStream& s) {
    Launch before = launch("test.add", words), fail = launch("test.fail", words);
    Launch behind = launch("test.add", words);
    s.run(before), s.run(fail), s.run(behind);
  });
  EXPECT_EQ(error_of(stream->launch(launch("test.add", words + 1))), "");
  replay(recording);
  replay(recording);
  stream->launch(launch("test.add", words));
  EXPECT_EQ(wait_read(*stream, words, 2), (std::vector<uint32_t>{1, 1}));
}

struct Held : RefCounted {
  explicit Held(std::atomic<bool>& f) : flag(f) {}
  ~Held() override { flag = true; }
  std::atomic<bool>& flag;
};

// Breaks: a replay that keeps no reference; used memory that goes when the recording is done.
TEST_P(CudaRecordingTest, KeepsWhatItUsesUntilItsLastReplayIsDone) {
  std::atomic<bool> is_let_go = false;
  auto recording = record([&](InStream& s) {
    Launch add = launch("test.add", words);  // the only reference to its code
    add.keep_alive.push_back(make_intrusive<Held>(is_let_go));
    s.run(add);
  });
  EXPECT_EQ(error_of(replay(recording)), "");
  EXPECT_FALSE(is_let_go);
  const auto replays = fake.driver.calls("cuGraphLaunch");
  fake.driver.hold();
  const auto done = replay(std::exchange(recording, nullptr));
  wait_until([&] { return fake.driver.calls("cuGraphLaunch") > replays; });
  EXPECT_FALSE(is_let_go);
  EXPECT_EQ(fake.driver.calls("cuGraphExecDestroy"), 0);
  fake.driver.release();
  EXPECT_EQ(error_of(done), "");
  EXPECT_TRUE(is_let_go);
  EXPECT_EQ(fake.driver.calls("cuGraphExecDestroy"), 1);
  EXPECT_EQ(fake.driver.calls("cuGraphDestroy"), 1);
}

// Breaks: drop_recording() that does not end the capture; one that leaves the graph.
TEST_P(CudaRecordingTest, WhatFailsInARecordingLeavesTheStreamAsItWas) {
  std::atomic<bool> is_let_go = false;
  const auto give = [&](const std::function<void()>& fail) {
    const auto done = stream->issue("test.record", [&](InStream& s) {
      s.record([&](InStream& r) {
        give_two(r);
        Launch add = launch("test.add", words);
        is_let_go = false;
        add.keep_alive.push_back(make_intrusive<Held>(is_let_go));
        r.run(add);
        fail();
        r.run(add);
      });
    });
    const std::string error = error_of(done);
    EXPECT_TRUE(is_let_go);
    stream->clear_error();
    EXPECT_EQ(error_of(replay(record([&](InStream& s) { give_two(s); }))), "");
    return error;
  };
  EXPECT_EQ(give([] { throw Error(ErrorCode::kNumeric, "of the user"); }), "of the user");
  EXPECT_EQ(give([&] { fake.driver.fail("cuLaunchKernel", Result::kStreamCaptureInvalidated); }),
            "device cuda: launching kernel test.add: answer 901 (CUDA_ERROR_901)");
  EXPECT_EQ(give([&] {
              fake.driver.fail("cuStreamEndCapture", Result::kStreamCaptureInvalidated);
              throw Error(ErrorCode::kNumeric, "of the user");
            }),
            "of the user");
  EXPECT_EQ(give([&] { fake.driver.fail("cuStreamEndCapture", Result::kStreamCaptureInvalidated); }),
            "device cuda: cuStreamEndCapture: answer 901 (CUDA_ERROR_901)");
  EXPECT_EQ(give([&] { fake.driver.fail("cuGraphInstantiateWithFlags", Result::kOutOfMemory); }),
            "device cuda: cuGraphInstantiate: answer 2 (CUDA_ERROR_2)");
}

// The driver refuses to wait for a captured stream, and gives its graph up. Break: wait_idle() of all
// streams.
TEST_P(CudaRecordingTest, MemoryComesAndGoesWhileAStreamIsRecorded) {
  fake.driver.set_kernel("test_use", [](const LaunchBlock& block, const KernelLaunch&) {
    std::memset(const_cast<void*>(block.elements), 3, 100);
  });
  auto other = device.create_stream();
  const auto recording = record([&](InStream& s) {
    give_two(s);
    auto own = device.reserve(size_t{1} << 20, 1000);
    own->grow(size_t{300} << 10);
    Launch use = launch("test.use", nullptr);
    use.block.elements = own->data();
    other->launch(std::move(use));  // under way, or not yet, when the memory goes
    std::latch is_done(1);          // not by wait(), which a stream's thread may not
    other->barrier().value().and_then([&](AsyncValue* value) {
      EXPECT_FALSE(value->is_error());
      is_done.count_down();
    });
    is_done.wait();
    own->discard(0, 100), own->shrink(10), own->release();
  });
  replay(recording);
  EXPECT_EQ(wait_read(*stream, words, 2), (std::vector<uint32_t>{1, 1}));
}

// Its scratch memory and result are its own. Break: those of the stream it was recorded on.
TEST_P(CudaRecordingTest, IsReplayedOnAnotherStreamWhenItsOwnHasGone) {
  constexpr size_t kCount = 1000;
  std::vector<uint32_t> ones(kCount, 1), sums(kCount);
  std::iota(sums.begin(), sums.end(), 0u);
  EXPECT_EQ(error_of(stream->copy(words, ones.data(), kCount * sizeof(uint32_t))), "");
  uint64_t* total = nullptr;
  auto recording = record([&](InStream& s) {
    total = static_cast<uint64_t*>(s.result());
    primitives::exclusive_scan(s, words, words + kCount, kCount, total);
  });
  stream = device.create_stream();
  replay(recording);
  EXPECT_EQ(wait_read(*stream, words + kCount, kCount), sums);
  EXPECT_EQ(wait_read(*stream, total, 1), std::vector<uint64_t>{kCount});
}

// Parts come behind those that they name. Breaks: a part that comes behind none of them, or behind the one
// before it always.
TEST_P(CudaRecordingTest, PartsComeBehindThoseThatTheyName) {
  std::vector<uint32_t> order;
  fake.driver.set_kernel("test_note", [&](const LaunchBlock& block, const KernelLaunch&) {
    order.push_back(argument<uint32_t>(block));
  });
  const auto note = [&](InStream& s, uint32_t number) {
    Launch note = launch("test.note", words);
    set_argument(note.block, number);
    s.run(note);
  };
  bool are_any_order = false;
  const auto recording = record([&](InStream& s) {
    s.begin_part({}), note(s, 0), note(s, 1);
    s.begin_part({}), note(s, 2);
    s.begin_part(std::vector<uint32_t>{1}), note(s, 3);
    s.begin_part(std::vector<uint32_t>{0});  // with nothing in it
    s.begin_part(std::vector<uint32_t>{3}), note(s, 4);
    s.begin_part(std::vector<uint32_t>{0, 2}), note(s, 5);
  });
  for (int replays = 0; replays < 20; ++replays) {
    order.clear();
    EXPECT_EQ(error_of(replay(recording)), "");
    ASSERT_EQ(order.size(), 6u);
    const auto at = [&](uint32_t n) { return std::find(order.begin(), order.end(), n) - order.begin(); };
    EXPECT_TRUE(at(0) < at(1) && at(1) < at(4) && at(1) < at(5) && at(2) < at(3) && at(3) < at(5));
    are_any_order |= at(2) < at(0);
  }
  EXPECT_TRUE(are_any_order);
}

// The graph copies what lies within the device. Break: a copy that is done when it is recorded.
TEST_P(CudaRecordingTest, CopiesWithinTheDevice) {
  const auto recording = record([&](InStream& s) {
    Launch add = launch("test.add", words);
    s.run(add);
    s.copy(words + 1, words, 2 * sizeof *words);
  });
  stream->fill(words, 0, 3 * sizeof *words);
  replay(recording), replay(recording);
  EXPECT_EQ(wait_read(*stream, words, 3), (std::vector<uint32_t>{2, 2, 1}));
}

// One whose launches leave no status has fills, copies and primitives that no status on the device skips.
// Breaks: replay() that does not look; one that looks on the device each time.
TEST_P(CudaRecordingTest, ThatLeavesNoStatusIsLeftOutAsAWholeBehindOne) {
  fake.driver.set_kernel("test_fail", [](const LaunchBlock& block, const KernelLaunch&) {
    block.context->status = status_word(DeviceStatus::kStop, launch_number(block));
  });
  const auto recording = record([&](InStream& s) { give_two(s); });
  recording->may_leave_status = false, recording->holds_calls = true;
  stream->fill(words, 1, 2 * sizeof *words);
  EXPECT_EQ(error_of(replay(recording)), "");
  const int reads = fake.driver.calls("cuMemcpyAsync");
  replay(recording);
  EXPECT_EQ(error_of(stream->barrier()), "");
  EXPECT_EQ(fake.driver.calls("cuMemcpyAsync"), reads + 1) << "the number of its first launch, and no status";
  EXPECT_EQ(wait_read(*stream, words, 2), (std::vector<uint32_t>{1, 0x01010103}));
  Launch fail = launch("test.fail", words);
  fail.needs_repeat = [](InStream&, LaunchBlock&) { return false; };
  stream->launch(fail);
  stream->fill(words, 7, sizeof *words);
  EXPECT_EQ(error_of(replay(recording)), "");
  EXPECT_EQ(wait_read(*stream, words, 2), (std::vector<uint32_t>{0x07070707, 0x01010103}));
}

TEST_P(CudaRecordingTest, OfNothingDoesNothing) {
  const auto recording = record([](InStream&) {});
  EXPECT_EQ(recording->launches, 0u);
  EXPECT_EQ(error_of(replay(recording)), "");
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaRecordingTest, testing::Range(uint64_t{1}, uint64_t{6}));

// With every launch waited for, a recording is waited for as a whole, behind its
// replay. Break: run_loop() that waits.
TEST(CudaRecordingErrors, NameTheRecordingWhereEveryLaunchIsWaitedFor) {
  for (uint64_t seed = 1; seed < 6; ++seed) {
    FakeCuda fake({.seed = seed}, {.exact_errors = true});
    Stream& stream = fake.device->default_stream();
    Launch good = launch_of(fake.driver.table(), "test.good"),
           bad = launch_of(fake.driver.table(), "test.bad");
    IntrusivePtr<Recording> recording;
    const auto recorded = stream.issue("test.record", [&](InStream& s) {
      recording = s.record([&](InStream& r) { r.run(good), r.run(bad); });
    });
    EXPECT_EQ(error_of(recorded), "");
    EXPECT_EQ(error_of(stream.issue("test.replay", [&](InStream& s) { s.replay(*recording); })), "");
    fake.driver.fault_in("test_bad", Result::kIllegalAddress);
    const auto done = stream.issue("test.replay", [&](InStream& s) { s.replay(*recording); });
    EXPECT_EQ(error_of(done),
              "device cuda: a recording of 2 launches (test.good, test.bad): answer 700 (CUDA_ERROR_700)");
    EXPECT_EQ(done.error().code(), ErrorCode::kUnavailable);
  }
}

// Whoever recorded it may give it at once instead.
TEST_P(CudaRecordingTest, OfTheHostsMemoryIsAnError) {
  uint32_t here = 0;
  const auto refused = [&](const std::function<void(InStream&)>& give) {
    const std::string error = error_of(stream->issue("test.record", [&](InStream& s) { s.record(give); }));
    stream->clear_error();
    return error;
  };
  EXPECT_EQ(refused([&](InStream& s) { s.copy(words, &here, sizeof here); }),
            "device cuda: a copy to or from the host's memory cannot be recorded");
  EXPECT_EQ(refused([&](InStream& s) { s.fill(&here, 0, sizeof here); }),
            "device cuda: a fill of the host's memory cannot be recorded");
  EXPECT_EQ(error_of(replay(record([&](InStream& s) { give_two(s); }))), "");
}

// The fake refuses what the driver does.
TEST(CudaRecordingFake, RefusesWhatACapturedStreamCannotDo) {
  FakeDriver fake;
  const cuda::Driver& driver = fake.table();
  const auto context = make_intrusive<cuda::Context>(driver, 0);
  const cuda::Context::Scope scope(*context);
  cuda::StreamHandle stream = nullptr;
  cuda::EventHandle event = nullptr;
  cuda::GraphHandle graph = nullptr;
  cuda::GraphExecHandle exec = nullptr;
  driver.stream_create(&stream, cuda::kStreamNonBlocking), driver.event_create(&event, 0);
  EXPECT_EQ(driver.stream_end_capture(stream, &graph), Result::kIllegalState);
  ASSERT_EQ(driver.stream_begin_capture(stream, cuda::CaptureMode::kRelaxed), Result::kSuccess);
  EXPECT_EQ(driver.stream_begin_capture(stream, cuda::CaptureMode::kRelaxed), Result::kIllegalState);
  EXPECT_EQ(driver.event_record(event, stream), Result::kSuccess);
  EXPECT_EQ(driver.event_query(event), Result::kCapturedEvent);
  EXPECT_EQ(driver.event_synchronize(event), Result::kCapturedEvent);
  EXPECT_EQ(driver.stream_wait_event(stream, event, 0), Result::kCapturedEvent);
  EXPECT_EQ(driver.stream_synchronize(stream), Result::kStreamCaptureUnsupported);
  EXPECT_EQ(driver.stream_end_capture(stream, &graph), Result::kStreamCaptureInvalidated);
  EXPECT_EQ(graph, nullptr);
  ASSERT_EQ(driver.stream_begin_capture(stream, cuda::CaptureMode::kRelaxed), Result::kSuccess);
  ASSERT_EQ(driver.stream_end_capture(stream, &graph), Result::kSuccess);
  ASSERT_EQ(driver.graph_instantiate(&exec, graph, 0), Result::kSuccess);
  EXPECT_EQ(driver.graph_launch(exec, stream), Result::kSuccess);
  EXPECT_EQ(driver.graph_destroy(graph), Result::kSuccess);
  EXPECT_EQ(driver.graph_destroy(graph), Result::kInvalidValue);
  EXPECT_EQ(driver.graph_instantiate(&exec, graph, 0), Result::kInvalidValue);
  EXPECT_EQ(driver.graph_exec_destroy(exec), Result::kSuccess);
  EXPECT_EQ(driver.graph_exec_destroy(exec), Result::kInvalidValue);
  EXPECT_EQ(driver.graph_launch(exec, stream), Result::kInvalidValue);
  const std::string report = fake.report();
  EXPECT_EQ(std::count(report.begin(), report.end(), '\n'), 10 + 2) << report;  // and what is left
  driver.event_destroy(event), driver.stream_destroy(stream);
}

}  // namespace
}  // namespace coppice::fake
