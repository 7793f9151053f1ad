// The per-frame table: whole rows, exact numbers, and full disks.
#include <sys/stat.h>

#include <cerrno>
#include <cmath>
#include <limits>

#include "apps/output/csv_log.h"
#include "apps/output/io_error.h"
#include "tests/apps/geometry_test_files.h"
#include "tests/apps/output_file_size_limit.h"

namespace coppice {
namespace {

TEST(CsvLog, WritesTheHeaderOnceAndARowPerFrame) {
  const TemporaryFolder folder;
  CsvLog log(folder / "stats.csv", {"frame", "time_s", "mass"});
  EXPECT_EQ(read_text(folder / "stats.csv"), "frame,time_s,mass\n");
  log.write_row(std::vector<double>{0, 0.1, 1e6});
  // Each row is there as soon as write_row returns.
  EXPECT_EQ(read_text(folder / "stats.csv"), "frame,time_s,mass\n0,0.1,1000000\n");
  log.write_row(std::vector<double>{1, 1.0 / 3, -2.5e-300});
  EXPECT_EQ(read_text(folder / "stats.csv"),
            "frame,time_s,mass\n0,0.1,1000000\n1,0.3333333333333333,-2.5e-300\n");
}

TEST(CsvLog, WritesNumbersThatReadBackTheSame) {
  const TemporaryFolder folder;
  CsvLog log(folder / "stats.csv", {"a", "b"});
  log.write_row(std::vector<double>{M_PI, std::numeric_limits<double>::denorm_min()});
  log.write_row(std::vector<double>{NAN, -INFINITY});
  double a = 0, b = 0;
  const std::string text = read_text(folder / "stats.csv");
  ASSERT_EQ(std::sscanf(text.c_str(), "a,b\n%lf,%lf", &a, &b), 2) << text;
  EXPECT_EQ(a, M_PI);
  EXPECT_EQ(b, std::numeric_limits<double>::denorm_min());
  EXPECT_NE(text.find("\nnan,-inf\n"), std::string::npos) << text;
}

TEST(CsvLog, EmptiesAnEarlierTable) {
  const TemporaryFolder folder;
  write_text(folder / "stats.csv", "a long line of an earlier run\n");
  const CsvLog log(folder / "stats.csv", {"x"});
  EXPECT_EQ(read_text(folder / "stats.csv"), "x\n");
}

TEST(CsvLog, KeepsWholeRowsOnlyWhenTheDiskFillsUpWithinOne) {
  const TemporaryFolder folder;
  const std::string path = folder / "stats.csv", kept = "a,b\n1,2\n";
  CsvLog log(path, {"a", "b"});
  log.write_row(std::vector<double>{1, 2});
  expect_error(ErrorCode::kIo, {"stats.csv", "cannot write the table", "disk full"}, [&] {
    const FileSizeLimit limit(kept.size() + 3);
    log.write_row(std::vector<double>{3.25, 4.25});
  });
  EXPECT_EQ(read_text(path), kept);
  log.write_row(std::vector<double>{5, 6});  // there is space again
  EXPECT_EQ(read_text(path), kept + "5,6\n");
}

TEST(CsvLog, SaysThatTheDiskIsFull) {
  struct stat device {};
  if (::stat("/dev/full", &device) != 0) GTEST_SKIP() << "no /dev/full on this system";
  expect_error(ErrorCode::kIo, {"/dev/full: cannot write the table: disk full: No space left on device"},
               [] { CsvLog("/dev/full", {"x"}); });
}

// Seen to fail: rows were written that nobody could find.
TEST(CsvLog, SaysThatItIsGone) {
  const TemporaryFolder folder;
  const std::string path = folder / "stats.csv";
  CsvLog log(path, {"x"});
  log.require_in_place();
  std::filesystem::remove(path);
  expect_error(ErrorCode::kIo, {path + ": the table is gone"}, [&] { log.require_in_place(); });
  write_text(path, "another's");
  expect_error(ErrorCode::kIo, {path + ": the table is gone"},
               [&] { log.write_row(std::vector<double>{1}); });
}

TEST(CsvLog, NamesAFolderThatIsMissing) {
  const TemporaryFolder folder;
  expect_error(ErrorCode::kIo, {"none/stats.csv", "cannot create the table", "No such file"},
               [&] { CsvLog(folder / "none/stats.csv", {"x"}); });
}

TEST(IoError, NamesFileActionAndReason) {
  expect_error(ErrorCode::kIo, {"a.png: cannot write: Permission denied"},
               [] { throw_io_error("cannot write", "a.png", EACCES); });
  expect_error(ErrorCode::kIo, {"disk full: Disk quota exceeded"},
               [] { throw_io_error("x", "a.png", EDQUOT); });
}

TEST(CsvLogDeathTest, ChecksTheNumberOfValues) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const TemporaryFolder folder;
  CsvLog log(folder / "stats.csv", {"a", "b"});
  EXPECT_DEATH(log.write_row(std::vector<double>{1}), "stats.csv");
  EXPECT_DEATH(CsvLog(folder / "x.csv", {"a,b"}), "column 'a,b'");
}

}  // namespace
}  // namespace coppice
