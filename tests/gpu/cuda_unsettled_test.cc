// Launches of the cuda device whose status is looked at when it has arrived, while others are given behind
// them, on the fake driver: what comes of them is what waiting for each of them would have given.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "gpu/host_access.h"
#include "tests/gpu/fake_cuda.h"

namespace coppice::fake {
namespace {

struct Deed {
  int id;
  DeviceStatus status;  // is left by the kernel
};

class CudaUnsettledTest : public testing::TestWithParam<uint64_t> {
 protected:
  static constexpr uint64_t kCommit = 1'000'000;
  using Log = std::vector<std::pair<int, uint64_t>>;  // what has run, and its number

  CudaUnsettledTest() {
    fake.driver.set_kernel("test_do", [this](const LaunchBlock& block, const KernelLaunch&) {
      const Deed deed = argument<Deed>(block);
      note(deed.id, launch_number(block));
      uint32_t& status = block.context->status;
      if (deed.status == DeviceStatus::kTopologyChanged) {
        *changes = 1;
      } else if (status == 0 && deed.status != DeviceStatus::kOk && !was_short(deed)) {
        status = status_word(deed.status, launch_number(block));
      }
    });
    fake.driver.set_kernel("test_tell", [this](const LaunchBlock& block, const KernelLaunch&) {
      uint32_t& status = block.context->status;
      if (status == 0 && *changes != 0)
        status = status_word(DeviceStatus::kTopologyChanged, argument<uint64_t>(block));
    });
    EXPECT_EQ(error_of(stream.fill(buffer->data(), 0, 4096)), "");
  }
  ~CudaUnsettledTest() override { buffer.reset(); }

  void note(int id, uint64_t number) {
    const std::lock_guard lock(mutex);
    log.emplace_back(id, number);
  }
  Launch launch(int id, DeviceStatus status = DeviceStatus::kOk) {
    Launch launch;
    launch.name = "test.do";
    launch.code = code;
    launch.block = {.version = kLaunchBlockVersion};
    launch.block.item_count = 1;
    set_argument(launch.block, Deed{id, status});
    return launch;
  }
  // A launch that may leave a status.
  Launch risky(int id, DeviceStatus status = DeviceStatus::kOk) {
    Launch risky = launch(id, status);
    risky.throw_error = [this, id](InStream& s) {
      ++looks;
      const DeviceStatus left = status_of(coppice::wait_read(s, &device.context().status));
      if (left == DeviceStatus::kOk || left == DeviceStatus::kStop) return;
      write_value(s, &device.context().status, 0);
      throw Error(ErrorCode::kOutOfRange, text_of(id));
    };
    return risky;
  }
  // A launch that changes a topology, or is short of something (kOutOfCells) in its first run.
  Launch growing(int id, DeviceStatus status) {
    Launch growing = launch(id, status);
    growing.needs_repeat = [this, id](InStream& s, LaunchBlock&) {
      ++looks;
      if (status_of(coppice::wait_read(s, &device.context().status)) == DeviceStatus::kOutOfCells) {
        write_value(s, &device.context().status, 0);
        return true;
      }
      if (coppice::wait_read(s, changes) == 0) return false;
      write_value(s, changes, 0);
      note(id, kCommit);
      return false;
    };
    growing.tell_changes = [this](InStream& s, uint64_t number) {
      Launch tell;
      tell.name = "test.tell";
      tell.code = tell_code;
      tell.block = {.version = kLaunchBlockVersion};
      tell.block.item_count = 1;
      tell.skip_on_status = false;
      set_argument(tell.block, number);
      s.run(tell);
    };
    return growing;
  }
  bool was_short(const Deed& deed) {
    if (deed.status != DeviceStatus::kOutOfCells) return false;
    const std::lock_guard lock(mutex);
    return std::count_if(log.begin(), log.end(), [&](const auto& run) { return run.first == deed.id; }) > 1;
  }
  static std::string text_of(int id) { return fmt::format("launch {} has failed", id); }
  AsyncValueRef<Chain> clear_status() {
    return stream.enqueue("clear the status",
                          [this](InStream& s) { write_value(s, &device.context().status, 0); });
  }

