// gpu/jit and gpu/kernel_store.h with real kernels: loading, removal, errors, the caches.
#include "gpu/jit/specializer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>

#include "core/error.h"
#include "core/log.h"
#include "gpu/device.h"
#include "gpu/jit/code_loader.h"
#include "gpu/kernel_store.h"
#include "jit.kernels.h"
#include "sparse/program.h"
#include "tests/sparse/refused_bitcode.h"

namespace coppice {
namespace {

namespace fs = std::filesystem;
using jit::SpecializeRequest;

SpecializeRequest request_for(const std::string& kernel) {
  return {"jit." + kernel, &jit_kernels, "coppice_kernel_" + kernel, {}, {}};
}
SpecializeRequest request_that_calls_what_nobody_defines() {
  return {"refused.calls", &refused_kernels, "coppice_kernel_calls_what_nobody_defines", {}, {}};
}

bool is_mapped(const void* address) {
  std::ifstream maps("/proc/self/maps");
  const auto at = reinterpret_cast<uintptr_t>(address);
  for (std::string line; std::getline(maps, line);) {
    uintptr_t from = 0, to = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx", &from, &to) == 2 && from <= at && at < to) return true;
  }
  return false;
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kCompile);
    return e.what();
  }
  return "";
}

TEST(CodeLoader, UnmapsCodeWithItsLastReference) {
  jit::CodeLoader loader;
  const std::string object = jit::compile_x86(request_for("write_index"));
  auto code = loader.load(object, "coppice_kernel_write_index", "jit.write_index");
  auto kept = loader.load(object, "coppice_kernel_write_index", "jit.write_index");
  const void* entry = reinterpret_cast<const void*>(code->entry());
  ASSERT_NE(entry, nullptr);
  ASSERT_NE(entry, reinterpret_cast<const void*>(kept->entry()));
  EXPECT_TRUE(is_mapped(entry));
  auto shared = code;
  code.reset();
  EXPECT_TRUE(is_mapped(entry)) << "a second reference was left";
  shared.reset();
  EXPECT_FALSE(is_mapped(entry));
  EXPECT_TRUE(is_mapped(reinterpret_cast<const void*>(kept->entry()))) << "another kernel went with it";
}

TEST(CodeLoader, LoadedCodeOutlivesItsLoader) {
  auto loader = std::make_unique<jit::CodeLoader>();
  auto code = loader->load(jit::compile_x86(request_for("write_index")), "coppice_kernel_write_index",
                           "jit.write_index");
  loader.reset();
  int out[4] = {9, 9, 9, 9};
  LaunchBlock block{};
  int* argument = out;
  std::memcpy(block.arguments, &argument, sizeof argument);
  code->entry()(&block, 0, 3);
  EXPECT_EQ(out[0], 0);
  EXPECT_EQ(out[2], 2);
  EXPECT_EQ(out[3], 9);
}

TEST(CodeLoader, NamesAFunctionThatNobodyDefines) {
  jit::CodeLoader loader;
  const std::string object = jit::compile_x86(request_that_calls_what_nobody_defines());
  const std::string message =
      message_of([&] { loader.load(object, "coppice_kernel_calls_what_nobody_defines", "jit.calls"); });
  EXPECT_EQ(message.rfind("kernel jit.calls: loading failed: ", 0), 0u) << message;
  EXPECT_NE(message.find("coppice_test_missing_function"), std::string::npos) << message;
}

TEST(CodeLoader, RefusesBytesThatAreNoObject) {
  jit::CodeLoader loader;
  const std::string message = message_of([&] { loader.load("no object", "f", "jit.f"); });
  EXPECT_EQ(message.rfind("kernel jit.f: loading failed: ", 0), 0u) << message;
}

TEST(Specializer, NamesAnEntryThatIsNotThere) {
  EXPECT_EQ(message_of([] { jit::compile_x86(request_for("no_such_kernel")); }),
            "kernel jit.no_such_kernel: linking failed: no kernel coppice_kernel_no_such_kernel in " +
                std::string(jit_kernels.source_file));
  EXPECT_EQ(message_of([] { jit::compile_ptx(request_for("no_such_kernel"), {75}); }),
            "kernel jit.no_such_kernel: linking failed: no kernel coppice_kernel_no_such_kernel in " +
                std::string(jit_kernels.source_file));
}

