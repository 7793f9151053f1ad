// The kernel cache with many real programs at once on one folder, while it is damaged, evicted from, or full: every
// program gets right kernels.
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

// What the tests below start as programs of their own (DISABLED: nobody else runs it). Between its rounds it stores
// entries of 200 KB under keys that nobody asks for, so that a bound of 1 MiB makes everybody evict.
TEST(KernelStoreProgram, DISABLED_GetsRightKernelsOverAndOver) {
  std::mt19937 random(static_cast<uint32_t>(getpid()));
  for (int round = 0; round < kRounds && !HasFailure(); ++round) {
    expect_right_results();
    if (std::getenv("COPPICE_TEST_FILLS_CACHE") == nullptr) continue;
    KernelCache cache(KernelCache::default_folder(), KernelCache::default_max_bytes());
    for (int i = 0; i < 4; ++i) cache.store(fmt::format("{:08x}", random()), std::string(200'000, 'x'));
  }
}

pid_t start_program(const fs::path& folder, bool fills_cache, const std::function<void()>& in_child = {}) {
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
  char name[] = "kernel_store_program", filter[] = "--gtest_filter=KernelStoreProgram.*",
       disabled[] = "--gtest_also_run_disabled_tests";
  char* arguments[] = {name, filter, disabled, nullptr};
  execve("/proc/self/exe", arguments, environ);
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
    std::signal(SIGXFSZ, SIG_IGN);
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
