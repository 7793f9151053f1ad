// gpu/jit/kernel_cache.h: what is stored comes back whole or not at all, and the folder stays bounded.
#include "gpu/jit/kernel_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/log.h"

namespace coppice {
namespace {

namespace fs = std::filesystem;
using jit::KernelCache;

constexpr size_t kHeaderBytes = 40;
constexpr size_t kVersionAt = 8;

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

void write_file(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

void set_age(const fs::path& path, int age_s) {
  const timespec times[2] = {{0, UTIME_OMIT}, {time(nullptr) - age_s, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

class KernelCacheTest : public testing::Test {
 protected:
  KernelCacheTest() {
    std::string name = (fs::temp_directory_path() / "coppice_kernel_cache_XXXXXX").string();
    root = mkdtemp(name.data());
    folder = root / "cache";
    set_log_sink([this](LogLevel level, std::string_view line) {
      if (level >= LogLevel::kWarning) warnings.emplace_back(line);
    });
  }
  ~KernelCacheTest() override {
    set_log_sink({});
    fs::remove_all(root);
  }

  fs::path entry(const std::string& key) const { return folder / (key + ".kernel"); }
  int files_in_folder() const {
    return static_cast<int>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
  }
  // Stores under "ab", lets `alter` change the file's bytes, and expects that the entry is refused and
  // removed.
  template <class Alter>
  void expect_refused(const char* what, Alter alter) {
    KernelCache cache(folder);
    cache.store("ab", "some machine code");
    ASSERT_EQ(cache.load("ab"), "some machine code") << what;
    std::string bytes = read_file(entry("ab"));
    alter(bytes);
    write_file(entry("ab"), bytes);
    EXPECT_EQ(cache.load("ab"), std::nullopt) << what;
    EXPECT_FALSE(fs::exists(entry("ab"))) << what;
  }

  fs::path root;
  fs::path folder;  // does not exist at first
  std::vector<std::string> warnings;
};

TEST_F(KernelCacheTest, ReturnsWhatWasStoredToAnotherObjectToo) {
  KernelCache cache(folder);
  EXPECT_EQ(cache.load("0123456789abcdef"), std::nullopt);
  EXPECT_FALSE(fs::exists(folder)) << "a load leaves no trace";
  const std::string bytes("\0 ELF \n", 7);
  cache.store("0123456789abcdef", bytes);
  cache.store("0123456789abcdee", "");
  EXPECT_EQ(cache.load("0123456789abcdef"), bytes);
  EXPECT_EQ(KernelCache(folder).load("0123456789abcdef"), bytes);
  EXPECT_EQ(KernelCache(folder).load("0123456789abcdee"), "");
  EXPECT_EQ(files_in_folder(), 2);
  EXPECT_TRUE(warnings.empty());
}

TEST_F(KernelCacheTest, LetsOneCompileAKernelAndOthersOtherKernels) {
  KernelCache one(folder), other(folder);
  {
    const KernelCache::Lock first = one.try_lock("ab");
    EXPECT_TRUE(first.is_held());
    const KernelCache::Lock second = other.try_lock("ab"), third = one.try_lock("ab");
    EXPECT_TRUE(!second.is_held() && second.is_elsewhere());
    EXPECT_TRUE(!third.is_held() && third.is_elsewhere()) << "of the same process, too";
    EXPECT_TRUE(other.try_lock("ac").is_held());
    const KernelCache::Lock moved = KernelCache::Lock(one.try_lock("ad"));
    EXPECT_TRUE(other.try_lock("ad").is_elsewhere());
    for (int key = 0; key < 1000; ++key) EXPECT_TRUE(one.try_lock(std::to_string(key)).is_held());
    EXPECT_EQ(files_in_folder(), 1) << "one lock file for all kernels";
    EXPECT_EQ(one.clear(), 0u);
    EXPECT_TRUE(other.try_lock("ab").is_elsewhere()) << "clearing breaks no lock";
  }
  EXPECT_TRUE(other.try_lock("ab").is_held());
  EXPECT_TRUE(warnings.empty());
}

TEST_F(KernelCacheTest, NobodyWaitsForEntriesThatWillNotCome) {
  const auto is_neither = [](const KernelCache::Lock& lock) {
    return !lock.is_held() && !lock.is_elsewhere();
  };
  EXPECT_TRUE(is_neither(KernelCache(folder, 0).try_lock("ab")));
  EXPECT_FALSE(fs::exists(folder));
  write_file(root / "file", "");
  KernelCache nowhere(root / "file" / "cache");
  EXPECT_TRUE(is_neither(nowhere.try_lock("ab")));
  fs::create_directory(folder);
  fs::create_symlink(root / "file", folder / "compiling.lock");
  EXPECT_TRUE(is_neither(KernelCache(folder).try_lock("ab"))) << "a link is not followed";
}

TEST_F(KernelCacheTest, CountsAKernelThatAnotherCompiledAsAHit) {
  KernelCache cache(folder), other(folder);
  EXPECT_EQ(cache.load("ab"), std::nullopt);
  EXPECT_EQ(cache.load_again("ab"), std::nullopt);
  EXPECT_EQ(cache.stats().misses, 1u);
  other.store("ab", "code");
  EXPECT_EQ(cache.load_again("ab"), "code");
  EXPECT_EQ(cache.stats().misses, 0u);
  EXPECT_EQ(cache.stats().hits, 1u);
}

TEST_F(KernelCacheTest, CountsEntriesBytesHitsAndMisses) {
  KernelCache cache(folder);
  EXPECT_EQ(cache.stats().entries, 0u);
  cache.store("aa", "12345");
  cache.store("bb", "1234567890");
  cache.store("bb", "123456789");  // replaces
  cache.load("aa");
  cache.load("bb");
  cache.load("cc");
  const KernelCache::Stats stats = cache.stats();
  EXPECT_EQ(stats.entries, 2u);
  EXPECT_EQ(stats.bytes, 2 * kHeaderBytes + 5 + 9);
  EXPECT_EQ(stats.hits, 2u);
  EXPECT_EQ(stats.misses, 1u);
  EXPECT_EQ(cache.load("bb"), "123456789");
}

TEST_F(KernelCacheTest, RefusesAndRemovesDamagedEntries) {
  expect_refused("empty", [](std::string& bytes) { bytes.clear(); });
  expect_refused("cut in the header", [](std::string& bytes) { bytes.resize(kHeaderBytes - 1); });
  expect_refused("cut after the header", [](std::string& bytes) { bytes.resize(kHeaderBytes); });
  expect_refused("last byte lost", [](std::string& bytes) { bytes.pop_back(); });
  expect_refused("one byte more", [](std::string& bytes) { bytes.push_back('x'); });
  expect_refused("other version", [](std::string& bytes) { ++bytes[kVersionAt]; });
  expect_refused("another file", [](std::string& bytes) { bytes = std::string(1000, 'x'); });
  expect_refused("zeros, as after a power cut", [](std::string& bytes) { bytes.assign(bytes.size(), '\0'); });
}

TEST_F(KernelCacheTest, RefusesAnEntryWithAnyOneBitAltered) {
  KernelCache cache(folder);
  cache.store("ab", "code");
  const std::string whole = read_file(entry("ab"));
  ASSERT_EQ(whole.size(), kHeaderBytes + 4);
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string altered = whole;
    altered[i] ^= static_cast<char>(1 << (i % 8));
    write_file(entry("ab"), altered);
    EXPECT_EQ(cache.load("ab"), std::nullopt) << "byte " << i;
  }
}

TEST_F(KernelCacheTest, RefusesAnEntryUnderAnotherKey) {
  KernelCache cache(folder);
  cache.store("ab", "code");
  fs::rename(entry("ab"), entry("ac"));
  EXPECT_EQ(cache.load("ac"), std::nullopt);
}

TEST_F(KernelCacheTest, RefusesAnEntryLongerThanTheWholeCacheWithoutReadingIt) {
  KernelCache cache(folder, 4096);
  cache.store("ab", "code");
  std::string bytes = read_file(entry("ab"));
  const uint64_t length_bytes = uint64_t{1} << 40;
  bytes.replace(16, sizeof(length_bytes), reinterpret_cast<const char*>(&length_bytes), sizeof(length_bytes));
  write_file(entry("ab"), bytes);
  fs::resize_file(entry("ab"),
                  kHeaderBytes + length_bytes);  // sparse, and of the length that its header claims
  EXPECT_EQ(cache.load("ab"), std::nullopt);
  EXPECT_FALSE(fs::exists(entry("ab")));
}

TEST_F(KernelCacheTest, TakesNoFileOfAnotherUserNorLinksNorPipes) {
  KernelCache cache(folder);
  cache.store("ab", "code");
  fs::copy_file(entry("ab"), root / "elsewhere");
  fs::remove(entry("ab"));
  fs::create_symlink(root / "elsewhere", entry("ab"));
  EXPECT_EQ(cache.load("ab"), std::nullopt);
  ASSERT_EQ(mkfifo(entry("cd").c_str(), 0600), 0);
  EXPECT_EQ(cache.load("cd"), std::nullopt);
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  cache.store("ef", "code");
  ASSERT_EQ(cache.load("ef"), "code");
  ASSERT_EQ(chown(entry("ef").c_str(), 12345, 12345), 0);
  EXPECT_EQ(cache.load("ef"), std::nullopt);
  EXPECT_TRUE(fs::exists(entry("ef"))) << "it is not ours to remove";
}

TEST_F(KernelCacheTest, KeepsFolderAndEntriesForTheOwnerOnly) {
  KernelCache(folder).store("ab", "code");
  struct stat status;
  ASSERT_EQ(stat(folder.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
  ASSERT_EQ(stat(entry("ab").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(KernelCacheTest, EvictsTheLeastRecentlyUsedEntriesFirst) {
  const std::string bytes(100 - kHeaderBytes, 'x');  // 100 bytes a file
  KernelCache roomy(folder);
  const std::vector<std::string> keys = {"00", "01", "02", "03", "04", "05", "06", "07"};
  for (size_t i = 0; i < keys.size(); ++i) {
    roomy.store(keys[i], bytes);
    set_age(entry(keys[i]), static_cast<int>(1000 - i));
  }
  EXPECT_TRUE(roomy.load("00"));  // now the most recent

  KernelCache cache(folder, 850);
  cache.store("08", bytes);  // 900 bytes; 7/8 of 850 is 743
  EXPECT_EQ(cache.stats().entries, 7u);
  EXPECT_FALSE(fs::exists(entry("01")));
  EXPECT_FALSE(fs::exists(entry("02")));
  EXPECT_EQ(cache.load("00"), bytes);
  EXPECT_EQ(cache.load("08"), bytes);
}

TEST_F(KernelCacheTest, StaysBelowItsBoundWhateverIsStored) {
  constexpr uint64_t kMax = 10'000;
  KernelCache cache(folder, kMax);
  for (int i = 0; i < 300; ++i) {
    cache.store(fmt::format("{:08x}", i), std::string(static_cast<size_t>(i * 37 % 1500), 'x'));
    ASSERT_LE(cache.stats().bytes, kMax + kMax / 16) << i;
  }
  EXPECT_GT(cache.stats().bytes, kMax / 2);
}

TEST_F(KernelCacheTest, KeepsAnEntryThatFillsItAndRefusesALargerOne) {
  KernelCache cache(folder, 1000);
  cache.store("aa", "old");
  set_age(entry("aa"), 10);
  cache.store("bb", std::string(1000 - kHeaderBytes, 'b'));
  EXPECT_TRUE(cache.load("bb"));
  EXPECT_FALSE(cache.load("aa"));
  cache.store("cc", std::string(1001 - kHeaderBytes, 'c'));
  EXPECT_FALSE(cache.load("cc"));
  EXPECT_TRUE(cache.load("bb"));
  EXPECT_TRUE(warnings.empty());
}

TEST_F(KernelCacheTest, RemovesTemporariesOfDeadProcessesAndSparesYoungOnes) {
  fs::create_directory(folder);
  write_file(folder / "ab.kernel.tmp.AAAAAA", "old");
  write_file(folder / "ab.kernel.tmp.BBBBBB", "young");
  write_file(folder / "notes.kernel.tmp.CCCCCC", "of somebody else");
  set_age(folder / "ab.kernel.tmp.AAAAAA", 3700);
  set_age(folder / "ab.kernel.tmp.BBBBBB", 3500);
  set_age(folder / "notes.kernel.tmp.CCCCCC", 100'000);
  KernelCache(folder).store("cd", "code");
  EXPECT_FALSE(fs::exists(folder / "ab.kernel.tmp.AAAAAA"));
  EXPECT_TRUE(fs::exists(folder / "ab.kernel.tmp.BBBBBB"));
  EXPECT_TRUE(fs::exists(folder / "notes.kernel.tmp.CCCCCC"));
}

TEST_F(KernelCacheTest, ClearRemovesEntriesAndLeavesForeignFilesAlone) {
  KernelCache cache(folder);
  EXPECT_EQ(cache.clear(), 0u);
  cache.store("ab", "code");
  cache.store("cd", "code");
  write_file(folder / "readme.txt", "mine");
  write_file(folder / "notes.kernel", "mine");
  write_file(folder / "ab.kernel.bak", "mine");
  fs::create_directory(folder / "ef.kernel");
  EXPECT_EQ(cache.clear(), 2u);
  EXPECT_EQ(files_in_folder(), 4);
  EXPECT_EQ(cache.stats().entries, 0u);
  EXPECT_EQ(cache.load("ab"), std::nullopt);
  cache.store("ab", "again");
  EXPECT_EQ(cache.load("ab"), "again");
}

TEST_F(KernelCacheTest, StoresAgainAfterTheFolderWasRemoved) {
  KernelCache cache(folder / "deep" / "deeper");
  cache.store("ab", "code");
  EXPECT_TRUE(cache.load("ab"));
  fs::remove_all(folder);
  EXPECT_EQ(cache.load("ab"), std::nullopt);
  cache.store("ab", "code");
  EXPECT_TRUE(cache.load("ab"));
  EXPECT_TRUE(warnings.empty());
}

// Permissions do not stop root, but a folder below a file or in /proc stops everybody.
TEST_F(KernelCacheTest, WarnsOnceWhereItCannotWriteAndGoesOn) {
  write_file(root / "file", "");
  for (const fs::path& place :
       {root / "file" / "cache", fs::path("/proc/coppice/cache"), fs::path("/proc")}) {
    warnings.clear();
    KernelCache cache(place);
    cache.store("ab", "code");
    cache.store("cd", "code");
    EXPECT_EQ(cache.load("ab"), std::nullopt);
    EXPECT_EQ(cache.clear(), 0u);
    EXPECT_EQ(cache.stats().entries, 0u);
    ASSERT_EQ(warnings.size(), 1u) << place;
    EXPECT_NE(warnings[0].find(place.string()), std::string::npos) << warnings[0];
  }
}

// A limit on file sizes fails write() halfway, as a full disk does.
TEST_F(KernelCacheTest, LeavesNoPartOfAnEntryWhenTheDiskIsFull) {
  KernelCache cache(folder);
  cache.store("ab", "fits");
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit limit = {.rlim_cur = 5000, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  cache.store("cd", std::string(20'000, 'x'));
  cache.store("ef", std::string(20'000, 'x'));
  setrlimit(RLIMIT_FSIZE, &before);

  EXPECT_EQ(files_in_folder(), 1);
  EXPECT_EQ(cache.load("cd"), std::nullopt);
  EXPECT_EQ(cache.load("ab"), "fits");
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("File too large"), std::string::npos) << warnings[0];
}

class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    value == nullptr ? unsetenv(name) : setenv(name, value, 1);
  }
  ~Environment() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(KernelCache, TakesItsDefaultFolderFromTheEnvironment) {
  const Environment home("HOME", "/home/somebody"), xdg("XDG_CACHE_HOME", "/var/xdg"),
      own("COPPICE_CACHE_DIR", "/var/own");
  EXPECT_EQ(KernelCache::default_folder(), "/var/own");
  const Environment no_own("COPPICE_CACHE_DIR", "");
  EXPECT_EQ(KernelCache::default_folder(), "/var/xdg/coppice");
  const Environment relative_xdg("XDG_CACHE_HOME", "relative");
  EXPECT_EQ(KernelCache::default_folder(), "/home/somebody/.cache/coppice");
  const Environment no_home("HOME", nullptr), tmp("TMPDIR", "/tmp");
  EXPECT_EQ(KernelCache::default_folder(), fs::path("/tmp") / fmt::format("coppice-{}", geteuid()));
  const Environment relative_own("COPPICE_CACHE_DIR", "here");
  EXPECT_EQ(KernelCache::default_folder(), fs::current_path() / "here");
}

TEST(KernelCache, TakesItsBoundFromTheEnvironment) {
  const Environment unset("COPPICE_CACHE_MAX_MB", nullptr);
  EXPECT_EQ(KernelCache::default_max_bytes(), KernelCache::kDefaultMaxBytes);
  for (const auto& [text, bytes] : std::vector<std::pair<const char*, uint64_t>>{
           {"", KernelCache::kDefaultMaxBytes}, {"0", 0}, {"3", 3 << 20}, {"1048576", uint64_t{1} << 40}}) {
    const Environment bound("COPPICE_CACHE_MAX_MB", text);
    EXPECT_EQ(KernelCache::default_max_bytes(), bytes) << text;
  }
  for (const char* text : {"-1", "1.5", "64MB", " 64", "1048577", "99999999999999999999999", "many"}) {
    const Environment bound("COPPICE_CACHE_MAX_MB", text);
    try {
      KernelCache::default_max_bytes();
      ADD_FAILURE() << text;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kUsage);
      EXPECT_EQ(e.what(),
                std::string("COPPICE_CACHE_MAX_MB must be a whole number of MiB from 0 to 1048576, not '") +
                    text + "'");
    }
  }
}

TEST_F(KernelCacheTest, KeepsAndFindsNothingWithABoundOfZero) {
  KernelCache roomy(folder), none(folder, 0);
  none.store("ab", "code");
  EXPECT_FALSE(fs::exists(folder));
  roomy.store("ab", "code");
  EXPECT_EQ(none.load("ab"), std::nullopt);
  EXPECT_EQ(roomy.load("ab"), "code") << "what others keep stays";
}

TEST(KernelCacheDeathTest, TakesOnlyHexadecimalKeys) {
  KernelCache cache("/nowhere");
  EXPECT_DEATH(cache.load("../../etc/passwd"), "hexadecimal");
  EXPECT_DEATH(cache.store("", "code"), "hexadecimal");
}

}  // namespace
}  // namespace coppice
