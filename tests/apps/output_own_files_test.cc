// Files of a run that no other output of it may overwrite.
#include <fstream>

#include "apps/output/own_files.h"
#include "tests/apps/geometry_test_files.h"

namespace coppice {
namespace {

namespace fs = std::filesystem;

TEST(OwnFiles, TwoOptionsMayNotNameOneFile) {
  const TemporaryFolder folder;
  const std::string file = folder / "f", link = folder / "link";
  fs::create_symlink("f", link);
  const auto refuse = [](const std::string& a, const std::string& b) {
    refuse_same_file("--plan", a, "--dot", b);
  };
  for (const bool is_there : {false, true}) {
    if (is_there) write_text(file, "x");
    for (const std::string& same : {file, link, folder / "./f"})
      expect_error(ErrorCode::kUsage, {"are one file"}, [&] { refuse(file, same); });
    refuse(file, folder / "g");
    refuse(folder / "g", file);
  }
  for (const char* each : {"-", "", "/dev/null"}) refuse(each, each);
}

TEST(OwnFiles, InputsAreSeenByAnyName) {
  const TemporaryFolder folder;
  const std::string scene = folder / "a.toml", other = folder / "b.toml";
  write_text(scene, "x");
  write_text(other, "x");
  fs::create_symlink("a.toml", folder / "link");
  fs::create_hard_link(scene, folder / "twin");
  for (const std::string& name : {scene, folder / "./a.toml", folder / "link", folder / "twin"}) {
    expect_error(ErrorCode::kUsage, {"--dot " + name + " would overwrite the scene, " + scene},
                 [&] { refuse_input("--dot", name, "the scene", scene); });
  }
  for (const std::string& name : {other, folder / "none", std::string("-"), std::string()})
    refuse_input("--dot", name, "the scene", scene);
  refuse_input("--dot", "/dev/null", "the scene", "/dev/null");
}

TEST(OwnFiles, OutputsAreSeenByAnyNameBeforeTheyAreThere) {
  const TemporaryFolder folder;
  const std::string out = folder / "out";
  fs::create_directory(out);
  fs::create_directory_symlink("out", folder / "latest");
  fs::create_symlink("latest/frame_0003.png", folder / "link");
  for (const std::string& name : {out + "/stats.csv", folder / "latest/movie.mp4", folder / "link"}) {
    expect_error(ErrorCode::kUsage, {"--trace " + name, " is a file that the run itself writes", out},
                 [&] { refuse_output("--trace", name, out); });
  }
  for (const std::string& name :
       {out + "/trace.json", folder / "stats.csv", std::string("-"), std::string(), std::string("stats.csv")})
    refuse_output("--trace", name, out);
  refuse_output("--trace", out + "/stats.csv", folder / "none");
}

}  // namespace
}  // namespace coppice
