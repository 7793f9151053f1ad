// The real program meets bad input, a full disk and Ctrl-C with one clear line, the right exit code, and no
// half file.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "apps/cli/system_info.h"
#include "tests/apps/run_outputs.h"
#include "tests/apps/run_program.h"

namespace coppice {
namespace {

namespace fs = std::filesystem;

class BadInput : public testing::Test {
 protected:
  void SetUp() override { write_text(scene_, tiny_scene()); }

  ProgramResult run_with(const std::vector<std::string>& more) {
    std::vector<std::string> words{"run", scene_, "-o", out_};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words);
  }
  // The run is refused, and before it has made its folder.
  void expect_untouched(const ProgramResult& result, int code, const std::vector<std::string>& parts) {
    expect_refused(result, code, parts);
    EXPECT_FALSE(fs::exists(out_));
  }
  ProgramResult run_mesh(const std::string& text) {
    write_text(folder_ / "mesh.ply", text);
    write_text(scene_,
               tiny_scene("shape = \"mesh\"\nmesh = \"mesh.ply\"\nfit = 0.3\ntranslate = [0.5, 0.5, 0.5]\n"
                          "material = \"snow\"\n"));
    return run_with({});
  }

  TemporaryFolder folder_;
  std::string scene_ = folder_ / "tiny.toml";
  std::string out_ = folder_ / "out";
};

// A tetrahedron whose second vertex and number of faces are the test's.
std::string tetrahedron(const std::string& second_vertex, int n_faces_promised) {
  return "ply\nformat ascii 1.0\nelement vertex 4\nproperty float x\nproperty float y\nproperty float z\n"
         "element face " +
         std::to_string(n_faces_promised) + "\nproperty list uchar int vertex_indices\nend_header\n0 0 0\n" +
         second_vertex + "\n0 1 0\n0 0 1\n3 0 2 1\n3 0 1 3\n3 0 3 2\n3 1 2 3\n";
}

TEST_F(BadInput, RefusesAMissingMesh) {
  write_text(scene_,
             tiny_scene("shape = \"mesh\"\nmesh = \"nowhere.obj\"\nfit = 0.3\nmaterial = \"snow\"\n"));
  expect_untouched(run_with({}), 1, {scene_ + ":14:1: ", "nowhere.obj: no such mesh file"});
}

TEST_F(BadInput, RefusesATruncatedMesh) {
  ASSERT_EQ(run_mesh(tetrahedron("1 0 0", 4)).exit_code, 0);
  fs::remove_all(out_);
  expect_untouched(run_mesh(tetrahedron("1 0 0", 5)), 1,
                   {scene_ + ":14:1: ", "mesh.ply:", "the file ends in face 4 of 5"});
}

TEST_F(BadInput, RefusesVerticesThatAreNotFinite) {
  expect_untouched(run_mesh(tetrahedron("1 nan 0", 4)), 1,
                   {scene_ + ":14:1: ", "mesh.ply:", "vertex 1 is not finite"});
  expect_untouched(run_mesh(tetrahedron("inf 0 0", 4)), 1, {"vertex 1 is not finite"});
}

TEST_F(BadInput, RefusesAnEmptyScene) {
  write_text(scene_, "");
  expect_untouched(run_with({}), 2, {scene_ + ": the scene is empty"});
  write_text(scene_, tiny_scene());
  expect_untouched(run_with({"--set", "emitter.0.radius=0.001"}), 1,
                   {scene_ + ":12:1: ", "yields no particles"});
}

// Seen to fail: a triangle ten cells wide was "smaller than a grid cell".
TEST_F(BadInput, SaysWhereAMeshEnclosesNothing) {
  const std::string head =
      "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty "
      "float z\nelement face ";
  const std::string list =
      "\nproperty list uchar int vertex_indices\nend_header\n0 0 0\n1 0 0\n0 1 0.5\n3 0 1 2\n";
  expect_untouched(
      run_mesh(head + "1" + list), 1,
      {scene_ + ":14:1: ", "yields no particles: its mesh encloses nothing, it has 3 open edges"});
  expect_untouched(run_mesh(head + "2" + list + "3 0 2 1\n"), 1,
                   {"its mesh encloses nothing, its volume is zero"});
  ASSERT_EQ(run_mesh(tetrahedron("1 0 0", 4)).exit_code, 0);
  fs::remove_all(out_);
  // Without its last face it still has an inside, which is too small here.
  const std::string whole = tetrahedron("1 0 0", 3);
  write_text(folder_ / "mesh.ply", whole.substr(0, whole.rfind("3 1 2 3")));
  for (const std::string n_faces : {"open", "closed"}) {
    if (n_faces == "closed") write_text(folder_ / "mesh.ply", tetrahedron("1 0 0", 4));
    expect_untouched(run_with({"--set", "emitter.0.fit=0.001"}), 1,
                     {"yields no particles: what its mesh encloses is smaller than a grid cell"});
  }
}

// Seen to fail: neither file nor key was named.
TEST_F(BadInput, NamesTheKeyOfASizeThatVanishesInFloats) {
  const std::string center = "center = [0.5, 0.5, 0.5]\nmaterial = \"snow\"\n";
  struct Row {
    std::string shape, key;
  };
  for (const Row& row : {Row{"shape = \"box\"\nhalf_size = [1e-9, 0.2, 0.2]\n", "half_size"},
                         Row{"shape = \"cylinder\"\nhalf_height = 1e-9\nradius = 0.1\n", "half_height"},
                         Row{"shape = \"cylinder\"\nradius = 1e-50\nhalf_height = 0.1\n", "radius"},
                         Row{"shape = \"sphere\"\nradius = 1e-50\n", "radius"}}) {
    write_text(scene_, tiny_scene(row.shape + center));
    expect_untouched(run_with({}), 1, {scene_ + ":14:1: ", "the emitter's '" + row.key + "' is too small: "});
  }
  // So has the refusal of one that is far too large.
  write_text(scene_, tiny_scene("shape = \"box\"\nhalf_size = [1e6, 1e6, 1e6]\n" + center));
  expect_untouched(run_with({}), 1,
                   {scene_ + ":12:1: ", "the emitter reaches from (-1e+06, -1e+06, -1e+06) to "});
}

TEST_F(BadInput, RefusesParticlesOutsideTheDomain) {
  expect_untouched(run_with({"--set", "emitter.0.center=[0.5, 0.95, 0.5]"}), 1,
                   {scene_ + ":12:1: ", "particles are outside the domain", "(0, 0, 0) to (1, 1, 1)"});
}

// Seen to fail: there were three numbers for each place.
TEST_F(BadInput, ShowsPlacesOfTwoDimensionsWithTwoNumbers) {
  write_text(scene_,
             "dim = 2\n[[emitter]]\nshape = \"sphere\"\ncenter = [0.5, 0.95]\nradius = 0.2\nmaterial "
             "= \"snow\"\n");
  const ProgramResult result = run_with({});
  expect_untouched(result, 1, {"outside the domain, one at (0.", "; the domain is (0, 0) to (1, 1)"});
  EXPECT_FALSE(result.err_has(", 0); the domain")) << result.err;
}

TEST_F(BadInput, RefusesUnknownKeysAndBadValues) {
  write_text(scene_, tiny_scene("", "[tmie]\nframes = 2\n"));
  expect_untouched(run_with({}), 2, {scene_ + ":17:2: unknown key 'tmie'; did you mean 'time'?"});
  write_text(scene_, tiny_scene());
  expect_untouched(run_with({"--set", "time.frmaes=2"}), 2,
                   {"--set time.frmaes=2: unknown key", "'time.frames'?"});
  expect_untouched(run_with({"--set", "time.frames=\"many\""}), 2, {"must be an integer"});
  expect_untouched(run_with({"--set", "time.frames"}), 2, {"expected KEY.PATH=VALUE"});
  expect_untouched(run_with({"--set", "time.cfl=nan"}), 2, {"time.cfl"});
  expect_untouched(run_with({"--device", "gpu"}), 2, {"--device: gpu not in {auto,cpu,cuda,simt}"});
}

TEST_F(BadInput, RefusesADeviceThatIsNotThere) {
  const ProgramResult result = run_with({"--device", "cuda", "--frames", "1"});
  if (result.exit_code == 0) GTEST_SKIP() << "there is a CUDA device";
  expect_untouched(result, 1, {"device cuda: ", "use the cpu device"});
}

// A stirrer whose far end would move at 1e12 m/s: after one step the jelly's stiffness overflows.
TEST_F(BadInput, StopsWhereAColliderIsTooFast) {
  write_text(
      scene_,
      tiny_scene(
          "shape = \"sphere\"\ncenter = [0.5, 0.5, 0.5]\nradius = 0.2\nmaterial = \"jelly\"\n",
          "[[collider]]\nshape = \"box\"\ncenter = [-9e5, 0.5, 0.5]\nhalf_size = [900000.5, 0.05, 0.3]\n"
          "angular_velocity_rad_s = [0, 0, 1e6]\nboundary = \"stick\"\n"));
  const ProgramResult result = run_with({});
  expect_refused(result, 1,
                 {"frame 1: at t = 0 s collider[0] moves with 9e+11 m/s, ", "; slow it down, or "});
  // The frame before it is there, with its row; the one that broke has left nothing.
  expect_whole_files(out_);
  EXPECT_EQ(read_rows(out_).size(), 1u);
  EXPECT_EQ(count_names(out_, ".ply"), 1);
}

TEST_F(BadInput, RefusesAFolderWithFramesInIt) {
  ASSERT_EQ(run_with({"--frames", "1"}).exit_code, 0);
  const std::vector<std::string> before = names_in(out_);
  const std::string first = read_text(particles_ply_path(out_, 0));
  const ProgramResult result = run_with({"--set", "seed=99"});
  expect_refused(result, 2,
                 {out_ + ": the output folder holds ", " of an earlier run", "--overwrite replaces them"});
  EXPECT_EQ(result.err_lines().size(), 1u) << "refused before any work: " << result.err;
  EXPECT_EQ(names_in(out_), before);
  EXPECT_TRUE(read_text(particles_ply_path(out_, 0)) == first);
}

TEST_F(BadInput, RefusesAnOutputFolderThatIsAFile) {
  write_text(out_, "mine");
  expect_refused(run_with({"--overwrite"}), 2, {out_ + ": the output folder is a file"});
  EXPECT_EQ(read_text(out_), "mine");
}

TEST_F(BadInput, SaysWhenItsListingCannotBeWritten) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  // Seen to fail: help and version ended with 0.
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"list"}, {"--help"}, {"run", "--help"}, {"--version"}}) {
    const ProgramResult result = run_program(words, {.prefix = {"sh", "-c", "exec \"$@\" >/dev/full", "sh"}});
    expect_refused(result, 1, {"cannot write to standard output"});
  }
}