  FakeCuda fake{{.seed = GetParam()}};
  Device& device = *fake.device;
  Stream& stream = device.default_stream();
  AsyncValueRef<IntrusivePtr<LoadedCode>> code = code_of(fake.driver.table(), "test.do");
  AsyncValueRef<IntrusivePtr<LoadedCode>> tell_code = code_of(fake.driver.table(), "test.tell");
  IntrusivePtr<Buffer> buffer = device.reserve(4096, 4096);
  uint32_t* const changes = buffer->as<uint32_t>() + 1000;  // what growing launches have left to commit
  std::mutex mutex;
  Log log;
  int looks = 0;
};

// Breaks: a launch that is waited for; one that is looked at whatever its status is.
TEST_P(CudaUnsettledTest, LaunchesThatMayFailAreGivenWithoutWaiting) {
  wait(stream.barrier());
  fake.driver.hold();
  std::vector<AsyncValueRef<Chain>> values;
  for (int i = 0; i < 100; ++i)
    values.push_back(stream.launch(i % 3 == 0   ? launch(i)
                                   : i % 3 == 1 ? risky(i)
                                                : growing(i, DeviceStatus::kOk)));
  wait_until([&] { return fake.driver.calls("cuLaunchKernel") == 133; });  // 33 are told of
  EXPECT_FALSE(values[0].is_available());
  const int waits = fake.driver.calls("cuStreamSynchronize");
  fake.driver.release();
  for (const auto& value : values) EXPECT_EQ(error_of(value), "");
  EXPECT_EQ(fake.driver.calls("cuStreamSynchronize"), waits);
  EXPECT_EQ(log.size(), 100u);
  EXPECT_EQ(looks, 0);
}

// Breaks: values behind the failed one that tell nothing; numbers that those skipped have taken.
TEST_P(CudaUnsettledTest, AFailedLaunchHasItsErrorAndThoseBehindItAreSkipped) {
  fake.driver.hold();
  std::vector<AsyncValueRef<Chain>> values;
  for (int i = 0; i < 4; ++i) values.push_back(stream.launch(risky(i)));
  values.push_back(stream.launch(risky(4, DeviceStatus::kInactiveCell)));
  values.push_back(stream.launch(risky(5, DeviceStatus::kInactiveCell)));
  values.push_back(stream.launch(launch(6)));
  values.push_back(stream.fill(buffer->data(), 7, 1));
  values.push_back(stream.barrier());
  stream.clear_error();
  const auto last = stream.launch(risky(9));
  fake.driver.release();
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(error_of(values[i]), i < 4 ? "" : text_of(4)) << i;
  EXPECT_EQ(error_of(last), "");
  EXPECT_EQ(log, (Log{{0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 4}, {9, 5}}));
  EXPECT_NE(coppice::fake::wait_read(stream, buffer->as<unsigned char>(), 1)[0], 7);
}

TEST_P(CudaUnsettledTest, ALaunchThatAsksForItStopsThoseBehindItWithoutAnError) {
  fake.driver.hold();
  std::vector<AsyncValueRef<Chain>> values{stream.launch(risky(0)),
                                           stream.launch(risky(1, DeviceStatus::kStop)),
                                           stream.launch(risky(2)), stream.launch(launch(3))};
  for (int i = 0; i < 50; ++i) values.push_back(stream.launch(risky(4)));
  values.push_back(clear_status());
  values.push_back(stream.launch(risky(5)));
  fake.driver.release();
  for (const auto& value : values) EXPECT_EQ(error_of(value), "");
  EXPECT_EQ(log, (Log{{0, 0}, {1, 1}, {5, 2}}));
}

// Breaks: one that is committed twice, or not; launches that run on a topology that is not committed.
TEST_P(CudaUnsettledTest, ALaunchThatChangesATopologyIsCommittedBeforeThoseBehindIt) {
  fake.driver.hold();
  std::vector<AsyncValueRef<Chain>> values{
      stream.launch(growing(0, DeviceStatus::kOk)), stream.launch(growing(1, DeviceStatus::kTopologyChanged)),
      stream.launch(launch(2)), stream.launch(growing(3, DeviceStatus::kOutOfCells)),
      stream.launch(risky(4))};
  fake.driver.release();
  for (const auto& value : values) EXPECT_EQ(error_of(value), "");
  EXPECT_EQ(log, (Log{{0, 0}, {1, 1}, {1, kCommit}, {2, 2}, {3, 3}, {3, 3}, {4, 4}}));
}

// Breaks: an error behind an unsettled launch that is told before that is settled.
TEST_P(CudaUnsettledTest, WhatFailsBehindALaunchThatFailsHasTheFirstError) {
  for (const DeviceStatus status :
       {DeviceStatus::kOk, DeviceStatus::kInactiveCell, DeviceStatus::kStop, DeviceStatus::kOk}) {
    fake.driver.hold();
    const auto first = stream.launch(risky(1, status));
    Launch unprepared = launch(2);
    unprepared.before_loop = [](InStream&, LaunchBlock&) {
      throw Error(ErrorCode::kOutOfRange, "it cannot be prepared");
    };
    const auto second = stream.launch(std::move(unprepared)), third = stream.launch(risky(3));
    fake.driver.release();
    const std::string error = status == DeviceStatus::kInactiveCell ? text_of(1) : "";
    EXPECT_EQ(error_of(first), error);
    const std::string behind = status == DeviceStatus::kOk ? "it cannot be prepared" : error;
    EXPECT_EQ(error_of(second), behind);
    EXPECT_EQ(error_of(third), behind);
    stream.clear_error();
    EXPECT_EQ(error_of(clear_status()), "");
  }
}

TEST_P(CudaUnsettledTest, WhatIsThrownWhenALaunchIsLookedAtIsItsError) {
  Launch wrong = growing(0, DeviceStatus::kTopologyChanged);
  wrong.needs_repeat = [this](InStream& s, LaunchBlock&) -> bool {
    write_value(s, changes, 0);
    throw std::runtime_error("not ours");
  };
  const auto first = stream.launch(std::move(wrong)), second = stream.launch(risky(1));
  EXPECT_EQ(error_of(first), "test.do: not ours");
  EXPECT_EQ(error_of(second), "test.do: not ours");
}

// Breaks: what settles a launch that is not waited for when its value is available, or keeps it for ever.
TEST_P(CudaUnsettledTest, ALaunchIsDoneWhenWhatItsEndHasGivenIs) {
  struct Held : RefCounted {
    explicit Held(std::atomic<bool>& f) : flag(f) {}
    ~Held() override { flag = true; }
    std::atomic<bool>& flag;
  };
  std::atomic<bool> is_let_go = false;
  bool is_committed = false;
  fake.driver.set_kernel("test_commit",
                         [&](const LaunchBlock&, const KernelLaunch&) { is_committed = true; });
  Launch commit = launch_of(fake.driver.table(), "test.commit");
  commit.skip_on_status = false;
  Launch last = growing(0, DeviceStatus::kTopologyChanged);
  last.keep_alive.push_back(make_intrusive<Held>(is_let_go));
  last.needs_repeat = [&](InStream& s, LaunchBlock& block) {
    write_value(s, changes, 0);
    s.run(commit, commit.block);
    return false;
  };
  EXPECT_EQ(error_of(stream.launch(std::move(last))), "");
  EXPECT_TRUE(is_committed);
  wait_until([&] { return is_let_go.load(); });
}

TEST_P(CudaUnsettledTest, ADeviceThatIsLostBehindThemIsTheErrorOfAll) {
  fake.driver.set_kernel("test_fault", [](const LaunchBlock&, const KernelLaunch&) {});
  fake.driver.fault_in("test_fault", Result::kIllegalAddress);
  fake.driver.hold();
  stream.launch(risky(0));
  Launch fault = launch_of(fake.driver.table(), "test.fault");
  fault.throw_error = risky(1).throw_error;
  const auto lost = stream.launch(std::move(fault));
  const auto behind = stream.launch(risky(2));
  fake.driver.release();
  EXPECT_NE(error_of(lost), "");
  EXPECT_NE(error_of(behind), "");
}

// Gives a random sequence of operations, beside a model in which each launch is waited for.
class CudaUnsettledSequences : public CudaUnsettledTest {
 protected:
  bool one_in(uint64_t n) { return random() % n == 0; }
  void give(AsyncValueRef<Chain> value, const std::function<std::string()>& in_model) {
    values.push_back(std::move(value));
    const bool is_skipped = error && error_epoch == epoch;
    expected.push_back(is_skipped ? *error : in_model());
  }
  std::string fail(std::string text) {
    error = text, error_epoch = epoch;
    return text;
  }
  std::string run(int id, DeviceStatus status = DeviceStatus::kOk, int times = 1) {
    if (is_stopped) return "";
    for (int t = 0; t < times; ++t) ran.emplace_back(id, number);
    ++number;
    if (status == DeviceStatus::kStop) is_stopped = true;
    return status == DeviceStatus::kInactiveCell ? fail(text_of(id)) : "";
  }