TEST(Specializer, RefusesBitcodeThatIsNone) {
  const std::byte junk[16] = {};
  const KernelBitcode broken{"jit", "jit.kernels.cc", junk};
  SpecializeRequest request = request_for("write_index");
  request.file = &broken;
  const std::string message = message_of([&] { jit::compile_x86(request); });
  EXPECT_EQ(message.rfind("kernel jit.write_index: reading bitcode failed: ", 0), 0u) << message;
}

TEST(Specializer, RefusesGpusThatItDoesNotKnow) {
  EXPECT_EQ(
      message_of([] { jit::compile_ptx(request_for("write_index"), {52}); }),
      "kernel jit.write_index: choosing the target failed: sm_52 is not one of sm_75, 80, 86, 87, 89, 90");
}

TEST(Specializer, SaysWhichFunctionAGpuLacks) {
  const std::string message =
      message_of([] { jit::compile_ptx(request_that_calls_what_nobody_defines(), {75}); });
  EXPECT_EQ(message.rfind("kernel refused.calls: calls_what_nobody_defines at ", 0), 0u) << message;
  EXPECT_NE(
      message.find("coppice_test_missing_function, which has no GPU version, is not supported on sm_75"),
      std::string::npos)
      << message;
}

TEST(Specializer, CompilesTheSameBytesEveryTime) {
  EXPECT_EQ(jit::compile_x86(request_for("sine_and_cosine")),
            jit::compile_x86(request_for("sine_and_cosine")));
}

TEST(Specializer, BakesWhetherKernelsCheckThemselves) {
  jit::CodeLoader loader;
  for (bool checks : {false, true}) {
    SpecializeRequest request = request_for("write_checks");
    request.options.checks = checks;
    auto code = loader.load(jit::compile_x86(request), request.entry, request.id);
    uint32_t out = 9, *argument = &out;
    LaunchBlock block{};
    std::memcpy(block.arguments, &argument, sizeof argument);
    code->entry()(&block, 0, 1);
    EXPECT_EQ(out, checks ? 1u : 0u);
  }
}

TEST(Specializer, ProvidesWhatTheCompilerCallsByItself) {
  Program program(Device::cpu(1));
  const float angles[2] = {0.5f, -2.0f};
  float sines[4];
  const double exponents[2] = {-1, 3};
  double powers[2];
  const unsigned char a[200] = {1}, b[200] = {0};
  int equal[2] = {7, 7};
  program.launch(sine_and_cosine, range(2), angles, &sines[0]);
  program.launch(powers_of_ten, range(2), exponents, &powers[0]);
  auto done = program.launch(equal_rows, range(2), a, b, uint64_t{100}, &equal[0]);
  wait(done);
  ASSERT_FALSE(done.is_error()) << done.error().what();
  EXPECT_FLOAT_EQ(sines[2], std::sin(-2.0f));
  EXPECT_FLOAT_EQ(sines[3], std::cos(-2.0f));
  EXPECT_DOUBLE_EQ(powers[0], 0.1);
  EXPECT_DOUBLE_EQ(powers[1], 1000.0);
  EXPECT_EQ(equal[0], 0);
  EXPECT_EQ(equal[1], 1);
}

// A store over a cache folder of its own.
class KernelStoreTest : public testing::Test {
 protected:
  KernelStoreTest() {
    std::string name = (fs::temp_directory_path() / "coppice_kernel_store_XXXXXX").string();
    folder = mkdtemp(name.data());
    if (const char* before = std::getenv("COPPICE_CACHE_DIR")) before_ = before;
    setenv("COPPICE_CACHE_DIR", folder.c_str(), 1);
    set_log_level(LogLevel::kInfo);  // cases read lines, whatever COPPICE_LOG says
    set_log_sink([this](LogLevel, std::string_view line) {
      std::lock_guard lock(mutex);
      lines.emplace_back(line);
    });
    store = std::make_unique<KernelStore>(2);
  }
  ~KernelStoreTest() override {
    store.reset();
    set_log_sink({});
    set_log_level(level_before_);
    if (before_.empty())
      unsetenv("COPPICE_CACHE_DIR");
    else
      setenv("COPPICE_CACHE_DIR", before_.c_str(), 1);
    fs::remove_all(folder);
  }