// No file may grow above 4 KiB, which the first frame's particles do.
TEST_F(BadInput, SaysWhichFileCouldNotGrow) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer maps a file of its own when a program starts, which the limit cuts off";
#endif
  ASSERT_EQ(run_with({"--frames", "0"}).exit_code, 0);  // fills the kernel cache
  const ProgramOptions limited{.prefix = {"sh", "-c", "trap '' XFSZ; ulimit -f 8; exec \"$@\"", "sh"}};
  expect_refused(run_program({"run", scene_, "-o", out_}, limited), 1,
                 {"particles_0000.ply cannot be written: File too large"});
  expect_whole_files(out_);
  EXPECT_EQ(read_rows(out_).size(), 0u);
}

class FullDisk : public BadInput, public testing::WithParamInterface<int> {};

// A file system of so many KiB in a namespace of the child's own, copied out before it vanishes.
TEST_P(FullDisk, EndsTheRunAndLeavesWholeFrames) {
  const std::string disk = folder_ / "disk";
  fs::create_directory(disk);
  const std::string mount = "mount -t tmpfs -o size=" + std::to_string(GetParam()) + "k none " + disk;
  if (!cli::find_program("unshare") ||
      run_program({}, {.prefix = {"unshare", "-rm", "sh", "-c", mount, "sh"}}).exit_code != 0) {
    GTEST_SKIP() << "this machine lets nobody mount a small file system";
  }
  ASSERT_EQ(run_with({"--frames", "0"}).exit_code, 0);  // fills the kernel cache
  const std::string script =
      mount + " && { \"$@\"; code=$?; cp -r " + disk + "/out " + out_ + "; exit $code; }";
  const ProgramResult result = run_program({"run", scene_, "-o", disk + "/out", "--frames", "9"},
                                           {.prefix = {"unshare", "-rm", "sh", "-c", script, "sh"}});
  expect_refused(result, 1, {"No space left on device", disk + "/out/"});
  expect_whole_files(out_);
  const auto n_rows = static_cast<int64_t>(read_rows(out_).size());
  EXPECT_LT(n_rows, 10);
  EXPECT_GE(count_names(out_, ".ply"), n_rows);  // a frame that has a row has its files
  EXPECT_LE(count_names(out_, ".ply"), n_rows + 1);
}