  void give_risky(int id) {
    const auto status = one_in(8)    ? DeviceStatus::kInactiveCell
                        : one_in(16) ? DeviceStatus::kStop
                                     : DeviceStatus::kOk;
    give(stream.launch(risky(id, status)), [&] { return run(id, status); });
  }
  void give_growing(int id) {
    const auto status = one_in(6)   ? DeviceStatus::kTopologyChanged
                        : one_in(6) ? DeviceStatus::kOutOfCells
                                    : DeviceStatus::kOk;
    give(stream.launch(growing(id, status)), [&] {
      const bool changes_topology = status == DeviceStatus::kTopologyChanged && !is_stopped;
      run(id, DeviceStatus::kOk, status == DeviceStatus::kOutOfCells ? 2 : 1);
      if (changes_topology) ran.emplace_back(id, kCommit);
      return "";
    });
  }
  // One that is waited for.
  void give_repeated(int id) {
    Launch repeated = launch(id);
    repeated.needs_repeat = [rounds = 0](InStream&, LaunchBlock&) mutable { return ++rounds < 2; };
    give(stream.launch(std::move(repeated)), [&] { return run(id, DeviceStatus::kOk, 2); });
  }
  void give_unprepared(int id) {
    const std::string text = fmt::format("{} cannot be prepared", id);
    Launch unprepared = risky(id);
    unprepared.before_loop = [text](InStream&, LaunchBlock&) { throw Error(ErrorCode::kOutOfRange, text); };
    give(stream.launch(std::move(unprepared)), [&] {
      if (is_stopped) return std::string();
      ++number;
      return fail(text);
    });
  }
  void give_bytes(int id) {
    const size_t at = random() % (kBytes - 1);
    if (one_in(2)) {
      give(stream.fill(bytes + at, id, 1), [&] { return memory[at] = static_cast<unsigned char>(id), ""; });
    } else {
      const auto move = [to = bytes + at + 1](InStream& s) { s.copy(to, to - 1, 1); };
      give(stream.issue("move", move), [&] { return memory[at + 1] = memory[at], ""; });
    }
  }
  void give_note(int id) {
    give(stream.enqueue("note", [this, id](InStream&) { note(id, 0); }),
         [&] { return ran.emplace_back(id, 0), ""; });
  }
  void give_any(int id) {
    const uint64_t kind = random() % 28;
    if (kind < 6) return give(stream.launch(launch(id)), [&] { return run(id); });
    if (kind < 13) return give_risky(id);
    if (kind < 17) return give_growing(id);
    if (kind < 18) return give_repeated(id);
    if (kind < 19) return give_unprepared(id);
    if (kind < 21) return give_bytes(id);
    if (kind < 22) return give_note(id);
    if (kind < 23) return give(clear_status(), [&] { return is_stopped = false, ""; });
    if (kind < 25) return give(stream.barrier(), [] { return ""; });
    if (kind < 26) return stream.clear_error(), void(++epoch);
    if (!is_held) wait(stream.barrier());
  }

