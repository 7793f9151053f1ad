// gpu/jit/kernel_cache.h with many processes and threads on one folder: an entry is whole and right, or
// absent.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>
#include <thread>
#include <vector>

#include "core/log.h"
#include "gpu/jit/kernel_cache.h"

namespace coppice {
namespace {

namespace fs = std::filesystem;
using jit::KernelCache;

constexpr int kProcesses = 8;
constexpr int kOperations = 200;
constexpr int kKeys = 24;
constexpr uint64_t kMaxBytes = 100'000;  // about a third of all keys' values, so that eviction never rests
constexpr uint64_t kSeed = 77;

std::string key_of(int key) { return fmt::format("{:032x}", key + 1); }

// The one right value of a key: 1 to 24 KB that no other key's value begins or ends like.
std::string value_of(int key) {
  std::mt19937 random(static_cast<uint32_t>(key));
  std::string value(1000u * static_cast<unsigned>(key + 1), '\0');
  for (char& c : value) c = static_cast<char>(random());
  return value;
}

struct Counts {
  int hits = 0;
  int wrong = 0;
};

// Cuts, alters or litters, as a crash or a bad disk would; bypasses the cache.
void damage(const fs::path& folder, int key, uint32_t choice) {
  const std::string path = (folder / (key_of(key) + ".kernel")).string();
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  if (choice % 2 == 0) {
    (void)!ftruncate(file, choice % 900);
  } else {
    (void)!pwrite(file, "damage", 6, choice % 1000);
  }
  close(file);
}

Counts operate(KernelCache& cache, uint64_t seed) {
  std::mt19937 random(static_cast<uint32_t>(seed));
  Counts counts;
  for (int i = 0; i < kOperations; ++i) {
    const int key = static_cast<int>(random() % kKeys);
    const uint32_t action = random() % 100;
    if (action < 45) {
      cache.store(key_of(key), value_of(key));
    } else if (action < 90) {
      const std::optional<std::string> loaded = cache.load(key_of(key));
      counts.hits += loaded.has_value();
      counts.wrong += loaded.has_value() && *loaded != value_of(key);
    } else if (action < 98) {
      damage(cache.folder(), key, static_cast<uint32_t>(random()));
    } else {
      cache.clear();
    }
  }
  return counts;
}

class KernelCacheStressTest : public testing::Test {
 protected:
  KernelCacheStressTest() {
    std::string name = (fs::temp_directory_path() / "coppice_kernel_cache_XXXXXX").string();
    folder = mkdtemp(name.data());
    RecordProperty("seed", kSeed);
    set_log_sink([this](LogLevel level, std::string_view) { warnings += level >= LogLevel::kWarning; });
  }
  ~KernelCacheStressTest() override {
    set_log_sink({});
    fs::remove_all(folder);
  }

  void expect_whole_or_absent() {
    KernelCache cache(folder, kMaxBytes);
    for (int key = 0; key < kKeys; ++key) {
      const std::optional<std::string> loaded = cache.load(key_of(key));
      EXPECT_TRUE(!loaded || *loaded == value_of(key)) << key_of(key);
    }
  }
  int temporaries() const {
    int count = 0;
    for (const auto& file : fs::directory_iterator(folder)) count += file.path().extension() != ".kernel";
    return count;
  }

  fs::path folder;
  int warnings = 0;
};

// A child's exit status: 1 wrong value seen, 2 no value ever seen, 3 a warning.
TEST_F(KernelCacheStressTest, ManyProcessesNeverSeeAWrongValue) {
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      KernelCache cache(folder, kMaxBytes);
      const Counts counts = operate(cache, kSeed + static_cast<uint64_t>(p));
      _exit(counts.wrong > 0 ? 1 : counts.hits == 0 ? 2 : warnings > 0 ? 3 : 0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  expect_whole_or_absent();
  EXPECT_EQ(temporaries(), 0);
  EXPECT_LE(KernelCache(folder).stats().bytes, kMaxBytes + kProcesses * (kMaxBytes / 16));
}

TEST_F(KernelCacheStressTest, ManyThreadsNeverSeeAWrongValue) {
  KernelCache cache(folder, kMaxBytes);
  std::vector<Counts> counts(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < counts.size(); ++t) {
    threads.emplace_back([&, t] { counts[t] = operate(cache, kSeed + 100 + t); });
  }
  for (std::thread& thread : threads) thread.join();
  uint64_t hits = 0;
  for (const Counts& c : counts) {
    EXPECT_EQ(c.wrong, 0);
    hits += static_cast<uint64_t>(c.hits);
  }
  EXPECT_GT(hits, 0u);
  EXPECT_EQ(cache.stats().hits, hits);
  EXPECT_EQ(warnings, 0);
  expect_whole_or_absent();
}

// Each child is killed in the middle of its stores: what it leaves must not pass for an entry.
TEST_F(KernelCacheStressTest, AKilledProcessLeavesNoPartOfAnEntry) {
  for (int round = 0; round < 20; ++round) {
    int pipe_ends[2];
    ASSERT_EQ(pipe(pipe_ends), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      KernelCache cache(folder, kMaxBytes);
      for (int key = 0;; key = (key + 1) % kKeys) {
        cache.store(key_of(key), value_of(key));
        if (write(pipe_ends[1], "x", 1) != 1) _exit(0);
      }
    }
    close(pipe_ends[1]);
    char byte;
    for (int stores = 0; stores <= round; ++stores) ASSERT_EQ(read(pipe_ends[0], &byte, 1), 1);
    kill(child, SIGKILL);
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    close(pipe_ends[0]);
    expect_whole_or_absent();
  }
  EXPECT_GT(KernelCache(folder).stats().entries, 0u);
}

}  // namespace
}  // namespace coppice
