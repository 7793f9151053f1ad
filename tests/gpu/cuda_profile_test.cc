// gpu/cuda/kernel_profile.h on the fake driver: what each kernel cost, what it occupies, and the assembler's
// words.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "gpu/stream_primitives.h"
#include "tests/gpu/fake_cuda.h"

namespace coppice::fake {
namespace {

class CudaProfile : public testing::Test {
 protected:
  CudaProfile() {
    char name[] = "/tmp/coppice_profile_XXXXXX";
    folder_ = mkdtemp(name);
    setenv("COPPICE_GPU_PROFILE", (folder_ / "made").c_str(), 1);
  }
  ~CudaProfile() override {
    unsetenv("COPPICE_GPU_PROFILE");
    std::filesystem::remove_all(folder_);
  }
  // Returns the text of every file of that beginning, since each device of the process has one.
  std::string text(const std::string& beginning) const {
    std::string all;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "made")) {
      if (entry.path().filename().string().find(beginning) != 0) continue;
      std::ifstream file(entry.path());
      all.append(std::istreambuf_iterator<char>(file), {});
    }
    return all;
  }
  std::filesystem::path folder_;
};

void finish(const AsyncValueRef<Chain>& done) { EXPECT_EQ(error_of(done), ""); }

// Seen to fail when events were made without a time, and when a kernel's own shared memory was not counted.
TEST_F(CudaProfile, HasTimeAndResourcesOfEveryKernelPrimitiveAndRecording) {
  for (uint64_t seed = 1; seed < 4; ++seed) {
    FakeCuda fake({.seed = seed, .stack_from_blocks = 0});
    Stream& stream = fake.device->default_stream();
    Launch launch = launch_of(fake.driver.table(), "test.kernel", 1000);
    launch.shared_bytes = 1024;
    launch.item_bytes = 12;
    for (int i = 0; i < 3; ++i) stream.launch(launch);
    auto counted = fake.device->reserve(64, 64);
    const uint64_t count = 70;
    finish(stream.copy(counted->data(), &count, sizeof count));
    Launch on_device = launch_of(fake.driver.table(), "test.counted");
    on_device.block.count = counted->as<uint64_t>();
    on_device.item_bytes = 5;
    finish(stream.launch(on_device));
    IntrusivePtr<Recording> recording;
    finish(stream.issue("record",
                        [&](InStream& s) { recording = s.record([&](InStream& r) { r.run(launch); }); }));
    finish(stream.issue("replay", [&](InStream& s) { s.replay(*recording); }));
    stream.issue("sum",
                 [&stream, counted](InStream& s) {  // which may run after the buffer's own name is gone
                   primitives::sum(s, counted->as<uint32_t>(), 4, static_cast<uint64_t*>(s.result()));
                 });
    stream.launch(launch);  // nobody waits for it
    recording.reset();
  }
  const std::string rows = text("kernels");
  const auto has = [&](const std::string& row) { return rows.find("\n" + row + "\n") != rows.npos; };
  EXPECT_EQ(rows.find("kernel\tlaunches\ttotal_us\t"), 0u) << rows;
  EXPECT_TRUE(has("test.kernel\t4\t1000.0\t250.0\t250.0\t255\t16\t1056\t16\t100\t48000")) << rows;
  EXPECT_TRUE(has("test.counted\t1\t250.0\t250.0\t250.0\t255\t16\t32\t16\t100\t350")) << rows;
  EXPECT_NE(rows.find("\na recording of 1 launch (test.kernel)\t1\t250.0\t"), rows.npos) << rows;
  EXPECT_NE(rows.find("\nsum"), rows.npos) << rows;
  EXPECT_NE(text("jit.log").find("== kernel test.kernel: loaded\nptxas info    : Used 255 registers\n"),
            std::string::npos);
}

TEST_F(CudaProfile, HasTheWholeLogOfWhatTheDriverRefuses) {
  FakeCuda fake;
  const std::string words =
      "ptxas application ptx input, line 7; error   : Unknown symbol 'foo'\nptxas fatal : no\n";
  fake.driver.refuse_ptx(Result::kInvalidPtx, words);
  error_from([&] { code_of(fake.driver.table(), "test.bad"); });
  EXPECT_EQ(text("jit.log"), "== kernel test.bad: refused\nptxas info    : Used 255 registers\n" + words);
}

// A device that is lost tells no more times, and is let go of as ever.
TEST_F(CudaProfile, KeepsWhatWasMeasuredBeforeAFault) {
  {
    FakeCuda fake;
    Stream& stream = fake.device->default_stream();
    Launch good = launch_of(fake.driver.table(), "test.good"),
           bad = launch_of(fake.driver.table(), "test.bad");
    fake.driver.fault_in("test_bad", Result::kIllegalAddress);
    finish(stream.launch(good));
    EXPECT_NE(error_of(stream.launch(bad)), "");
  }
  const std::string rows = text("kernels");
  EXPECT_NE(rows.find("\ntest.good\t1\t250.0\t"), rows.npos) << rows;
  EXPECT_EQ(rows.find("test.bad"), rows.npos) << rows;
}

TEST(CudaWithoutProfile, TimesNothing) {
  FakeCuda fake;
  finish(fake.device->default_stream().launch(launch_of(fake.driver.table(), "test.kernel")));
  EXPECT_EQ(fake.driver.calls("cuEventElapsedTime"), 0);
}

}  // namespace
}  // namespace coppice::fake