  static constexpr size_t kBytes = 16;
  unsigned char* const bytes = buffer->as<unsigned char>();
  std::mt19937_64 random;
  bool is_held = false;
  std::vector<AsyncValueRef<Chain>> values;
  // The model:
  std::vector<std::string> expected;
  Log ran;
  std::array<unsigned char, kBytes> memory{};
  std::optional<std::string> error;
  int error_epoch = 0, epoch = 0;
  bool is_stopped = false;
  uint64_t number = 0;  // they go on from round to round
};

TEST_P(CudaUnsettledSequences, EndAsIfEachLaunchWereWaitedFor) {
  for (uint64_t round = 0; round < 40; ++round) {
    SCOPED_TRACE(fmt::format("seed {}, round {}", GetParam(), round));
    random.seed(GetParam() * 1000 + round);
    log.clear(), ran.clear(), values.clear(), expected.clear();
    is_held = one_in(2);
    if (is_held) fake.driver.hold();
    const int count = 5 + static_cast<int>(random() % 60);
    for (int i = 0; i < count; ++i) give_any(i);
    if (is_held) fake.driver.release();
    for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(error_of(values[i]), expected[i]) << i;
    stream.clear_error(), ++epoch;
    ASSERT_EQ(error_of(clear_status()), "");
    is_stopped = false;
    ASSERT_EQ(log, ran);
    const auto left = coppice::fake::wait_read(stream, bytes, kBytes);
    ASSERT_EQ(left, std::vector<unsigned char>(memory.begin(), memory.end()));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaUnsettledSequences, testing::Range(uint64_t{1}, uint64_t{9}));
INSTANTIATE_TEST_SUITE_P(Seeds, CudaUnsettledTest, testing::Range(uint64_t{1}, uint64_t{9}));

}  // namespace
}  // namespace coppice::fake
