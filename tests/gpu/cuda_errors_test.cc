// The cuda device gets every answer of the driver, at every function it calls, on the fake driver.
//
// One clear error each; after it the device works on, or is lost and says so; nothing is left and nothing is
// used that has gone. Breaks that were seen to fail here: a fill not waited for before its memory is unmapped
// again; Context::wait_idle() that does not wait; enqueue() whose operation does not.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "gpu/cuda/primary_contexts.h"
#include "gpu/cuda/staging.h"
#include "gpu/host_access.h"
#include "gpu/stream_primitives.h"
#include "tests/gpu/fake_cuda.h"

namespace coppice::fake {
namespace {

// All of CUresult but success.
const std::vector<uint32_t> kResults = {
    1,   2,   3,   4,   5,   6,   7,   8,   34,  36,  46,  100, 101, 102, 200, 201, 202, 205, 206, 207,
    208, 209, 210, 211, 212, 213, 214, 215, 216, 217, 218, 219, 220, 221, 222, 223, 224, 225, 226, 300,
    301, 302, 303, 304, 400, 401, 402, 500, 600, 700, 701, 702, 703, 704, 705, 708, 709, 710, 711, 712,
    713, 714, 715, 716, 717, 718, 719, 720, 721, 800, 801, 802, 803, 804, 805, 806, 807, 808, 809, 810,
    811, 900, 901, 902, 903, 904, 905, 906, 907, 908, 909, 910, 911, 912, 913, 914, 915, 916, 999, 1234};

void throw_error_of(const AsyncValueRef<Chain>& done) {
  wait(done);
  if (done.is_error()) throw done.error();
}

// Gives the default stream launches that are not waited for; what tells of changes is itself a launch.
void use_default_stream(Device& device, const Launch& plain) {
  Stream& stream = device.default_stream();
  Launch risky = plain, growing = plain;
  risky.needs_repeat = nullptr;
  risky.throw_error = [&](InStream& s) {
    if (coppice::wait_read(s, &device.context().status) != 0) throw std::logic_error("there was no status");
  };
  growing.tell_changes = [&](InStream& s, uint64_t) {
    Launch tell = plain;
    tell.needs_repeat = nullptr, tell.skip_on_status = false;
    s.run(tell);
  };
  std::vector<AsyncValueRef<Chain>> values;
  for (int i = 0; i < 3; ++i)
    values.push_back(stream.launch(risky)), values.push_back(stream.launch(growing));
  wait(stream.barrier());  // what they use goes afterwards
  for (const auto& value : values) throw_error_of(value);
}

// Uses everything the device can do.
void use(const cuda::Driver& driver, Device& device) {
  constexpr size_t kLarge = cuda::Staging::kMostBytes + 100;
  auto buffer = device.reserve(size_t{8} << 20, 1000);
  buffer->grow(size_t{600} << 10);
  std::vector<unsigned char> host(kLarge, 1), back(kLarge, 0);
  unsigned char* const bytes = buffer->as<unsigned char>();
  auto stream = device.create_stream();
  // Waits for the stream's work before the memory that it uses goes.
  struct End {
    Stream& stream;
    ~End() { wait(stream.barrier()); }
  } end{*stream};
  Launch launch = launch_of(driver, "test.kernel", 1000);
  launch.shared_bytes = 64 << 10;
  launch.needs_repeat = [&](InStream& s, LaunchBlock&) {
    uint32_t status = 1;
    s.wait_copy(&status, &device.context().status, sizeof status);
    return status != 0;
  };
  stream->launch(launch);
  stream->copy(bytes, host.data(), kLarge);
  stream->copy(bytes, host.data(), 100);
  stream->fill(bytes + kLarge, 2, 100);
  stream->copy(back.data(), bytes, kLarge);
  stream->copy(back.data(), bytes, 100);
  throw_error_of(stream->launch(launch));
  for (int i = 0; i < 10; ++i) stream->fill(bytes + kLarge, 2, 100);
  throw_error_of(stream->enqueue("inline", [&](InStream& s) {
    s.run(launch);
    s.wait_copy(bytes, host.data(), 100);
    s.wait_copy(bytes + 100, bytes, 100);
  }));
  IntrusivePtr<Recording> recording;
  auto* const words = reinterpret_cast<uint32_t*>(bytes + kLarge + 512);
  throw_error_of(stream->issue("record", [&](InStream& s) {
    recording = s.record([&](InStream& r) {
      Launch inner = launch;
      inner.needs_repeat = nullptr;
      r.begin_part({});
      r.run(inner);
      r.begin_part({});
      r.fill(words, 0, 400);
      primitives::sum(r, words, 100, static_cast<uint64_t*>(r.result()));
    });
  }));
  throw_error_of(stream->issue("replay", [&](InStream& s) { s.replay(*recording); }));
  throw_error_of(stream->enqueue("sum", [&](InStream& s) {
    if (primitives::wait_sum(s, words, 100) != 0) throw std::logic_error("the recording went wrong");
  }));
  throw_error_of(stream->barrier());
  use_default_stream(device, launch);
  if (back != host) throw std::logic_error("the copies went wrong");
  buffer->discard(0, 1000);
  buffer->shrink(1000);
  buffer->release();
}

class CudaErrors : public testing::TestWithParam<const char*> {};

// Some answers may be ignored: things are let go all the same, or the function says something for a message
// only.
bool may_be_ignored(const std::string& function, Result result, int nth) {
  for (const char* name : {"cuStreamDestroy_v2", "cuEventDestroy_v2", "cuMemAddressFree", "cuMemRelease",
                           "cuMemUnmap", "cuMemFreeHost", "cuModuleUnload", "cuDevicePrimaryCtxRelease_v2",
                           "cuGraphExecDestroy", "cuGraphDestroy"}) {
    if (function == name) return true;
  }
  if (function == "cuCtxSetCurrent" || function == "cuCtxGetCurrent")
    return true;                                                  // when the caller's is set again
  if (function == "cuStreamSynchronize" && nth > 3) return true;  // before that
  return function.find("cuEvent") == 0 && result == Result::kNotReady;
}

void expect_clear(const Error& error, Result result, const std::string& function) {
  const std::string text = error.what();
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  if (function == "cuModuleLoadDataEx" || function == "cuModuleGetFunction") {
    EXPECT_NE(text.find("kernel test.kernel"), std::string::npos) << text;
    return;
  }
  EXPECT_EQ(text.find("device cuda: "), 0u) << text;
  // In words of their own: "... shows no GPU", "... bytes are free".
  if (function == "cuDeviceGetCount" && result == Result::kNoDevice) return;
  if (function == "cuMemCreate" && result == Result::kOutOfMemory) return;
  const auto number = static_cast<uint32_t>(result);
  const std::string words =
      number < 1000 ? fmt::format("(CUDA_ERROR_{})", number) : fmt::format("error {}", number);
  EXPECT_NE(text.find(words), std::string::npos) << text;
  if (cuda::is_fatal(result)) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable) << text;
  }
  if (result == Result::kOutOfMemory) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory) << text;
  }
}