// From a disk for half a frame to one for a few, so that every kind of file meets its end.
INSTANTIATE_TEST_SUITE_P(OfKiB, FullDisk, testing::Values(4, 20, 36, 44, 52, 60, 68, 76, 84, 100, 140),
                         testing::PrintToStringParamName());

class Stopped : public BadInput, public testing::WithParamInterface<int> {};

TEST_P(Stopped, FinishesItsFrameAndLeavesWholeFiles) {
  bool is_sent = false;
  ProgramOptions options;
  options.on_stderr = [&](pid_t child, const std::string& err) {
    if (is_sent || err.find("frame 1/") == std::string::npos) return;
    is_sent = true;
    ::kill(child, GetParam());
  };
  const ProgramResult result = run_program({"run", scene_, "-o", out_, "--frames", "100000"}, options);
  ASSERT_TRUE(is_sent) << result.err;
  EXPECT_EQ(result.exit_code, 130) << "signal " << result.signal << "\n" << result.err;
  EXPECT_EQ(result.out, "");
  const std::vector<std::vector<double>> rows = read_rows(out_);
  ASSERT_GE(rows.size(), 2u);
  const std::string last = std::to_string(rows.size() - 1);
  EXPECT_EQ(result.err_lines().at(result.err_lines().size() - 2),
            "interrupted after frame " + last + " of 100000; frames 0 to " + last + " are in " + out_);
  const std::string before_last =
      std::to_string(rows.size() - 2);  // where the signal came between two frames
  EXPECT_TRUE(result.err_has("finishing frame " + last + "; again to stop now\n") ||
              result.err_has("finishing frame " + before_last + "; again to stop now\n"))
      << result.err;
  EXPECT_EQ(count_names(out_, ".ply"), static_cast<int64_t>(rows.size()));
  const bool draws = !result.err_has("no pictures");
  EXPECT_EQ(count_names(out_, ".png"), draws ? static_cast<int64_t>(rows.size()) : 0);
  expect_whole_files(out_);
}