  std::mutex mutex;
  std::vector<std::string> lines;
  fs::path folder;
  std::unique_ptr<KernelStore> store;

 private:
  const LogLevel level_before_ = log_level();
  std::string before_;
};

TEST_F(KernelStoreTest, GivesTheSameValueForTheSameRequest) {
  auto first = store->get(request_for("write_index")), second = store->get(request_for("write_index"));
  auto other = store->get(request_for("add_one"));
  EXPECT_EQ(first, second);
  EXPECT_FALSE(first == other);
  store->wait_compiled();
  ASSERT_FALSE(first.is_error());
  EXPECT_EQ(store->disk_cache().stats().entries, 2u);
}

TEST_F(KernelStoreTest, TakesFromTheFolderWhatWasCompiledBefore) {
  store->get(request_for("write_index"));
  store->wait_compiled();
  store = std::make_unique<KernelStore>(1);
  auto code = store->get(request_for("write_index"));
  wait(code);
  ASSERT_FALSE(code.is_error());
  EXPECT_EQ(store->disk_cache().stats().hits, 1u);
  EXPECT_EQ(store->disk_cache().stats().misses, 0u);
  store->wait_compiled();
  EXPECT_EQ(lines.back().rfind("kernels: 1 from the cache in ", 0), 0u) << lines.back();
}

TEST_F(KernelStoreTest, CompilesAgainWhatWasDamagedInTheFolder) {
  store->get(request_for("write_index"));
  store->wait_compiled();
  for (const auto& entry : fs::directory_iterator(folder)) fs::resize_file(entry.path(), 50);
  store = std::make_unique<KernelStore>(1);
  auto code = store->get(request_for("write_index"));
  wait(code);
  EXPECT_FALSE(code.is_error());
  EXPECT_EQ(store->disk_cache().stats().hits, 0u);
}

TEST_F(KernelStoreTest, LoadsARemovedKernelAgain) {
  auto code = store->get(request_for("write_index"));
  wait(code);
  LoadedCodeRef old = code.get();
  const void* entry = reinterpret_cast<const void*>(jit::host_entry(*old));
  store->remove("jit.write_index");
  auto again = store->get(request_for("write_index"));
  EXPECT_FALSE(code == again);
  wait(again);
  EXPECT_NE(reinterpret_cast<const void*>(jit::host_entry(*again.get())), entry);
  store->wait_compiled();  // the compiling thread holds the value for a moment longer than its consumers wait
  code.reset();
  EXPECT_TRUE(is_mapped(entry)) << "a launch may still hold it";
  old.reset();
  EXPECT_FALSE(is_mapped(entry));
}

TEST_F(KernelStoreTest, ReportsAKernelThatDoesNotCompileAndServesTheOthers) {
  auto bad = store->get(request_for("no_such_kernel"));
  auto good = store->get(request_for("add_one"));
  wait(bad), wait(good);
  ASSERT_TRUE(bad.is_error());
  EXPECT_EQ(bad.error().code(), ErrorCode::kCompile);
  EXPECT_FALSE(good.is_error());
}

// A kernel that a reload gave up must not fail the next solver.
TEST_F(KernelStoreTest, WaitsForAndThrowsWhatSomebodyHoldsOnly) {
  store->get(request_for("no_such_kernel"));
  EXPECT_NO_THROW(store->wait_compiled());
  const auto bad = store->get(request_for("no_such_kernel"));
  EXPECT_THROW(store->wait_compiled(), Error);
}

TEST_F(KernelStoreTest, DropsWhatNobodyWaitsForAnyMore) {
  const auto first = store->get(request_for("write_index"));  // keeps the only thread busy
  for (uint32_t i = 0; i < 20; ++i) {
    SpecializeRequest request = request_for("add_one");
    request.constants = {{"none", std::as_bytes(std::span(&i, 1))}};
    store->get(std::move(request));
  }
  const auto held = store->get(request_for("add_one"));
  store->drop_unwanted();
  store->wait_compiled();
  EXPECT_TRUE(first.is_concrete() && held.is_concrete());
  EXPECT_LE(store->disk_cache().stats().entries, 4u) << "but for those that had begun";
  const KernelStore::Progress progress = KernelStore::progress();
  EXPECT_EQ(progress.done(), progress.asked);
  const auto again = store->get(request_for("add_one"));
  EXPECT_EQ(again, held);
}