// The nth call of `function` answers `result`. False when it was not called so often.
bool try_failure(const std::string& function, Result result, int nth, uint64_t seed) {
  SCOPED_TRACE(
      fmt::format("{} answers {} at call {}, seed {}", function, static_cast<uint32_t>(result), nth, seed));
  FakeDriver driver({.seed = seed, .granule_bytes = 16 << 10});
  driver.fail(function, result, nth);
  IntrusivePtr<Device> device;
  Error error = error_from([&] {
    device = cuda::make_device(driver.table(), {.exact_errors = false});
    use(driver.table(), *device);
  });
  const bool has_failed = driver.has_failed();
  driver.fail("", Result::kSuccess, 0);
  const bool is_error = !error.message().empty();
  if (has_failed && is_error) expect_clear(error, result, function);
  if (!has_failed || !may_be_ignored(function, result, nth)) {
    EXPECT_EQ(is_error, has_failed) << error.what();
  }
  if (device) {
    device->default_stream().clear_error();
    const Error again = error_from([&] { use(driver.table(), *device); });
    if (has_failed && cuda::is_fatal(result)) {
      EXPECT_EQ(again.code(), ErrorCode::kUnavailable) << again.what();
    } else {
      EXPECT_EQ(again.message(), "");
    }
  }
  device.reset();
  EXPECT_EQ(driver.report(), "");
  return has_failed;
}

