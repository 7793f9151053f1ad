// The command line with a recording solver behind it: exit codes, the one line on stderr, and what reaches
// the hooks.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <thread>

#include "apps/cli/assets.h"
#include "apps/cli/commands.h"
#include "apps/cli/system_info.h"
#include "core/error.h"
#include "core/log.h"
#include "core/trace.h"
#include "tests/apps/scene_test_util.h"
#include "tests/sparse/environment.h"

namespace coppice::cli {
namespace {

namespace fs = std::filesystem;

class Cli : public testing::Test {
 protected:
  void SetUp() override {
    setenv("COPPICE_ASSETS", (scene::source_folder() / "assets").c_str(), 1);
    unsetenv("COPPICE_LOG");
    level_before_ = log_level();
    std::string pattern = (fs::temp_directory_path() / "coppice_cli_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    hooks_.run = [this](const RunOptions& options, const std::atomic<bool>& stop) {
      seen_ = options;
      if (run_error_) throw *run_error_;
      return stop.load() ? RunOutcome::kInterrupted : RunOutcome::kFinished;
    };
    hooks_.validate = [this](const ValidateOptions& options) {
      if (run_error_) throw *run_error_;
      return std::vector<InfoLine>{{"particles", options.scene.name + "'s"}, {"memory", "some"}};
    };
    hooks_.functions = [](const RunOptions& options) {
      return FunctionsText{"@step(%e: event)\n", "uses of " + options.scene.name + "\n", "digraph step {}\n",
                           "<svg></svg>\n"};
    };
    hooks_.info = [] { return std::vector<InfoLine>{{"LLVM", "19.1.7"}}; };
    hooks_.cache = [] { return CacheSummary{"/var/cache/coppice", 3, 4096, 1048576}; };
    hooks_.clear_cache = [this] {
      cleared_ = true;
      return CacheSummary{"/var/cache/coppice", 1, 2 * 1024 * 1024};
    };
  }
  void TearDown() override {
    unsetenv("COPPICE_ASSETS");
    unsetenv("COPPICE_LOG");
    set_log_level(level_before_);
    fs::remove_all(folder_);
  }

  int run(std::vector<std::string> words) {
    words.insert(words.begin(), "coppice");
    std::vector<const char*> argv;
    for (const std::string& word : words) argv.push_back(word.c_str());
    std::ostringstream out;
    std::ostringstream err;
    const int code = run_cli(static_cast<int>(argv.size()), argv.data(), out, err, hooks_, stop_);
    out_ = out.str();
    err_ = err.str();
    return code;
  }

