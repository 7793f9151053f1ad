// core/file_part.h: several fill one file, and whatever fails says so.
#include "core/file_part.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "core/atomic_file.h"
#include "core/error.h"
#include "tests/core/file_folder.h"

namespace coppice {
namespace {

namespace fs = std::filesystem;

class FilePartTest : public FileFolderTest {
 protected:
  static std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }
};

TEST_F(FilePartTest, SeveralFillOneFileInAnyOrder) {
  std::ofstream(path("a.txt")) << "old";
  AtomicFile file(path("a.txt"));
  file.set_size(12);
  FilePart first(file.path(), file.temporary_path()), second(file.path(), file.temporary_path());
  second.write(8, bytes("ijkl"));
  first.write(0, bytes("ab"));
  second.write(6, bytes("gh"));
  first.write(2, bytes("cd"));  // where it stands
  first.finish();
  second.finish();
  EXPECT_EQ(read(path("a.txt")), "old");
  file.commit();
  EXPECT_EQ(read(path("a.txt")), std::string("abcd\0\0ghijkl", 12));
  EXPECT_EQ(files_in_folder(), 1);
}

TEST_F(FilePartTest, WithoutCommitNothingIsLeft) {
  {
    AtomicFile file(path("a.txt"));
    file.set_size(3);
    FilePart part(file.path(), file.temporary_path());
    part.write(0, bytes("abc"));
  }
  EXPECT_EQ(files_in_folder(), 0);
}

TEST_F(FilePartTest, SaysWhichFileIsNotThere) {
  EXPECT_EQ(io_error_of([&] { FilePart("frame.ply", path("none/frame.ply.tmp.1.0")); }),
            "frame.ply cannot be opened to write a part of it: No such file or directory");
}

TEST_F(FilePartTest, AFileAboveTheLimitIsAnErrorAndNoSignal) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer maps a file of its own";
#endif
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  AtomicFile file(path("a")), small(path("b"));
  small.set_size(100);
  FilePart part(small.path(), small.temporary_path());
  const rlimit limit{4096, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &limit);
  EXPECT_EQ(io_error_of([&] { file.set_size(5000); }), path("a") + " cannot be written: File too large");
  EXPECT_EQ(io_error_of([&] { part.write(4096, bytes("x")); }),
            path("b") + " cannot be written: File too large");
  setrlimit(RLIMIT_FSIZE, &before);
}

}  // namespace
}  // namespace coppice