TEST_P(CudaErrors, EachAnswerIsOneClearErrorAndLeavesNothing) {
  int failures = 0, tried = 0;
  for (const uint32_t result : kResults) {
    failures += try_failure(GetParam(), static_cast<Result>(result), 1, result);
    if (++tried == 10 && failures == 0) break;
  }
  // Some are called by nothing yet (streams that wait for each other), by others, in messages, by a profile
  // alone, or only when a lost device has gone.
  const std::string unused[] = {"cuStreamWaitEvent",
                                "cuEventElapsedTime",
                                "cuMemGetInfo_v2",
                                "cuFuncGetAttribute",
                                "cuInit",
                                "cuGetErrorName",
                                "cuGetErrorString",
                                "cuDevicePrimaryCtxRelease_v2"};
  if (std::find(std::begin(unused), std::end(unused), GetParam()) == std::end(unused)) {
    EXPECT_GT(failures, 0);
  }
}

TEST_P(CudaErrors, AtEveryCall) {
  for (const Result result : {Result::kInvalidValue, Result::kOutOfMemory, Result::kIllegalAddress}) {
    for (int nth = 1; nth < 60 && try_failure(GetParam(), result, nth, static_cast<uint64_t>(nth)); ++nth)
      continue;
  }
}

TEST(CudaFaults, NameTheKernelWhereEveryLaunchIsWaitedFor) {
  for (uint64_t seed = 1; seed < 6; ++seed) {
    FakeCuda fake({.seed = seed}, {.exact_errors = true});
    fake.driver.fault_in("test_bad", Result::kIllegalAddress);
    Stream& stream = fake.device->default_stream();
    const cuda::Driver& driver = fake.driver.table();
    Launch good = launch_of(driver, "test.good");  // all code is there before the device is lost
    Launch wrong = launch_of(driver, "test.bad");
    const auto before = stream.launch(good);
    const auto bad = stream.launch(std::move(wrong));
    const auto behind = stream.launch(std::move(good));
    EXPECT_EQ(error_of(before), "");
    EXPECT_EQ(error_of(bad), "device cuda: kernel test.bad: answer 700 (CUDA_ERROR_700)");
    EXPECT_EQ(bad.error().code(), ErrorCode::kUnavailable);
    EXPECT_EQ(error_of(behind), error_of(bad));
  }
}

TEST(CudaFaults, LoseTheDeviceForAllItsStreamsAndBuffersWithTheFirstError) {
  for (uint64_t seed = 1; seed < 6; ++seed) {
    FakeCuda fake({.seed = seed}, {.exact_errors = false});
    fake.driver.fault_in("test_bad", Result::kLaunchFailed);
    auto buffer = fake.device->reserve(size_t{1} << 20, 1000);
    auto other = fake.device->create_stream();
    Stream& stream = fake.device->default_stream();
    EXPECT_EQ(error_of(other->fill(buffer->data(), 1, 10)), "");
    stream.fill(buffer->data(), 1, 10);
    const std::string error = error_of(stream.launch(launch_of(fake.driver.table(), "test.bad")));
    EXPECT_EQ(error.find("device cuda: "), 0u) << error;
    EXPECT_NE(
        error.find(
            "answer 719 (CUDA_ERROR_719), noticed there; COPPICE_DEBUG=checks names the kernel at fault"),
        std::string::npos)
        << error;
    stream.clear_error();
    EXPECT_EQ(error_of(stream.barrier()), error) << "there is nothing to go on with";
    EXPECT_EQ(error_of(stream.enqueue("host", [](InStream&) {})), error);
    EXPECT_EQ(error_of(other->fill(buffer->data(), 1, 10)), error);
    for (const auto& attempt : std::vector<std::function<void()>>{
             [&] { buffer->grow(500000); }, [&] { buffer->discard(0, 10); }, [&] { buffer->shrink(10); },
             [&] { fake.device->reserve(10, 10); }, [&] { fake.device->create_stream(); }})
      EXPECT_EQ(error_from(attempt).what(), error);
    buffer->release();
  }
}