  std::string read(const std::string& name) {
    std::ifstream file(folder_ / name);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  fs::path write_scene(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }

  LogLevel level_before_ = LogLevel::kInfo;
  fs::path folder_;
  CliHooks hooks_;
  std::atomic<bool> stop_{false};
  std::optional<RunOptions> seen_;
  std::optional<Error> run_error_;
  bool cleared_ = false;
  std::string out_;
  std::string err_;
};

TEST_F(Cli, RunsASceneByName) {
  EXPECT_EQ(run({"run", "snow_3d"}), kExitDone);
  EXPECT_EQ(err_, "");
  EXPECT_EQ(out_, "");
  ASSERT_TRUE(seen_);
  EXPECT_EQ(seen_->scene.name, "snow_3d");
  EXPECT_EQ(seen_->output_folder, "out/snow_3d");
  EXPECT_EQ(seen_->device, DeviceChoice::kAuto);
  EXPECT_EQ(seen_->threads, 0);
  EXPECT_FALSE(seen_->deterministic);
  EXPECT_FALSE(seen_->overwrite);
}

TEST_F(Cli, PassesEveryFlagOn) {
  EXPECT_EQ(run({"run", "-o", "here", "--frames", "7", "--set", "time.cfl=0.2", "--set", "grid.resolution=32",
                 "--set", "gravity=[0, -1]", "--device", "cpu", "--overwrite", "--threads", "3",
                 "--deterministic", "water_2d.toml"}),
            kExitDone);
  EXPECT_EQ(err_, "");
  ASSERT_TRUE(seen_);
  EXPECT_EQ(seen_->scene.name, "water_2d");
  EXPECT_EQ(seen_->scene.time.frames, 7);
  EXPECT_EQ(seen_->scene.time.cfl, 0.2);
  EXPECT_EQ(seen_->scene.grid.resolution, 32);
  EXPECT_EQ(seen_->scene.gravity, Vec3d(0, -1, 0));
  EXPECT_EQ(seen_->output_folder, "here");
  EXPECT_EQ(seen_->device, DeviceChoice::kCpu);
  EXPECT_EQ(seen_->threads, 3);
  EXPECT_TRUE(seen_->deterministic);
  EXPECT_TRUE(seen_->overwrite);
}

TEST_F(Cli, RunsASceneFile) {
  const fs::path file = write_scene(
      "mine.toml",
      "[[emitter]]\nshape = \"sphere\"\ncenter = [0.5, 0.5, 0.5]\nradius = 0.1\nmaterial = \"snow\"\n");
  EXPECT_EQ(run({"run", file.string()}), kExitDone);
  EXPECT_EQ(seen_->scene.name, "mine");
  EXPECT_EQ(seen_->output_folder, "out/mine");
}

TEST_F(Cli, ValidateSaysWhatASceneWouldBe) {
  EXPECT_EQ(run({"validate", "snow_3d", "--set", "name=mine"}), kExitDone);
  EXPECT_EQ(out_, "mine can be run.\nparticles  mine's\nmemory     some\n");
  EXPECT_EQ(err_, "");
  EXPECT_EQ(run({"validate", "snow_3d", "--quiet"}), kExitDone);
  EXPECT_EQ(out_ + err_, "");
  EXPECT_EQ(run({"validate", "snow_3d", "--set", "dim=4"}), kExitUsage);
  run_error_ = Error(ErrorCode::kOutOfMemory, "too much");
  EXPECT_EQ(run({"validate", "snow_3d"}), kExitFailure);
  EXPECT_EQ(err_, "coppice: error: too much\n");
  EXPECT_EQ(out_, "");
  EXPECT_FALSE(seen_);
}

TEST_F(Cli, QuietLeavesWarningsAndErrors) {
  set_log_level(LogLevel::kInfo);
  EXPECT_EQ(run({"run", "snow_3d"}), kExitDone);
  EXPECT_EQ(log_level(), LogLevel::kInfo);
  EXPECT_EQ(run({"run", "snow_3d", "-q"}), kExitDone);
  EXPECT_EQ(log_level(), LogLevel::kWarning);
  set_log_level(LogLevel::kError);
  EXPECT_EQ(run({"run", "snow_3d", "--quiet"}), kExitDone);
  EXPECT_EQ(log_level(), LogLevel::kError) << "COPPICE_LOG may ask for less";
}

// Seen to fail: who asked for -q was to have meant -h.
TEST_F(Cli, SuggestsNoFlagsOfOneLetter) {
  EXPECT_EQ(run({"list", "-q"}), kExitUsage);
  EXPECT_EQ(err_, "coppice: error: unknown flag '-q'; try coppice list --help\n");
  EXPECT_EQ(run({"list", "--kyes"}), kExitUsage);
  EXPECT_EQ(err_, "coppice: error: unknown flag '--kyes'; did you mean '--keys'?\n");
}

TEST_F(Cli, ListsTheScenesOfAFolder) {
  const std::string ball =
      "[[emitter]]\nshape = \"sphere\"\ncenter = [0.5, 0.5, 0.5]\nradius = 0.1\nmaterial = \"snow\"\n";
  const std::string b = write_scene("b.toml", "description = \"mine\"\n" + ball).string();
  const std::string a = write_scene("a.toml", "dmi = 2\n" + ball).string();
  write_scene("notes.txt", "");
  fs::create_directory(folder_ / "c.toml");
  EXPECT_EQ(run({"list", folder_.string()}), kExitDone) << err_;
  EXPECT_EQ(out_, a + "  ---  " + a + ":1:1: unknown key 'dmi'; did you mean 'dim'?\n" + b + "  3-D  mine\n");
  fs::create_directory(folder_ / "none");
  EXPECT_EQ(run({"list", (folder_ / "none").string()}), kExitFailure);
  EXPECT_EQ(err_,
            "coppice: error: " + (folder_ / "none").string() + ": the folder has no scene files (*.toml)\n");
  EXPECT_EQ(run({"list", "--keys", folder_.string()}), kExitUsage) << "the reference is of no folder";
  EXPECT_EQ(run({"list", "/nowhere"}), kExitFailure);
  EXPECT_EQ(err_, "coppice: error: cannot list the folder '/nowhere': No such file or directory\n");
}

TEST_F(Cli, ExplainPrintsTheFunctionsAndRunsNothing) {
  EXPECT_EQ(run({"run", "snow_3d", "--explain"}), kExitDone);
  EXPECT_EQ(err_, "");
  EXPECT_TRUE(out_.starts_with("snow_3d runs these functions on the device.")) << out_;
  EXPECT_NE(out_.find("\n\n@step(%e: event)\n\nWhat each operation comes behind,"), std::string::npos)
      << out_;
  EXPECT_TRUE(out_.ends_with("\nuses of snow_3d\n")) << out_;
  EXPECT_FALSE(seen_);
  EXPECT_EQ(run({"run", "snwo_3d", "--explain"}), kExitUsage) << "the scene is looked at all the same";
}

// Seen to fail: it spoke of running nothing, where kernels are compiled.
TEST_F(Cli, HelpSaysWhatIsDoneToDescribeFunctions) {
  EXPECT_EQ(run({"run", "--help"}), kExitDone);
  std::istringstream words(out_);
  std::string text, word;
  while (words >> word) text += word + ' ';
  EXPECT_NE(text.find("launches touch; kernels are compiled for that, and no step is done"),
            std::string::npos)
      << out_;
  EXPECT_EQ(text.find("run nothing"), std::string::npos) << out_;
}

TEST_F(Cli, DotWritesTheGraphAndRunsNothing) {
  EXPECT_EQ(run({"run", "snow_3d", "--dot", (folder_ / "step.dot").string()}), kExitDone);
  EXPECT_EQ(out_, "");
  EXPECT_EQ(read("step.dot"), "digraph step {}\n");
  EXPECT_EQ(run({"run", "snow_3d", "--dot", "-"}), kExitDone);
  EXPECT_EQ(out_, "digraph step {}\n");
  EXPECT_FALSE(seen_);
  EXPECT_EQ(run({"run", "snow_3d", "--dot", (folder_ / "none" / "step.dot").string()}), kExitFailure);
  EXPECT_NE(err_.find("none/step.dot"), std::string::npos) << err_;
}

TEST_F(Cli, PlanWritesThePictureAndRunsNothing) {
  EXPECT_EQ(run({"run", "snow_3d", "--plan", (folder_ / "step.svg").string()}), kExitDone);
  EXPECT_EQ(out_, "");
  EXPECT_EQ(read("step.svg"), "<svg></svg>\n");
  EXPECT_EQ(run({"run", "snow_3d", "--plan", "-"}), kExitDone);
  EXPECT_EQ(out_, "<svg></svg>\n");
  EXPECT_EQ(run({"run", "snow_3d", "--plan", "-", "--dot", (folder_ / "step.dot").string()}), kExitDone);
  EXPECT_EQ(out_, "<svg></svg>\n");
  EXPECT_EQ(read("step.dot"), "digraph step {}\n");
  EXPECT_FALSE(seen_);
  EXPECT_EQ(run({"run", "snow_3d", "--plan", (folder_ / "none" / "step.svg").string()}), kExitFailure);
  EXPECT_NE(err_.find("none/step.svg"), std::string::npos) << err_;
}

// Seen to fail: the link and the pipe were replaced by files.
TEST_F(Cli, WhatIsDrawnAndTracedReplacesNothingButFiles) {
  for (const std::string option : {"--dot", "--plan", "--trace"}) {
    SCOPED_TRACE(option);
    const std::string link = (folder_ / ("link" + option)).string(), pipe = (folder_ / option).string();
    fs::create_symlink("file" + option, link);
    EXPECT_EQ(run({"run", "snow_3d", option, link}), kExitDone);
    EXPECT_TRUE(fs::is_symlink(link));
    EXPECT_FALSE(read("file" + option).empty());
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    std::string seen;
    std::thread reader([&] { seen = read(option); });
    EXPECT_EQ(run({"run", "snow_3d", option, pipe}), kExitDone);
    reader.join();
    EXPECT_EQ(seen.empty(), false);
    EXPECT_TRUE(fs::is_fifo(pipe));
  }
}

// Seen to fail: the scene was gone.
TEST_F(Cli, NoOptionOverwritesTheScene) {
  hooks_.view = [](const ViewOptions&, const std::atomic<bool>&) { return RunOutcome::kFinished; };
  const std::string text =
      "[[emitter]]\nshape = \"sphere\"\ncenter = [0.5, 0.5, 0.5]\nradius = 0.1\nmaterial = \"snow\"\n";
  const std::string scene = write_scene("mine.toml", text).string(), link = (folder_ / "link").string();
  fs::create_symlink("mine.toml", link);
  for (const std::string option : {"--dot", "--plan", "--trace", "--journal"}) {
    for (const std::string& file : {scene, link}) {
      EXPECT_EQ(run({option == "--journal" ? "view" : "run", scene, option, file}), kExitUsage);
      EXPECT_EQ(err_, "coppice: error: " + option + " " + file + " would overwrite the scene, " + scene +
                          "; name another file\n");
    }
  }
  EXPECT_EQ(read("mine.toml"), text);
  EXPECT_FALSE(seen_);
}

// Seen to fail: an earlier run's table became a graph.
TEST_F(Cli, AGraphOverwritesNoFileOfARun) {
  const std::string out = (folder_ / "out").string(), table = out + "/stats.csv";
  fs::create_directory(out);
  for (const std::string option : {"--dot", "--plan"}) {
    EXPECT_EQ(run({"run", "snow_2d", "-o", out, option, table}), kExitUsage);
    EXPECT_NE(err_.find(option + " " + table), std::string::npos) << err_;
  }
  EXPECT_FALSE(fs::exists(table));
}

// Seen to fail: the run's table was replaced by the trace.
TEST_F(Cli, ATraceOverwritesNoFileOfTheRun) {
  const std::string out = (folder_ / "out").string();
  fs::create_directory(out);
  EXPECT_EQ(run({"run", "snow_3d", "-o", out, "--trace", out + "/stats.csv"}), kExitUsage);
  EXPECT_EQ(err_, "coppice: error: --trace " + out +
                      "/stats.csv is a file that the run itself writes into its output folder, " + out +
                      "; name another file\n");
  EXPECT_TRUE(fs::is_empty(out));
  EXPECT_FALSE(seen_);
  EXPECT_EQ(run({"run", "snow_3d", "-o", out, "--trace", out + "/trace.json"}), kExitDone) << err_;
}

TEST_F(Cli, ExplainAndDotGoTogetherUnlessBothWantTheTerminal) {
  EXPECT_EQ(run({"run", "snow_3d", "--explain", "--dot", (folder_ / "step.dot").string()}), kExitDone);
  EXPECT_NE(out_.find("@step(%e: event)\n"), std::string::npos) << out_;
  EXPECT_EQ(read("step.dot"), "digraph step {}\n");
  EXPECT_EQ(run({"run", "snow_3d", "--explain", "--dot", "-"}), kExitUsage);
  EXPECT_EQ(err_, "coppice: error: --explain and --dot - cannot share the terminal; give --dot a file\n");
  EXPECT_EQ(run({"run", "snow_3d", "--explain", "--plan", "-"}), kExitUsage);
  EXPECT_EQ(err_, "coppice: error: --explain and --plan - cannot share the terminal; give --plan a file\n");
  EXPECT_EQ(run({"run", "snow_3d", "--dot", "-", "--plan", "-"}), kExitUsage);
  EXPECT_EQ(err_, "coppice: error: --dot - and --plan - cannot share the terminal; give --plan a file\n");
  EXPECT_EQ(out_, "");
}

TEST_F(Cli, TraceRecordsTheRunHoweverItEnds) {
  hooks_.run = [this](const RunOptions&, const std::atomic<bool>&) {
    const TraceScope scope("the run");
    if (run_error_) throw *run_error_;
    return RunOutcome::kFinished;
  };
  EXPECT_EQ(run({"run", "snow_3d", "--trace", (folder_ / "done.json").string()}), kExitDone);
  EXPECT_EQ(err_, "");
  run_error_ = Error(ErrorCode::kNumeric, "it blew up");
  EXPECT_EQ(run({"run", "snow_3d", "--trace", (folder_ / "failed.json").string()}), kExitFailure);
  EXPECT_EQ(err_, "coppice: error: it blew up\n");
  for (const char* name : {"done.json", "failed.json"}) {
    EXPECT_NE(read(name).find("\"main\""), std::string::npos) << read(name);
    EXPECT_NE(read(name).find("\"the run\""), std::string::npos) << read(name);
  }
  EXPECT_FALSE(Trace::is_on());
}

TEST_F(Cli, ATraceIsOfARun) {
  const std::string file = (folder_ / "trace.json").string();
  EXPECT_EQ(run({"run", "snow_3d", "--trace", file, "--explain"}), kExitUsage);
  EXPECT_EQ(err_, "coppice: error: --trace records a run, and --explain, --dot and --plan do no step\n");
  EXPECT_EQ(run({"run", "snow_3d", "--trace", file, "--dot", "-"}), kExitUsage);
  EXPECT_EQ(run({"run", "snow_3d", "--trace", file, "--plan", "-"}), kExitUsage);
  EXPECT_FALSE(fs::exists(file));
  EXPECT_EQ(run({"run", "snow_3d", "--trace", (folder_ / "none" / "trace.json").string()}), kExitFailure);
  EXPECT_FALSE(seen_) << "a trace that cannot be written is known before the run";
}

TEST_F(Cli, SuggestsTheNearestScene) {
  EXPECT_EQ(run({"run", "snwo_3d"}), kExitUsage);
  EXPECT_EQ(err_, "coppice: error: no scene 'snwo_3d'; did you mean 'snow_3d'?\n");
  EXPECT_EQ(run({"run", "smoke"}), kExitUsage);
  EXPECT_EQ(err_,
            "coppice: error: no scene 'smoke'; the scenes are jelly_2d, jelly_3d, mud_3d, sand_2d, sand_3d, "
            "snow_2d, snow_3d, water_2d, water_3d, water_flow_3d\n");
}

// Seen to fail: the installed scenes were listed to whoever had named a file of their own.
TEST_F(Cli, SaysThatThereIsNoSuchFile) {
  EXPECT_EQ(run({"run", "elsewhere/smoke.toml"}), kExitUsage);
  EXPECT_EQ(err_, "coppice: error: there is no file 'elsewhere/smoke.toml'\n");
  EXPECT_EQ(run({"run", "snwo_3d.toml"}), kExitUsage);
  EXPECT_EQ(err_, "coppice: error: there is no file 'snwo_3d.toml'; did you mean the scene 'snow_3d'?\n");
  EXPECT_EQ(run({"run", folder_.string() + "/mine"}), kExitUsage);
  EXPECT_EQ(err_, "coppice: error: there is no file '" + folder_.string() + "/mine'\n");
}

// Seen to fail: the folder that a run had left beside hid the scene of its name.
TEST_F(Cli, AFolderHidesNoScene) {
  const fs::path before = fs::current_path();
  fs::create_directory(folder_ / "snow_3d");
  fs::current_path(folder_);
  EXPECT_EQ(run({"run", "snow_3d"}), kExitDone) << err_;
  fs::current_path(before);
  EXPECT_EQ(run({"run", folder_.string()}), kExitFailure);
  EXPECT_EQ(err_, "coppice: error: cannot read scene '" + folder_.string() + "': it is a folder\n");
}

// Seen to fail: the terminal did as the scene said.
TEST_F(Cli, AnErrorSendsTheTerminalNoControlCharacters) {
  const fs::path file = write_scene("bad.toml", "dim = 2\n[walls]\nall = \"\\u001b[31m\\n\\u009bm\"\n");
  EXPECT_EQ(run({"run", file.string()}), kExitUsage);
  EXPECT_NE(err_.find("not \"\\x1b[31m \\x9bm\""), std::string::npos) << err_;
  EXPECT_EQ(std::ranges::count_if(err_, [](unsigned char c) { return c < 0x20; }), 1) << err_;
}

TEST_F(Cli, SaysWhenNoScenesAreInstalled) {
  setenv("COPPICE_ASSETS", folder_.c_str(), 1);
  EXPECT_EQ(run({"run", "snow_3d"}), kExitUsage);
  EXPECT_EQ(err_, "coppice: error: no scene 'snow_3d'; no scenes are installed; give the path of a file\n");
  EXPECT_EQ(run({"list"}), kExitFailure);
  EXPECT_EQ(err_, "coppice: error: no scenes found; COPPICE_ASSETS can name the assets folder\n");
}

TEST_F(Cli, RefusesAnAssetsFolderThatIsNone) {
  setenv("COPPICE_ASSETS", "/nowhere", 1);
  EXPECT_EQ(run({"list"}), kExitUsage);
  EXPECT_EQ(err_, "coppice: error: COPPICE_ASSETS names '/nowhere', which is not a folder\n");
}

TEST_F(Cli, PointsAtAMistakeInTheScene) {
  const fs::path file = write_scene("bad.toml", "[time]\nframse = 3\n");
  EXPECT_EQ(run({"run", file.string()}), kExitUsage);
  EXPECT_EQ(err_, "coppice: error: " + file.string() +
                      ":2:1: unknown key 'time.framse'; did you mean 'time.frames'?\n");
  EXPECT_FALSE(seen_);
}

TEST_F(Cli, NamesABadOverride) {
  EXPECT_EQ(run({"run", "snow_3d", "--set", "time.frames=-1"}), kExitUsage);
  EXPECT_EQ(err_, "coppice: error: --set time.frames=-1: 'time.frames' is -1; allowed is 0 to 100000\n");
  EXPECT_EQ(run({"run", "snow_3d", "--set", "time.frames"}), kExitUsage);
  EXPECT_EQ(err_, "coppice: error: --set time.frames: expected KEY.PATH=VALUE\n");
  EXPECT_EQ(run({"run", "snow_3d", "--frames", "100001"}), kExitUsage);
  EXPECT_EQ(err_, "coppice: error: --frames 100001: 'time.frames' is 100001; allowed is 0 to 100000\n");
}

TEST_F(Cli, RefusesBadFlags) {
  EXPECT_EQ(run({"run", "snow_3d", "--frame", "3"}), kExitUsage);
  EXPECT_EQ(err_, "coppice: error: unknown flag '--frame'; did you mean '--frames'?\n");
  EXPECT_EQ(run({"run", "snow_3d", "--overwrit"}), kExitUsage);
  EXPECT_EQ(err_, "coppice: error: unknown flag '--overwrit'; did you mean '--overwrite'?\n");
  EXPECT_EQ(run({"run", "snow_3d", "--xyzzyx"}), kExitUsage);
  EXPECT_EQ(err_, "coppice: error: unknown flag '--xyzzyx'; try coppice run --help\n");
  EXPECT_EQ(run({"run", "snow_3d", "jelly_3d"}), kExitUsage);
  EXPECT_EQ(err_, "coppice: error: unexpected argument 'jelly_3d'; try coppice run --help\n");
  EXPECT_EQ(run({"--verison"}), kExitUsage);
  EXPECT_EQ(err_, "coppice: error: unknown flag '--verison'; did you mean '--version'?\n");
}

TEST_F(Cli, RefusesBadValuesOfFlags) {
  EXPECT_EQ(run({"run", "snow_3d", "--frames", "many"}), kExitUsage);
  EXPECT_EQ(err_, "coppice: error: --frames: many is no number of frames: 0 to 100000\n");
  const std::string huge(20, '9');
  EXPECT_EQ(run({"run", "snow_3d", "--frames", huge}), kExitUsage);
  EXPECT_EQ(err_, "coppice: error: --frames: " + huge + " is no number of frames: 0 to 100000\n");
  EXPECT_EQ(run({"run", "snow_3d", "--device", "gpu"}), kExitUsage);
  EXPECT_EQ(err_, "coppice: error: --device: gpu not in {auto,cpu,cuda,simt}\n");
  EXPECT_EQ(run({"run", "snow_3d", "--frames"}), kExitUsage);
  EXPECT_EQ(err_.substr(0, 24), "coppice: error: --frames");
  EXPECT_EQ(std::count(err_.begin(), err_.end(), '\n'), 1);
  EXPECT_EQ(run({"run"}), kExitUsage);
  EXPECT_EQ(err_, "coppice: error: SCENE is required\n");
}

// Seen to fail: each was taken for an option that was not given.
TEST_F(Cli, RefusesEmptyValuesOfOptions) {
  hooks_.view = [](const ViewOptions&, const std::atomic<bool>&) { return RunOutcome::kFinished; };
  hooks_.device = [](const std::string&) { return std::string("a device"); };
  const std::string devices = "{auto,cpu,cuda,simt}", range = "INT in [1 - 4096]";
  struct Row {
    std::vector<std::string> command;
    std::vector<std::pair<std::string, std::string>> expected;  // of each option
  };
  for (const Row& row : {Row{{"run", "snow_3d"},
                             {{"--dot", "FILE"},
                              {"--plan", "FILE"},
                              {"--trace", "FILE"},
                              {"--frames", "N"},
                              {"--output", "DIR"},
                              {"--set", "KEY=VALUE"},
                              {"--device", devices},
                              {"--threads", range}}},
                         Row{{"view", "snow_3d"},
                             {{"--play", "DIR"},
                              {"--replay", "FILE"},
                              {"--journal", "FILE"},
                              {"--frames", "N"},
                              {"--output", "DIR"},
                              {"--view", "{window,file,null}"}}},
                         Row{{"info"}, {{"--device", "NAME"}}}}) {
    for (const auto& [option, expected] : row.expected) {
      std::vector<std::string> two = row.command, one = row.command;
      two.insert(two.end(), {option, ""});
      one.push_back(option + "=");
      for (const std::vector<std::string>& words : {two, one}) {
        EXPECT_EQ(run(words), kExitUsage) << words.back();
        EXPECT_EQ(err_, "coppice: error: " + option + ": the value is empty; expected " + expected + "\n");
      }
    }
  }
  EXPECT_EQ(run({"run", "snow_3d", "-o", ""}), kExitUsage);
  EXPECT_EQ(run({"run", "--dot=", "snow_3d"}), kExitUsage);
  EXPECT_EQ(err_, "coppice: error: --dot: the value is empty; expected FILE\n")
      << "the scene is no file to draw in";
  EXPECT_FALSE(seen_);
}

TEST_F(Cli, RefusesUnknownCommands) {
  EXPECT_EQ(run({}), kExitUsage);
  EXPECT_EQ(err_, "coppice: error: no command; try coppice --help\n");
  EXPECT_EQ(run({"rum", "snow_3d"}), kExitUsage);
  EXPECT_EQ(err_, "coppice: error: unknown command 'rum'; did you mean 'run'?\n");
  EXPECT_EQ(run({"simulate"}), kExitUsage);
  EXPECT_EQ(err_, "coppice: error: unknown command 'simulate'; try coppice --help\n");
}

TEST_F(Cli, ReturnsTheCodeOfTheError) {
  run_error_ = Error(ErrorCode::kNotFound, "no such mesh", {"a.toml", 3, 1});
  EXPECT_EQ(run({"run", "snow_3d"}), kExitFailure);
  EXPECT_EQ(err_, "coppice: error: a.toml:3:1: no such mesh\n");
  run_error_ = Error(ErrorCode::kUsage, "the folder holds frames; add --overwrite");
  EXPECT_EQ(run({"run", "snow_3d"}), kExitUsage);
  run_error_ = Error(ErrorCode::kCancelled, "interrupted");
  EXPECT_EQ(run({"run", "snow_3d"}), kExitInterrupted);
}

TEST_F(Cli, KeepsAnErrorOnOneLine) {
  run_error_ = Error(ErrorCode::kIo, "first\nsecond\r\nthird");
  EXPECT_EQ(run({"run", "snow_3d"}), kExitFailure);
  EXPECT_EQ(err_, "coppice: error: first second  third\n");
}

TEST_F(Cli, ReportsWhatALibraryThrew) {
  hooks_.run = [](const RunOptions&, const std::atomic<bool>&) -> RunOutcome { throw std::bad_alloc(); };
  EXPECT_EQ(run({"run", "snow_3d"}), kExitFailure);
  EXPECT_EQ(err_, "coppice: error: out of memory\n");
  hooks_.run = [](const RunOptions&, const std::atomic<bool>&) -> RunOutcome {
    throw std::runtime_error("odd");
  };
  EXPECT_EQ(run({"run", "snow_3d"}), kExitFailure);
  EXPECT_EQ(err_, "coppice: error: odd\n");
}

TEST_F(Cli, SaysThatItWasInterrupted) {
  stop_ = true;
  EXPECT_EQ(run({"run", "snow_3d"}), kExitInterrupted);
  EXPECT_EQ(err_, "");
}

TEST_F(Cli, ListsTheScenes) {
  EXPECT_EQ(run({"list"}), kExitDone);
  EXPECT_EQ(std::count(out_.begin(), out_.end(), '\n'), 10);
  EXPECT_NE(out_.find("snow_3d        3-D  snowballs and a knot of snow"), std::string::npos) << out_;
  EXPECT_NE(out_.find("\nwater_2d       2-D  a dam breaks"), std::string::npos) << out_;
}

TEST_F(Cli, ListsTheKeys) {
  EXPECT_EQ(run({"list", "--keys"}), kExitDone);
  EXPECT_EQ(out_, scene::describe_scene());
}

TEST_F(Cli, TellsWhatTheMachineCanDo) {
  EXPECT_EQ(run({"info"}), kExitDone);
  for (const char* name :
       {"version", "build", "compiler", "glibc", "CPU", "threads", "CUDA driver", "EGL", "ffmpeg", "LLVM"}) {
    EXPECT_NE(("\n" + out_).find(std::string("\n") + name + " "), std::string::npos) << name << " in\n"
                                                                                     << out_;
  }
  EXPECT_NE(out_.find("kernel cache  /var/cache/coppice (3 kernels, 4.0 KiB)\n"), std::string::npos) << out_;
}

TEST_F(Cli, TellsItAsJsonToo) {
  unsetenv("COPPICE_DUMP");
  hooks_.info = [] {
    return std::vector<InfoLine>{{"LLVM", "19 \"x\""}, {"kernel target features", "+avx", false, true}};
  };
  EXPECT_EQ(run({"info"}), kExitDone);
  EXPECT_EQ(out_.find("+avx"), std::string::npos) << "for programs only";
  EXPECT_EQ(run({"info", "--json"}), kExitDone);
  EXPECT_EQ(err_, "");
  for (const char* member : {"\n  \"llvm\": \"19 \\\"x\\\"\",", "\n  \"kernel_target_features\": \"+avx\",",
                             "\n  \"cuda_driver\": \"",
                             "\n  \"kernel_cache\": {\"folder\": \"/var/cache/coppice\", \"entries\": 3, "
                             "\"bytes\": 4096, \"max_bytes\": "
                             "1048576},",
                             "\n    \"COPPICE_DUMP\": null,"}) {
    EXPECT_NE(out_.find(member), std::string::npos) << member << " in\n" << out_;
  }
}

TEST_F(Cli, ShowsAndClearsTheCache) {
  EXPECT_EQ(run({"cache"}), kExitDone);
  EXPECT_EQ(out_, "/var/cache/coppice (3 kernels, 4.0 KiB)\n");
  EXPECT_FALSE(cleared_);
  EXPECT_EQ(run({"cache", "--clear"}), kExitDone);
  EXPECT_EQ(out_, "cleared /var/cache/coppice (1 kernel, 2.0 MiB)\n");
  EXPECT_TRUE(cleared_);
}

TEST_F(Cli, HelpsOnStdout) {
  EXPECT_EQ(run({"--help"}), kExitDone);
  EXPECT_NE(out_.find("run"), std::string::npos);
  EXPECT_EQ(err_, "");
  EXPECT_EQ(run({"run", "--help"}), kExitDone);
  EXPECT_NE(out_.find("--overwrite"), std::string::npos);
  EXPECT_EQ(run({"--version"}), kExitDone);
  EXPECT_EQ(out_, version_text() + "\n");
}

TEST_F(Cli, TakesTheLogLevelFromTheEnvironment) {
  setenv("COPPICE_LOG", "debug", 1);
  EXPECT_EQ(run({"list"}), kExitDone);
  EXPECT_EQ(log_level(), LogLevel::kDebug);
  setenv("COPPICE_LOG", "loud", 1);
  EXPECT_EQ(run({"list"}), kExitUsage);
  EXPECT_EQ(err_, "coppice: error: COPPICE_LOG must be debug, info, warning, error or off, not 'loud'\n");
}

// Seen to fail: each was looked at where it was needed, or never.
TEST_F(Cli, RefusesBadValuesOfTheEnvironmentWhateverRuns) {
  const std::vector<std::pair<std::string, std::string>> bad{
      {"COPPICE_SIMT_SEED", "x"},     {"COPPICE_PTX_FOLDER", "/proc/q"}, {"COPPICE_ASSETS", "/nowhere"},
      {"COPPICE_TEMPORARIES", "far"}, {"COPPICE_LOG", "loud"},           {"COPPICE_CACHE_MAX_MB", "lots"}};
  for (const auto& [name, value] : bad) {
    const Environment environment(name.c_str(), value);
    EXPECT_EQ(run({"cache"}), kExitUsage) << name;
    EXPECT_TRUE(err_.starts_with("coppice: error: " + name)) << err_;
    EXPECT_NE(err_.find(value), std::string::npos) << err_;
    EXPECT_EQ(std::count(err_.begin(), err_.end(), '\n'), 1) << err_;
    EXPECT_EQ(run({"--help"}), kExitDone) << "which says what it may hold";
  }
  const std::string folder = (folder_ / "made/ptx").string();
  const Environment ptx("COPPICE_PTX_FOLDER", folder);
  EXPECT_EQ(run({"cache"}), kExitDone) << err_;
  EXPECT_TRUE(fs::is_empty(folder)) << "it is made, and nothing is left there";
}

TEST_F(Cli, FindsProgramsInThePath) {
  EXPECT_TRUE(find_program("sh"));
  EXPECT_FALSE(find_program("no-such-program-anywhere"));
}

// Options that say how a scene is computed say nothing of what was computed earlier. Seen to fail: they
// were ignored.
TEST_F(Cli, RefusesWhatHasNoMeaningBesidePlay) {
  const std::vector<std::vector<std::string>> meaningless{{"--device", "cpu"}, {"--threads", "2"},
                                                          {"--deterministic"}, {"--no-reload"},
                                                          {"--journal", "a"},  {"--replay", "a"}};
  for (const std::vector<std::string>& words : meaningless) {
    std::vector<std::string> all{"view", "snow_3d", "--play", "out"};
    all.insert(all.end(), words.begin(), words.end());
    EXPECT_EQ(run(all), kExitUsage);
    EXPECT_EQ(err_, "coppice: error: " + words[0] + " excludes --play\n");
  }
}

}  // namespace
}  // namespace coppice::cli
