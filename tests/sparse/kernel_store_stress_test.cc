// The kernel cache with many real programs at once on one folder, while it is damaged, evicted from, or full:
// every program gets right kernels.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cerrno>
#include <cmath>
#include <csignal>
#include <functional>
#include <random>
#include <thread>

#include "core/program_file.h"
#include "gpu/device.h"
#include "sparse/program.h"
#include "tests/sparse/kernel_store_util.h"

extern char** environ;

namespace coppice {
namespace {

namespace fs = std::filesystem;
using jit::KernelCache;

constexpr int kPrograms = 6;
constexpr int kRounds = 5;
constexpr uint64_t kSeed = 41;

// Every kernel of the file on a device of its own, whose kernels come from the folder or a compilation.
void expect_right_results() {
  Program program(Device::cpu(1));
  std::vector<int> index(100, -1), sum(100, 3);
  std::vector<float> angles(100), sines(200);
  std::vector<double> exponents(10), powers(10);
  for (int i = 0; i < 100; ++i) angles[static_cast<size_t>(i)] = 0.1f * static_cast<float>(i);
  for (int i = 0; i < 10; ++i) exponents[static_cast<size_t>(i)] = i - 5;
  wait(program.launch(write_index, range(100), index.data()));
  wait(program.launch(add_one, range(100), sum.data()));
  wait(program.launch(sine_and_cosine, range(100), angles.data(), sines.data()));
  auto done = program.launch(powers_of_ten, range(10), exponents.data(), powers.data());
  wait(done);
  ASSERT_FALSE(done.is_error()) << done.error().what();
  EXPECT_EQ(sum, std::vector<int>(100, 4));
  for (size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(index[i], static_cast<int>(i));
    EXPECT_FLOAT_EQ(sines[2 * i], std::sin(angles[i]));
    EXPECT_FLOAT_EQ(sines[2 * i + 1], std::cos(angles[i]));
  }
  for (size_t i = 0; i < 10; ++i) EXPECT_DOUBLE_EQ(powers[i], std::pow(10.0, exponents[i]));
}

// The tests below start this as programs of their own (DISABLED: nobody else runs it). Between its rounds
// it stores entries of 200 KB under keys that nobody asks for, so that a bound of 1 MiB makes everybody
// evict.
TEST(KernelStoreProgram, DISABLED_GetsRightKernelsOverAndOver) {
  std::mt19937 random(static_cast<uint32_t>(getpid()));
  for (int round = 0; round < kRounds && !HasFailure(); ++round) {
    expect_right_results();
    if (std::getenv("COPPICE_TEST_FILLS_CACHE") == nullptr) continue;
    KernelCache cache(KernelCache::default_folder(), KernelCache::default_max_bytes());
    for (int i = 0; i < 4; ++i) cache.store(fmt::format("{:08x}", random()), std::string(200'000, 'x'));
  }
}

constexpr uint32_t kLayouts = 24;

// Another program that tests start: it needs a kernel for each of many layouts, as a solver that starts does.
TEST(KernelStoreProgram, DISABLED_StartsWithManyKernels) {
  KernelStore store(2);
  std::vector<AsyncValueRef<LoadedCodeRef>> codes;
  for (uint32_t layout = 0; layout < kLayouts; ++layout) {
    jit::SpecializeRequest request = jit_request("add_one");
    request.constants = {{"coppice_loop", std::as_bytes(std::span(&layout, 1))}};
    codes.push_back(store.get(request));
  }
  store.wait_compiled();  // logs how many were compiled
  for (const auto& code : codes) {
    ASSERT_EQ(run_ints(jit::host_entry(*code.get()), {4, 5, 6}), (std::vector<int>{5, 6, 7}));
  }
}

// And one that never ends to compile, says so to its standard input's other end, and is killed.
TEST(KernelStoreProgram, DISABLED_CompilesForEver) {
  class Backend final : public jit::CodeBackend {
   public:
    std::string compile(const jit::SpecializeRequest&) override {
      if (write(STDIN_FILENO, "!", 1) != 1) std::abort();
      for (;;) pause();
    }
    std::string why_not_loadable(const std::string&, const jit::SpecializeRequest&) override { return "no"; }
    IntrusivePtr<LoadedCode> load(const std::string&, const jit::SpecializeRequest&) override { return {}; }
  };
  KernelStore::Options options;
  options.backend = std::make_shared<Backend>();
  KernelStore store(options);
  wait(store.get(jit_request("add_one")));
}

pid_t start_program(const fs::path& folder, bool fills_cache, const std::function<void()>& in_child = {},
                    const std::string& test = "KernelStoreProgram.DISABLED_GetsRightKernelsOverAndOver") {
  std::string program = (program_folder() / program_file().filename()).string();
  const pid_t child = fork();
  if (child != 0) return child;
  // Shown when it fails.
  const int output =
      open((folder.parent_path() / "programs.log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  setenv("COPPICE_CACHE_DIR", folder.c_str(), 1);
  setenv("COPPICE_CACHE_MAX_MB", "1", 1);
  if (fills_cache) setenv("COPPICE_TEST_FILLS_CACHE", "1", 1);
  if (in_child) in_child();
  char disabled[] = "--gtest_also_run_disabled_tests";
  std::string filter = "--gtest_filter=" + test;
  char* arguments[] = {program.data(), filter.data(), disabled, nullptr};
  execve(program.c_str(), arguments, environ);
  _exit(99);
}

class KernelStoreStressTest : public KernelStoreFolder {
 protected:
  KernelStoreStressTest() { RecordProperty("seed", kSeed); }

  void expect_success(pid_t child) const {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
        << "status " << status << "; all programs said:\n"
        << read_file(root / "programs.log");
  }

  // Cuts, alters, swaps and removes entries as long as programs run.
  void damage_while_running(std::vector<pid_t> children) {
    std::mt19937 random(kSeed);
    int damaged = 0;
    while (!children.empty()) {
      std::erase_if(children, [](pid_t child) {
        siginfo_t info{};
        return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
               info.si_pid == child;
      });
      std::error_code error;
      std::vector<fs::path> files;
      for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
        files.push_back(it->path());
      if (files.empty()) continue;
      const fs::path& one = files[random() % files.size()];
      const fs::path& other = files[random() % files.size()];
      const uint32_t at = random() % 1000;
      switch (random() % 4) {
        case 0:
          fs::resize_file(one, at, error);
          break;
        case 1:
          if (const int file = open(one.c_str(), O_WRONLY | O_CLOEXEC); file >= 0) {
            (void)!pwrite(file, "damage", 6, at);
            close(file);
          }
          break;
        case 2:
          fs::rename(one, other, error);
          break;
        default:
          fs::remove(one, error);
      }
      ++damaged;
      std::this_thread::yield();
    }
    EXPECT_GT(damaged, 10);
  }
};

TEST_F(KernelStoreStressTest, ManyProgramsShareOneFolder) {
  std::vector<pid_t> children;
  for (int p = 0; p < kPrograms; ++p) children.push_back(start_program(folder, false));
  for (const pid_t child : children) expect_success(child);
  EXPECT_EQ(entries().size(), 4u) << "one per kernel, and nothing left over";
  for (const auto& path : entries()) EXPECT_TRUE(KernelCache(folder).load(path.stem().string())) << path;
}

// "kernels: 24 compiled in 0.41 s, 0 from the cache" of each program; the sum of what they compiled.
int sum_of_compiled(const std::string& log) {
  int sum = 0;
  for (size_t at = 0; (at = log.find(" compiled in ", at)) != log.npos; ++at) {
    sum += std::stoi(log.substr(log.rfind(' ', at - 1) + 1));
  }
  return sum;
}

TEST_F(KernelStoreStressTest, ProgramsThatStartAtOnceCompileEveryKernelOnce) {
  const Environment log("COPPICE_LOG", "info");
  for (int round = 0; round < 5; ++round) {
    fs::remove_all(folder), fs::remove(root / "programs.log");
    std::vector<pid_t> children;
    for (int p = 0; p < 4; ++p)
      children.push_back(
          start_program(folder, false, {}, "KernelStoreProgram.DISABLED_StartsWithManyKernels"));
    for (const pid_t child : children) expect_success(child);
    EXPECT_EQ(entries().size(), kLayouts);
    EXPECT_EQ(sum_of_compiled(read_file(root / "programs.log")), static_cast<int>(kLayouts))
        << read_file(root / "programs.log");
  }
}

TEST_F(KernelStoreStressTest, ProgramsThatStartAtOnceWorkOnAReadOnlyFolder) {
  fs::create_directory(folder);
  if (mount("coppice-test", folder.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | MS_RDONLY, "size=1m") != 0)
    GTEST_SKIP() << "cannot mount a read-only file system here: " << std::strerror(errno);
  std::vector<pid_t> children;
  for (int p = 0; p < 4; ++p)
    children.push_back(start_program(folder, false, {}, "KernelStoreProgram.DISABLED_StartsWithManyKernels"));
  for (const pid_t child : children) expect_success(child);
  EXPECT_TRUE(entries().empty());
  ASSERT_EQ(umount(folder.c_str()), 0);
}

TEST_F(KernelStoreStressTest, AKernelWhoseCompilerWasKilledIsCompiledByWhoWaits) {
  int told[2];
  ASSERT_EQ(pipe(told), 0);
  const pid_t child = start_program(
      folder, false, [&] { dup2(told[1], STDIN_FILENO); }, "KernelStoreProgram.DISABLED_CompilesForEver");
  char byte = 0;
  ASSERT_EQ(read(told[0], &byte, 1), 1);
  KernelStore::Options o = options();
  o.patience = std::chrono::hours(1);
  KernelStore store(o);
  auto waiting = store.get(jit_request("add_one")), other = store.get(jit_request("write_index"));
  wait(other);
  EXPECT_FALSE(waiting.is_available()) << "others are compiled meanwhile";
  ASSERT_EQ(kill(child, SIGKILL), 0);
  wait(waiting);
  ASSERT_FALSE(waiting.is_error()) << waiting.error().what();
  EXPECT_EQ(run_ints(jit::host_entry(*waiting.get()), {4, 5, 6}), (std::vector<int>{5, 6, 7}));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  close(told[0]), close(told[1]);
}

TEST_F(KernelStoreStressTest, ManyProgramsEvictWhatOthersRead) {
  std::vector<pid_t> children;
  for (int p = 0; p < kPrograms; ++p) children.push_back(start_program(folder, true));
  for (const pid_t child : children) expect_success(child);
  constexpr uint64_t kMax = 1 << 20;
  EXPECT_LE(KernelCache(folder).stats().bytes, kMax + kPrograms * (kMax / 16 + 200'040));
  EXPECT_LT(KernelCache(folder).stats().entries, 4u * kPrograms * kRounds) << "something was evicted";
}

TEST_F(KernelStoreStressTest, ManyProgramsWorkWhileEntriesAreDamaged) {
  std::vector<pid_t> children;
  for (int p = 0; p < kPrograms; ++p) children.push_back(start_program(folder, p % 2 == 0));
  damage_while_running(children);
  for (const pid_t child : children) expect_success(child);
}

// write() fails at 1,000 bytes of a file, as on a full disk.
TEST_F(KernelStoreStressTest, ProgramsWorkWhenEveryWriteFails) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "under ThreadSanitizer a program dies of such a limit, kernels or not";
#endif
  expect_success(start_program(folder, false, [] {
    std::signal(SIGXFSZ, SIG_IGN);  // for what the program prints into a file itself
    const rlimit limit{1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
  }));
  EXPECT_TRUE(entries().empty());
}

TEST_F(KernelStoreStressTest, ProgramsWorkOnAFullDisk) {
  fs::create_directory(folder);
  if (mount("coppice-test", folder.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "size=8k,mode=700") != 0)
    GTEST_SKIP() << "cannot mount a small file system here: " << std::strerror(errno);
  std::vector<pid_t> children;
  for (int p = 0; p < 3; ++p) children.push_back(start_program(folder, false));
  for (const pid_t child : children) expect_success(child);
  EXPECT_LT(entries().size(), 4u) << "not all fit";
  for (const auto& path : entries()) EXPECT_EQ(path.extension(), ".kernel");
  ASSERT_EQ(umount(folder.c_str()), 0);
}

}  // namespace
}  // namespace coppice
