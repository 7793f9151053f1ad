// Collections of a series: they are whole after each entry, and when the disk is full.
#include "apps/output/pvd_log.h"
#include "tests/apps/geometry_test_files.h"
#include "tests/apps/output_file_size_limit.h"

namespace coppice {
namespace {

const std::string kBegin =
    "<?xml version=\"1.0\"?>\n<!-- written by coppice -->\n"
    "<VTKFile type=\"Collection\" version=\"1.0\" byte_order=\"LittleEndian\" header_type=\"UInt64\">\n"
    "<Collection>\n";
const std::string kEnd = "</Collection>\n</VTKFile>\n";
const std::string kFirst = "<DataSet timestep=\"0\" group=\"\" part=\"0\" file=\"a_0000.vtu\"/>\n";

TEST(PvdLog, IsWholeAfterEachEntry) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.pvd";
  write_text(path, std::string(5000, 'x'));
  PvdLog series(path);
  EXPECT_EQ(read_text(path), kBegin + kEnd);
  series.add("a_0000.vtu", 0);
  EXPECT_EQ(read_text(path), kBegin + kFirst + kEnd);
  series.add("a&b.vtu", 1.0 / 3);
  EXPECT_EQ(read_text(path), kBegin + kFirst +
                                 "<DataSet timestep=\"0.3333333333333333\" group=\"\" part=\"0\" "
                                 "file=\"a&amp;b.vtu\"/>\n" +
                                 kEnd);
}

TEST(PvdLog, StaysWholeOnAFullDisk) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.pvd";
  PvdLog series(path);
  series.add("a_0000.vtu", 0);
  const std::string before = read_text(path);
  // From nothing more to all but one byte of the entry.
  for (const size_t more : {size_t{0}, size_t{1}, size_t{30}, kFirst.size() - 1}) {
    expect_error(ErrorCode::kIo, {"a.pvd", "cannot write the collection"}, [&] {
      const FileSizeLimit limit(before.size() + more);
      series.add("a_0001.vtu", 1);
    });
    EXPECT_EQ(read_text(path), before) << more;
  }
  series.add("a_0001.vtu", 1);
  EXPECT_NE(read_text(path).find("a_0001.vtu"), std::string::npos);
  EXPECT_TRUE(read_text(path).ends_with(kEnd));
}

TEST(PvdLog, SaysWhenItIsGoneOrHasNoFolder) {
  const TemporaryFolder folder;
  expect_error(ErrorCode::kIo, {"none/a.pvd", "cannot create the collection"},
               [&] { PvdLog series(folder / "none/a.pvd"); });
  PvdLog series(folder / "a.pvd");
  std::filesystem::remove(folder / "a.pvd");
  expect_error(ErrorCode::kIo, {"a.pvd", "the collection is gone"}, [&] { series.add("x", 0); });
  expect_error(ErrorCode::kIo, {"a.pvd", "the collection is gone"}, [&] { series.require_in_place(); });
}

}  // namespace
}  // namespace coppice
