// Files that were set aside, whenever a signal ends the program.
#include "core/aside_files.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "core/stop_signals.h"

namespace coppice {
namespace {

namespace fs = std::filesystem;

class AsideFilesTest : public testing::Test {
 protected:
  AsideFilesTest() {
    char name[] = "/tmp/coppice_aside_XXXXXX";
    folder = mkdtemp(name);
  }
  ~AsideFilesTest() override { fs::remove_all(folder); }
  std::string name(int i) const { return (folder / ("file_" + std::to_string(i))).string(); }
  std::string aside(int i) const { return name(i) + ".tmp.earlier"; }
  void write(int i, const std::string& text = "old") const { std::ofstream(name(i)) << text; }
  std::string read(int i) const {
    std::string text;
    std::ifstream(name(i)) >> text;
    return text;
  }
  // How many have their own names, and the other ones.
  std::pair<int, int> count() const {
    std::pair<int, int> n;
    for (const auto& entry : fs::directory_iterator(folder))
      ++(entry.path().string().ends_with(".tmp.earlier") ? n.second : n.first);
    return n;
  }
  fs::path folder;
};
using Counts = std::pair<int, int>;

TEST_F(AsideFilesTest, GetTheirNamesBackOverWhatIsThere) {
  for (int i = 0; i < 3; ++i) write(i);
  {
    AsideFiles files;
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(files.add(name(i), aside(i)));
    EXPECT_EQ(count(), Counts(0, 3));
    write(1, "new");
  }
  EXPECT_EQ(count(), Counts(3, 0));
  EXPECT_EQ(read(1), "old");
}

TEST_F(AsideFilesTest, AreRemovedWhenTheyAreNotNeededAnyMore) {
  for (int i = 0; i < 3; ++i) write(i);
  AsideFiles files;
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(files.add(name(i), aside(i)));
  write(1, "new");
  EXPECT_FALSE(files.remove().second);
  EXPECT_EQ(count(), Counts(1, 0));
  EXPECT_FALSE(files.remove().second);
  write(5);
  EXPECT_FALSE(files.add(name(5), aside(5)));  // and from the start
  files.put_back();
  EXPECT_EQ(count(), Counts(2, 0));
}

TEST_F(AsideFilesTest, OneThatCannotBeRenamedStays) {
  AsideFiles files;
  EXPECT_EQ(files.add(name(0), aside(0)).value(), ENOENT);
  write(1);
  EXPECT_EQ(files.add(name(1), "/no/such/folder").value(), ENOENT);
  EXPECT_EQ(count(), Counts(1, 0));
  files.put_back();
  EXPECT_EQ(count(), Counts(1, 0));
}

// A process sets 100 files aside and removes them, and a signal comes to it at some moment, to its own
// thread or to another: all files are there with their names, or none is.
TEST_F(AsideFilesTest, AreAllBackOrAllGoneWheneverASignalComes) {
  std::mt19937 random(3);
  int n_back = 0, n_gone = 0;
  // On a busy machine the work may be done each time before the signal is sent, which is at once then.
  for (int run = 0; run < 40 || (n_back == 0 && run < 400); ++run) {
    constexpr int kFiles = 100;
    for (int i = 0; i < kFiles; ++i) write(i);
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
      ::close(STDERR_FILENO);
      const StopSignals signals;
      const auto work = [&] {
        AsideFiles files;
        for (int i = 0; i < kFiles; ++i) files.add(name(i), aside(i));
        files.remove();
      };
      [[maybe_unused]] const auto written = ::write(ready[1], "x", 1);
      if (run % 2 == 0)
        work();
      else
        std::thread(work).join();
      pause();
    }
    char x;
    ASSERT_EQ(::read(ready[0], &x, 1), 1);
    if (run < 40) std::this_thread::sleep_for(std::chrono::microseconds(random() % 6'000));
    kill(child, SIGINT);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), 130);
    const Counts n = count();
    EXPECT_EQ(n.second, 0) << run;
    EXPECT_TRUE(n.first == 0 || n.first == kFiles) << run << ": " << n.first;
    ++(n.first == 0 ? n_gone : n_back);
    ::close(ready[0]), ::close(ready[1]);
  }
  RecordProperty("back", n_back), RecordProperty("gone", n_gone);
  EXPECT_GT(n_back, 0);
}

}  // namespace
}  // namespace coppice