// A program may save what it has on the host, leave, and start again with a new device.
TEST(CudaFaults, ANewDeviceWorksWhenTheLostOneIsGone) {
  FakeDriver driver;
  driver.fault_in("test_bad", Result::kIllegalAddress);
  auto device = cuda::make_device(driver.table());
  EXPECT_NE(error_of(device->default_stream().launch(launch_of(driver.table(), "test.bad"))), "");
  device.reset();
  device = cuda::make_device(driver.table());
  EXPECT_EQ(error_of(device->default_stream().launch(launch_of(driver.table(), "test.good"))), "");
  device.reset();
  EXPECT_EQ(driver.report(), "");
}

// Seen to fail with a context that each device retains for itself.
TEST(CudaContexts, AreRetainedOnceHoweverManyDevicesComeAndGo) {
  auto driver = std::make_unique<FakeDriver>();
  for (int i = 0; i < 20; ++i) {
    const auto device = cuda::make_device(driver->table()), other = cuda::make_device(driver->table());
    EXPECT_EQ(cuda::PrimaryContexts::of_process().users(driver->table()), 2);
  }
  EXPECT_EQ(driver->calls("cuDevicePrimaryCtxRetain"), 1);
  EXPECT_EQ(driver->calls("cuDevicePrimaryCtxRelease_v2"), 0);
  EXPECT_EQ(cuda::PrimaryContexts::of_process().users(driver->table()), 0);
  cuda::PrimaryContexts::of_process().release_all(driver->table());
  EXPECT_EQ(driver->calls("cuDevicePrimaryCtxRelease_v2"), 1);
  EXPECT_EQ(driver->report(), "");
}

// Seen to fail when the second of two users gave a lost context back as if it were whole.
TEST(CudaContexts, AreGivenBackWithTheLastUserWhenAnyOfThemLostThem) {
  FakeDriver driver;
  auto& contexts = cuda::PrimaryContexts::of_process();
  cuda::ContextHandle first = nullptr, second = nullptr;
  ASSERT_EQ(contexts.acquire(driver.table(), 0, &first), Result::kSuccess);
  ASSERT_EQ(contexts.acquire(driver.table(), 0, &second), Result::kSuccess);
  EXPECT_EQ(first, second);
  contexts.let_go(driver.table(), 0, true);
  contexts.let_go(driver.table(), 0, false);
  EXPECT_EQ(driver.calls("cuDevicePrimaryCtxRelease_v2"), 1);
}

TEST(CudaContexts, ALostOneGoesWithItsLastUser) {
  FakeDriver driver;
  driver.fault_in("test_bad", Result::kIllegalAddress);
  auto lost = cuda::make_device(driver.table()), beside = cuda::make_device(driver.table());
  EXPECT_NE(error_of(lost->default_stream().launch(launch_of(driver.table(), "test.bad"))), "");
  lost.reset();
  EXPECT_EQ(driver.calls("cuDevicePrimaryCtxRelease_v2"), 0) << "the other device still uses it";
  driver.fail("cuDevicePrimaryCtxRelease_v2", Result::kInvalidContext);
  beside.reset();
  EXPECT_EQ(driver.calls("cuDevicePrimaryCtxRelease_v2"), 1);
  const auto fresh = cuda::make_device(driver.table());
  EXPECT_EQ(driver.calls("cuDevicePrimaryCtxRetain"), 2);
  EXPECT_EQ(error_of(fresh->default_stream().launch(launch_of(driver.table(), "test.good"))), "");
}

#define COPPICE_NAME(member, symbol, parameters) #symbol,
INSTANTIATE_TEST_SUITE_P(Driver, CudaErrors,
                         testing::Values(COPPICE_CUDA_FUNCTIONS(COPPICE_NAME)
                                             COPPICE_CUDA_FIRST_VERSIONS(COPPICE_NAME) "primitive_scratch",
                                         "run_primitive"),
                         [](const auto& info) { return fmt::format("{}_{}", info.index, info.param); });
#undef COPPICE_NAME

}  // namespace
}  // namespace coppice::fake
