// core/read_file.h: all bytes of files and pipes, and the system's reason where there are none.
#include "core/read_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

namespace coppice {
namespace {

namespace fs = std::filesystem;

class ReadFile : public testing::Test {
 protected:
  ReadFile() {
    std::string name = (fs::temp_directory_path() / "coppice_read_file_XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~ReadFile() override { fs::remove_all(folder_); }
  std::string path(const char* name) const { return (folder_ / name).string(); }

  fs::path folder_;
};

TEST_F(ReadFile, HasEveryByteOfAnySize) {
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{65535}, size_t{65536}, size_t{65537}, size_t{1} << 20}) {
    std::string text(size, 'a');
    for (size_t i = 0; i < size; i += 251) text[i] = static_cast<char>(i);
    std::ofstream(path("file"), std::ios::binary) << text;
    std::string bytes = "what was there before";
    EXPECT_EQ(read_file(path("file"), bytes), 0);
    EXPECT_TRUE(bytes == text) << size;
  }
}

TEST_F(ReadFile, ReadsPipesToTheirEnd) {
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
  const std::string text(300'000, 'x');
  std::thread writer([&] { std::ofstream(path("fifo"), std::ios::binary) << text; });
  std::string bytes;
  EXPECT_EQ(read_file(path("fifo"), bytes), 0);
  writer.join();
  EXPECT_TRUE(bytes == text);
  EXPECT_EQ(read_file("/proc/self/status", bytes), 0);  // whose size is said to be 0
  EXPECT_NE(bytes.find("VmRSS"), std::string::npos);
}

TEST_F(ReadFile, ReadsNoMoreThanItMay) {
  std::ofstream(path("ten")) << "0123456789";
  std::string bytes;
  EXPECT_EQ(read_file(path("ten"), bytes, 10), 0);
  EXPECT_EQ(bytes, "0123456789");
  EXPECT_EQ(read_file(path("ten"), bytes, 9), EFBIG);
  EXPECT_EQ(bytes, "");
  EXPECT_EQ(read_file("/dev/zero", bytes, size_t{1} << 20), EFBIG);  // which has no end
}

TEST_F(ReadFile, GivesTheReasonOfAFailure) {
  std::string bytes = "old";
  EXPECT_EQ(read_file(path("none"), bytes), ENOENT);
  EXPECT_EQ(bytes, "");
  EXPECT_EQ(read_file(folder_.string(), bytes), EISDIR);
}

}  // namespace
}  // namespace coppice