INSTANTIATE_TEST_SUITE_P(By, Stopped, testing::Values(SIGINT, SIGTERM, SIGHUP), [](const auto& info) {
  return info.param == SIGINT ? "CtrlC" : info.param == SIGTERM ? "Termination" : "Hangup";
});

// Before an earlier run's files are removed. Seen to fail: they were gone.
TEST_F(BadInput, RefusesPicturesThatAreTooLargeBeforeAnythingIsTouched) {
  ASSERT_EQ(run_with({"--frames", "1"}).exit_code, 0);
  const std::vector<std::string> before = names_in(out_);
  const auto too_large = [&](const std::vector<std::string>& words) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {scene_, "-o", out_, "--overwrite", "--set", "output.width=16384"});
    return run_program(all);
  };
  for (const ProgramResult& result : {too_large({"run"}), too_large({"view", "--view", "file"})}) {
    if (result.exit_code == 0 || result.err_has("cannot draw"))
      GTEST_SKIP() << "such pictures, or none, are drawn here";
    expect_refused(result, 2, {"draws pictures of 1 to ", " pixels a side, not 16384 x 120"});
    EXPECT_EQ(names_in(out_), before);
  }
}

// Runs go on without pictures; what is for pictures alone ends before it has made its folder.
TEST_F(BadInput, SaysWhyThereAreNoPictures) {
  if (run_with({"--frames", "1"}).err_has("cannot draw")) GTEST_SKIP() << "none are drawn here";
  write_text(folder_ / "libEGL.so.1", "no library\n");
  const std::map<std::string, std::pair<std::string, std::string>> machines{
      {"libEGL.so.1 is not installed", {"LD_LIBRARY_PATH", folder_ / ""}},
      {"no OpenGL 3.3 context (tried EGL",
       {"__EGL_VENDOR_LIBRARY_DIRS", "/nowhere"}}};  // libEGL without drivers
  for (const auto& [why, variable] : machines) {
    ProgramOptions machine;
    machine.environment.insert(variable);
    fs::remove_all(out_);
    const ProgramResult run = run_program({"run", scene_, "-o", out_, "--frames", "1"}, machine);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_TRUE(run.err_has("cannot draw frames: " + why)) << run.err;
    EXPECT_EQ(count_names(out_, ".png"), 0);
    EXPECT_EQ(count_names(out_, ".ply"), 2);
    fs::remove_all(out_);
    const ProgramResult view =
        run_program({"view", scene_, "-o", out_, "--view", "file", "--frames", "1"}, machine);
    EXPECT_EQ(view.exit_code, 1);
    EXPECT_TRUE(view.err_has("error: cannot draw frames: " + why)) << view.err;
    EXPECT_FALSE(fs::exists(out_));
  }
}

}  // namespace
}  // namespace coppice
