// The output folder: created, refused, or emptied of what a run writes and of nothing else.
#include "apps/output/output_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <optional>

#include "tests/apps/geometry_test_files.h"

namespace coppice {
namespace {

TEST(OutputFolder, NamesTheOutputsOfAFrame) {
  EXPECT_EQ(frame_png_path("out", 7), "out/frame_0007.png");
  EXPECT_EQ(particles_ply_path("out/", 12345), "out/particles_12345.ply");
  EXPECT_EQ(density_vdb_path("out", 0), "out/density_0000.vdb");
  EXPECT_EQ(particles_vtu_path("out", 1), "out/particles_0001.vtu");
  EXPECT_EQ(grid_vti_path("out", 1), "out/grid_0001.vti");
  EXPECT_EQ(particles_pvd_path("out"), "out/particles.pvd");
  EXPECT_EQ(grid_pvd_path("out"), "out/grid.pvd");
  EXPECT_EQ(stats_csv_path("out"), "out/stats.csv");
  EXPECT_EQ(movie_mp4_path("out"), "out/movie.mp4");
}

TEST(OutputFolder, KnowsItsOwnNames) {
  for (const char* name :
       {"frame_0000.png", "frame_123456.png", "particles_0001.ply", "density_0001.vdb", "particles_0001.vtu",
        "grid_0001.vti", "particles.pvd", "grid.pvd", "stats.csv", "movie.mp4"}) {
    EXPECT_TRUE(is_output_name(name)) << name;
  }
  for (const char* name :
       {"frame_.png", "frame_00a0.png", "my_frame_0000.png", "frame_0000.png.bak", "frame_0000.jpg",
        "frame_-001.png", "frame_00001.png", "frame_001.png", "statistics.csv", "particles.ply",
        "particles.vtu", "density.pvd", "grid_0000.vtu", ""}) {
    EXPECT_FALSE(is_output_name(name)) << name;
  }
}

TEST(OutputFolder, IsCreatedWithItsParents) {
  const TemporaryFolder folder;
  OutputFolder(folder / "a/b/c", false).prepare();
  EXPECT_TRUE(std::filesystem::is_directory(folder / "a/b/c"));
  OutputFolder(folder / "a/b/c", false).prepare();  // an empty one will do
  write_text(folder / "a/b/c/notes.txt", "mine");
  OutputFolder(folder / "a/b/c", false).prepare();  // and one with other files
}

TEST(OutputFolder, IsRefusedWhenItHoldsFrames) {
  const TemporaryFolder folder;
  write_text(frame_png_path(folder.path(), 1), "x");
  write_text(frame_png_path(folder.path(), 0), "x");
  expect_error(ErrorCode::kUsage,
               {folder.path(), "holds 2 files of an earlier run (frame_0000.png, ...)", "--overwrite"},
               [&] { OutputFolder(folder.path(), false).prepare(); });
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
  OutputFolder output(folder.path(), true);
  output.prepare();
  output.remove_earlier();
  EXPECT_EQ(names_in(folder.path()),
            (std::vector<std::string>{"frame_0000.jpg", "frame_0009.png", "notes.txt", "old",
                                      "other.txt.tmp.1", "stats.csv.bak"}));
  EXPECT_EQ(names_in(folder / "old").size(), 1u);
}

// A full disk meets the first frame's files, and a kill the run that writes them.
TEST(OutputFolder, HasTheEarlierRunsAgainWhereNoFirstFrameWasWritten) {
  const TemporaryFolder folder;
  write_text(folder / "frame_0000.png", "old");
  write_text(folder / "stats.csv", "old");
  write_text(folder / "frame_0001.png.tmp.earlier", "old");  // of a run that was killed
  {
    OutputFolder output(folder.path(), true);
    output.prepare();
    write_text(folder / "stats.csv", "new");
  }
  EXPECT_EQ(names_in(folder.path()),
            (std::vector<std::string>{"frame_0000.png", "frame_0001.png", "stats.csv"}));
  EXPECT_EQ(read_text(folder / "stats.csv"), "old");
}

TEST(OutputFolder, RemovesALinkAndNotWhatItPointsTo) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "out");
  write_text(folder / "precious.png", "mine");
  std::filesystem::create_symlink(folder / "precious.png", folder / "out/frame_0000.png");
  {
    OutputFolder output(folder / "out", true);
    output.prepare();
    output.remove_earlier();
  }
  EXPECT_TRUE(names_in(folder / "out").empty());
  EXPECT_EQ(read_text(folder / "precious.png"), "mine");
}