TEST_F(KernelStoreTest, KeysTellConstantsApart) {
  const std::byte zero[4] = {}, one[4] = {std::byte{1}};
  SpecializeRequest a = request_for("add_one"), b = a, c = a;
  a.constants = {{"coppice_loop", zero}};
  b.constants = {{"coppice_loop", one}};
  c.constants = {{"coppice_nodes", zero}};
  EXPECT_EQ(specialization_key(a).hex(), specialization_key(a).hex());
  EXPECT_NE(specialization_key(a).hex(), specialization_key(b).hex());
  EXPECT_NE(specialization_key(a).hex(), specialization_key(c).hex());
  SpecializeRequest step = a, checks = a;
  step.options.step = checks.options.checks = true;
  EXPECT_NE(specialization_key(a).hex(), specialization_key(step).hex());
  EXPECT_NE(specialization_key(a).hex(), specialization_key(checks).hex());
  EXPECT_NE(specialization_key(step).hex(), specialization_key(checks).hex());
  EXPECT_NE(specialization_key(request_for("add_one")).hex(),
            specialization_key(request_for("write_index")).hex());
}

// finish() asks for the loop again, as a tree does that has grown.
TEST(StreamWithKernels, RepeatsALaunchUntilItsFinishIsContent) {
  auto device = Device::cpu(2);
  Program program(device);
  std::vector<int> out(10000, 0);
  Launch launch = program.make_launch(add_one, range(10000), out.data());
  int prepared = 0, finished = 0;
  launch.before_loop = [&](InStream&, LaunchBlock&) { ++prepared; };
  launch.needs_repeat = [&](InStream&, LaunchBlock&) { return ++finished < 3; };
  auto done = device->default_stream().launch(std::move(launch));
  wait(done);
  EXPECT_EQ(prepared, 1);
  EXPECT_EQ(finished, 3);
  EXPECT_EQ(out, std::vector<int>(10000, 3));
}

TEST(StreamWithKernels, ReadsItsItemCountWhenItsTurnComes) {
  auto device = Device::cpu(2);
  Program program(device);
  std::vector<int> out(100, 0);
  uint64_t count = 1;
  device->default_stream().enqueue("set", [&](InStream&) { count = 60; });
  wait(program.launch(add_one, range_on_device(&count), out.data()));
  EXPECT_EQ(std::count(out.begin(), out.end(), 1), 60);
}

TEST(StreamWithKernels, SkipsLaunchesWhileTheDeviceSaysStop) {
  auto device = Device::cpu(2);
  Program program(device);
  std::vector<int> out(10, 0);
  device->context().status = static_cast<uint32_t>(DeviceStatus::kStop);
  auto done = program.launch(add_one, range(10), out.data());
  wait(done);
  EXPECT_FALSE(done.is_error());
  EXPECT_EQ(out, std::vector<int>(10, 0));
  device->context().status = 0;
  wait(program.launch(add_one, range(10), out.data()));
  EXPECT_EQ(out, std::vector<int>(10, 1));
}

TEST(StreamWithKernels, RunsManySmallLaunches) {
  auto device = Device::cpu(2);
  Program program(device);
  int out = 0;
  AsyncValueRef<Chain> done;
  for (int i = 0; i < 5000; ++i) done = program.launch(add_one, range(1), &out);
  wait(done);
  EXPECT_EQ(out, 5000);
}

TEST(StreamWithKernels, RangesStartWhereTheySay) {
  Program program(Device::cpu(2));
  std::vector<int> out(20, -1);
  wait(program.launch(write_index, range(5, 15), out.data()));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(out[i], i >= 5 && i < 15 ? i : -1);
  wait(program.launch(add_one, range(9, 3), out.data()));
  EXPECT_EQ(out[5], 5);
}

}  // namespace
}  // namespace coppice
