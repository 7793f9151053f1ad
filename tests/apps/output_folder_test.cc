// The output folder: created, refused, or emptied of what a run writes and of nothing else.
#include "apps/output/output_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include "tests/apps/geometry_test_files.h"

namespace coppice {
namespace {

TEST(OutputFolder, NamesTheOutputsOfAFrame) {
  EXPECT_EQ(frame_png_path("out", 7), "out/frame_0007.png");
  EXPECT_EQ(particles_ply_path("out/", 12345), "out/particles_12345.ply");
  EXPECT_EQ(density_vdb_path("out", 0), "out/density_0000.vdb");
  EXPECT_EQ(stats_csv_path("out"), "out/stats.csv");
  EXPECT_EQ(movie_mp4_path("out"), "out/movie.mp4");
}

TEST(OutputFolder, KnowsItsOwnNames) {
  for (const char* name : {"frame_0000.png", "frame_123456.png", "particles_0001.ply", "density_0001.vdb",
                           "stats.csv", "movie.mp4"}) {
    EXPECT_TRUE(is_output_name(name)) << name;
  }
  for (const char* name : {"frame_.png", "frame_00a0.png", "my_frame_0000.png", "frame_0000.png.bak",
                           "frame_0000.jpg", "frame_-001.png", "statistics.csv", "particles.ply", ""}) {
    EXPECT_FALSE(is_output_name(name)) << name;
  }
}

TEST(OutputFolder, IsCreatedWithItsParents) {
  const TemporaryFolder folder;
  prepare_output_folder(folder / "a/b/c", false);
  EXPECT_TRUE(std::filesystem::is_directory(folder / "a/b/c"));
  prepare_output_folder(folder / "a/b/c", false);  // an empty one will do
  write_text(folder / "a/b/c/notes.txt", "mine");
  prepare_output_folder(folder / "a/b/c", false);  // and one with other files
}

TEST(OutputFolder, IsRefusedWhenItHoldsFrames) {
  const TemporaryFolder folder;
  write_text(frame_png_path(folder.path(), 1), "x");
  write_text(frame_png_path(folder.path(), 0), "x");
  expect_error(ErrorCode::kUsage,
               {folder.path(), "holds 2 files of an earlier run (frame_0000.png, ...)", "--overwrite"},
               [&] { prepare_output_folder(folder.path(), false); });
  EXPECT_EQ(names_in(folder.path()).size(), 2u);
}

TEST(OutputFolder, IsEmptiedOfOutputsOnlyWhenOverwriting) {
  const TemporaryFolder folder;
  for (const char* name : {"frame_0000.png", "particles_0000.ply", "density_0003.vdb", "stats.csv",
                           "movie.mp4", "frame_0001.png.tmp.123.0"}) {
    write_text(folder / name, "x");
  }
  for (const char* name : {"notes.txt", "frame_0000.jpg", "stats.csv.bak", "other.txt.tmp.1"}) {
    write_text(folder / name, "mine");
  }
  std::filesystem::create_directory(folder / "frame_0009.png");  // a folder, strange as it is
  std::filesystem::create_directory(folder / "old");
  write_text(folder / "old/frame_0000.png", "mine");
  prepare_output_folder(folder.path(), true);
  EXPECT_EQ(names_in(folder.path()),
            (std::vector<std::string>{"frame_0000.jpg", "frame_0009.png", "notes.txt", "old",
                                      "other.txt.tmp.1", "stats.csv.bak"}));
  EXPECT_EQ(names_in(folder / "old").size(), 1u);
}

TEST(OutputFolder, RemovesALinkAndNotWhatItPointsTo) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "out");
  write_text(folder / "precious.png", "mine");
  std::filesystem::create_symlink(folder / "precious.png", folder / "out/frame_0000.png");
  prepare_output_folder(folder / "out", true);
  EXPECT_TRUE(names_in(folder / "out").empty());
  EXPECT_EQ(read_text(folder / "precious.png"), "mine");
}

TEST(OutputFolder, IsRefusedWhenItIsAFileOrLiesInOne) {
  const TemporaryFolder folder;
  write_text(folder / "file", "x");
  expect_error(ErrorCode::kUsage, {"file", "the output folder is a file"},
               [&] { prepare_output_folder(folder / "file", true); });
  expect_error(ErrorCode::kIo, {"file/out", "cannot create the output folder", "Not a directory"},
               [&] { prepare_output_folder(folder / "file/out", false); });
}

TEST(OutputFolder, IsRefusedWhenItCannotBeWritten) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
  const TemporaryFolder folder;
  ::chmod(folder.path().c_str(), 0500);
  expect_error(ErrorCode::kIo, {"cannot write to the output folder", "Permission denied"},
               [&] { prepare_output_folder(folder.path(), false); });
  ::chmod(folder.path().c_str(), 0700);
}

}  // namespace
}  // namespace coppice