// Seen to fail: two runs wrote their frames into one folder.
TEST(OutputFolder, IsOneRunsAtATime) {
  const TemporaryFolder folder;
  const std::string path = folder / "out";
  OutputFolder first(path, true);  // not there yet: nobody's
  std::optional<OutputFolder> second(std::in_place, path, true);
  second->prepare();
  write_text(stats_csv_path(path), "second's");
  const auto is_refused = [&](const std::function<void()>& body) {
    expect_error(ErrorCode::kUsage, {path + ": another run is writing into this folder", "-o"}, body);
  };
  is_refused([&] { first.prepare(); });
  is_refused([&] { OutputFolder(path, false); });
  is_refused([&] { FolderLock{path}; });
  EXPECT_EQ(read_text(stats_csv_path(path)), "second's");
  EXPECT_EQ(names_in(path), std::vector<std::string>{"stats.csv"}) << "the lock leaves nothing there";
  second.reset();
  first.prepare();
  first.remove_earlier();
  EXPECT_TRUE(names_in(path).empty());
}

TEST(OutputFolder, IsLockedAnewWhenItWasMadeAnew) {
  const TemporaryFolder folder;
  const std::string path = folder / "out";
  std::filesystem::create_directory(path);
  OutputFolder run(path, false);
  std::filesystem::rename(path, folder / "moved");
  run.prepare();
  expect_error(ErrorCode::kUsage, {"another run"}, [&] { FolderLock{path}; });
  FolderLock(folder / "moved");
}

// Seen to fail: the frames of two runs were mixed.
TEST(OutputFolder, StaysTheFolderThatWasLockedWhereverALinkLeadsMeanwhile) {
  const TemporaryFolder folder;
  const std::string link = folder / "latest";
  const auto put_onto = [&](const std::string& to) {
    std::filesystem::remove(link);
    std::filesystem::create_directory_symlink(to, link);
  };
  std::filesystem::create_directory(folder / "a");
  std::filesystem::create_directory(folder / "b");
  put_onto("a");
  OutputFolder run(link, false);
  put_onto("b");
  run.prepare();
  const std::string a = std::filesystem::canonical(folder / "a").string();
  EXPECT_EQ(run.path(), a);
  EXPECT_EQ(run.text(), a + ", which is no longer " + link);
  OutputFolder(link, false).prepare();  // b is nobody's
  put_onto("a");
  EXPECT_EQ(run.text(), link);
}

TEST(OutputFolder, SaysThatItIsGone) {
  const TemporaryFolder folder;
  const std::string path = folder / "out";
  OutputFolder run(path, false);
  run.prepare();
  const auto expect_gone = [&] {
    expect_error(ErrorCode::kIo, {"/out: the output folder is gone"}, [&] { run.path(); });
  };
  std::filesystem::rename(path, folder / "moved");
  expect_gone();
  std::filesystem::create_directory(path);
  expect_gone();
  std::filesystem::remove(path);
  std::filesystem::rename(folder / "moved", path);
  run.require_in_place();
  std::filesystem::remove(path);
  expect_gone();
}

// Seen to fail: "File exists", when the scene was loaded.
TEST(OutputFolder, IsRefusedAtOnceBehindALinkThatLeadsNowhere) {
  const TemporaryFolder folder;
  const std::string link = folder / "link";
  std::filesystem::create_directory_symlink("nowhere", link);
  for (const std::string& way : {link, link + "/", link + "/a/b"}) {
    expect_error(ErrorCode::kUsage,
                 {way + ": ", "the link " + link + " leads to nowhere, which is not there"},
                 [&] { OutputFolder(way, true); });
  }
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"link"});
}

TEST(OutputFolder, IsLeftAsItIsUntilItIsPrepared) {
  const TemporaryFolder folder;
  write_text(stats_csv_path(folder.path()), "earlier");
  OutputFolder run(folder.path(), true);
  EXPECT_EQ(read_text(stats_csv_path(folder.path())), "earlier");
  run.prepare();
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"stats.csv.tmp.earlier"});
  run.remove_earlier();
  EXPECT_TRUE(names_in(folder.path()).empty());
}

TEST(OutputFolder, IsRefusedWhenItIsAFileOrLiesInOne) {
  const TemporaryFolder folder;
  write_text(folder / "file", "x");
  expect_error(ErrorCode::kUsage, {"file", "the output folder is a file"},
               [&] { OutputFolder(folder / "file", true).prepare(); });
  expect_error(ErrorCode::kIo, {"file/out", "cannot create the output folder", "Not a directory"},
               [&] { OutputFolder(folder / "file/out", false); });
}

TEST(OutputFolder, IsRefusedWhenItCannotBeWritten) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
  const TemporaryFolder folder;
  ::chmod(folder.path().c_str(), 0500);
  expect_error(ErrorCode::kIo, {"cannot write to the output folder", "Permission denied"},
               [&] { OutputFolder(folder.path(), false).prepare(); });
  ::chmod(folder.path().c_str(), 0700);
}

}  // namespace
}  // namespace coppice
