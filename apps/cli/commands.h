// The `coppice` command line: parses arguments, prints the lists, and hands real work to hooks.
//
// Exit codes: 0 done, 1 failure, 2 usage (a bad flag, an unknown scene, a mistake in a scene file or an
// override), 130 interrupted. Every error is exactly one line on `err`: "coppice: error: ...". Nothing
// else is written there but what a stop signal says (core/stop_signals.h), and the summary of `coppice
// plan`. --quiet raises the log's level, for the rest of the process, so that of the others' lines
// warnings are left.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "apps/scene/scene.h"

namespace coppice::cli {

constexpr int kExitDone = 0;
constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;
constexpr int kExitInterrupted = 130;

enum class DeviceChoice { kAuto, kCpu, kCuda, kSimt };

// `coppice run`: the scene already holds --frames and --set.
struct RunOptions {
  scene::SceneConfig scene;
  std::filesystem::path output_folder;  // "out/<scene name>" unless -o names one; may not exist yet
  DeviceChoice device = DeviceChoice::kAuto;
  int threads = 0;  // of the cpu device; 0: all cores
  bool deterministic =
      false;  // the same files from run to run, whatever the number of threads; on the cpu device
  bool overwrite = false;                // frames that are in output_folder may be replaced
  std::vector<std::string> assignments;  // that the scene was loaded with, "material.density=900"
  int checkpoint_every = 0;              // frames from one checkpoint to the next; 0: none are written
  bool resumes = false;                  // goes on from the checkpoint in output_folder
};

// `coppice view`: a scene beside somebody who looks.
struct ViewOptions {
  RunOptions run;                               // output_folder: of pictures and screenshots
  std::vector<scene::SceneOverride> overrides;  // that the scene was loaded with
  std::string where = "window";                 // or "file", "null"
  bool is_paused = false;
  bool has_frames = false;  // ends after the scene's last frame, also in a window
  std::filesystem::path journal, replay;
  std::filesystem::path play;   // a folder that an earlier run wrote into: its frames instead of a simulation
  bool reloads_kernels = true;  // takes over kernel files that are changed
};

// `coppice validate`: the scene is right as far as reading it tells.
struct ValidateOptions {
  scene::SceneConfig scene;
};

enum class RunOutcome { kFinished, kInterrupted };

// This is one line of `coppice info`, and one member of `coppice info --json`: "CUDA driver" is there as
// "cuda_driver".
struct InfoLine {
  std::string name;
  std::string value;
  bool is_number = false;     // in JSON
  bool is_json_only = false;  // too long for people
};

struct CacheSummary {
  std::filesystem::path folder;
  std::int64_t entries = 0;
  std::int64_t size_bytes = 0;
  std::int64_t max_bytes = 0;
};

// These texts show what a scene does on the device, as functions (sparse/function.h).
struct FunctionsText {
  std::string functions;    // as text that can be read back
  std::string explanation;  // what their operations touch, and what they come behind
  std::string graph;        // in Graphviz' DOT language
  std::string plan;         // where their temporaries lie, and when they are needed: a picture (SVG)
};

// The program provides these. All are called on the calling thread and may throw coppice::Error.
struct CliHooks {
  // Polls `stop` after each frame; when it is set, returns kInterrupted with every file whole.
  std::function<RunOutcome(const RunOptions& options, const std::atomic<bool>& stop)> run;
  // Becomes so many ranks, each of which runs this command line. Does not return, but in tests.
  std::function<void(int n_ranks, const char* const* argv)> start_ranks;
  // Returns when the window was closed, or the last frame was shown.
  std::function<RunOutcome(const ViewOptions& options, const std::atomic<bool>& stop)> view;
  // Reads all that the scene names and says what it would be; throws what a run would throw at its start.
  std::function<std::vector<InfoLine>(const ValidateOptions& options)> validate;
  // Runs none of them.
  std::function<FunctionsText(const RunOptions& options)> functions;
  std::function<std::vector<InfoLine>()>
      info;  // lines that need the program's libraries: LLVM, OpenGL, OpenVDB
  std::function<std::string(const std::string& name)> device;  // what it is; makes it
  std::function<CacheSummary()> cache;
  std::function<CacheSummary()> clear_cache;  // returns what was removed
};

// The hooks of the real program. Defined beside the solver, not here.
CliHooks make_cli_hooks();

// Runs one command line (argv[0] is the program) and returns the exit code. Throws nothing.
int run_cli(int argc, const char* const* argv, std::ostream& out, std::ostream& err, const CliHooks& hooks,
            const std::atomic<bool>& stop);

}  // namespace coppice::cli
