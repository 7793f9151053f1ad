// The `coppice` command line: the grammar (CLI11), the commands, and how an error becomes one line and an
// exit code.
#include "apps/cli/commands.h"

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <optional>
#include <ostream>
#include <utility>

#include "apps/cli/assets.h"
#include "apps/cli/environment.h"
#include "apps/cli/json_text.h"
#include "apps/cli/plan_command.h"
#include "apps/cli/system_info.h"
#include "apps/output/own_files.h"
#include "apps/output/size_text.h"
#include "apps/viewer/make_backend.h"
#include "core/atomic_file.h"
#include "core/check.h"
#include "core/error.h"
#include "core/log.h"
#include "core/nearest_name.h"
#include "core/printable.h"
#include "core/start_ranks.h"
#include "core/trace.h"

namespace coppice::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string scene;
  std::string output_folder;
  std::optional<int> frames;
  std::vector<std::string> assignments;
  DeviceChoice device = DeviceChoice::kAuto;
  int threads = 0;
  bool deterministic = false;
  bool overwrite = false;
  const char* const* words = nullptr;  // argv
  int checkpoint_every = 0;
  bool resumes = false;
  int ranks = 0;  // 0: this process alone, or the job that it is a rank of
  bool explain = false;
  std::string dot_file, plan_file;
  std::string trace_file;
  bool keys = false, quiet = false;
  std::vector<std::string> folders;
  bool clear = false;
  bool json = false;
  std::string info_device;
  std::string view = "window";
  bool is_paused = false, no_reload = false;
  std::string journal_file, replay_file, played_folder;
  PlanArguments plan;
};

struct Grammar {
  explicit Grammar(Arguments& arguments);

  CLI::App app{"Simulations on sparse grids: a scene in, frames out."};
  CLI::App* run = nullptr;
  CLI::App* view = nullptr;
  CLI::App* validate = nullptr;
  CLI::App* list = nullptr;
  CLI::App* info = nullptr;
  CLI::App* cache = nullptr;
  CLI::App* plan = nullptr;
};

std::string footer() {
  std::string text = "Exit codes: 0 done, 1 failure, 2 usage, 130 interrupted.\n\nEnvironment:";
  for (const EnvironmentVariable& variable : environment_variables())
    text += fmt::format("\n  {:<44}{}", fmt::format("{}={}", variable.name, variable.value), variable.what);
  return text;
}

// The scene's own check says which numbers a scene may have.
int frames_of(const std::string& text) {
  int frames = 0;
  if (CLI::detail::lexical_cast(text, frames)) return frames;
  throw CLI::ValidationError("--frames", fmt::format("{} is no number of frames: 0 to 100000", text));
}

// Adds the options that all commands have which read a scene.
void add_scene_options(CLI::App& command, Arguments& arguments) {
  command.add_option("SCENE", arguments.scene, "a scene file, or the name of one that `coppice list` shows")
      ->required();
  command
      .add_option_function<std::string>(
          "--frames", [&arguments](const std::string& n) { arguments.frames = frames_of(n); },
          "how many frames (short for --set time.frames=N)")
      ->type_name("N");
  command
      .add_option("--set", arguments.assignments,
                  "change a key of the scene, or with KEY+=VALUE add to a list; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command.add_flag("-q,--quiet", arguments.quiet, "say nothing but warnings and errors");
}

// Adds the options that all commands have which simulate a scene.
void add_device_options(CLI::App& command, Arguments& arguments) {
  const std::map<std::string, DeviceChoice> devices{{"auto", DeviceChoice::kAuto},
                                                    {"cpu", DeviceChoice::kCpu},
                                                    {"cuda", DeviceChoice::kCuda},
                                                    {"simt", DeviceChoice::kSimt}};
  command
      .add_option_function<std::string>(
          "--device", [&arguments, devices](const std::string& name) { arguments.device = devices.at(name); },
          "where it runs: auto takes the GPU when there is one; simt emulates one, for tests: it is slow")
      ->check(CLI::IsMember({"auto", "cpu", "cuda", "simt"}));
  command
      .add_option("--threads", arguments.threads, "how many threads of the CPU it uses (default: all cores)")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
  command.add_flag("--deterministic", arguments.deterministic,
                   "the same files from run to run, whatever the number of threads; on the CPU");
}

// An empty value is usually a shell's variable that is not set, and nobody meant the default by it.
void refuse_empty_values(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    if (option->get_positional() || option->get_items_expected_min() == 0) continue;
    const auto refuse_empty = [option](const std::string& value) {
      if (!value.empty()) return std::string();
      const std::string type = option->get_type_name();  // "FILE", "TEXT:{a,b}"
      return fmt::format("the value is empty; expected {}", type.substr(type.find(':') + 1));
    };
    option->transform(CLI::Validator(refuse_empty, ""));  // unlike check(), before the checks that are there
  }
}

void add_plan_options(CLI::App& command, PlanArguments& arguments) {
  command
      .add_option("FILE", arguments.file,
                  "a table of buffers, id,lower,upper,size (docs/plans.md; -: from standard input); it is "
                  "printed with their offsets")
      ->required();
  command
      .add_option("--capacity", arguments.capacities,
                  "the bytes that there are, of the pool of that name if the table has pools (default: the "
                  "fewest that do); may be repeated, once for each pool")
      ->type_name("[POOL=]N")
      ->allow_extra_args(false);
  command
      .add_option("--budget", arguments.budget_s,
                  "how many seconds it may look for a smaller plan (default: a number of steps, so that the "
                  "plan is the same on any machine)")
      ->type_name("S")
      ->check(CLI::Range(0.0, 1e6))
      ->check([](const std::string& text) {  // Range lets NaN pass
        return text.find_first_of("nN") == std::string::npos
                   ? ""
                   : fmt::format("{} is no number of seconds", text);
      });
  command
      .add_option(
          "--threads", arguments.threads,
          "how many threads look for it (default: all cores); the plan is the same with any number, unless "
          "--budget or Ctrl-C ends the search")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
  command.add_flag("--json", arguments.json, "print JSON instead");
  command
      .add_option("--svg", arguments.svg_file,
                  "draw the plan, offsets over time (-: to the terminal, instead of the table)")
      ->type_name("FILE");
}

void add_run_options(CLI::App& run, Arguments& arguments) {
  run.add_option("-o,--output", arguments.output_folder, "folder for what is written (default: out/<scene>)")
      ->type_name("DIR");
  run.add_flag("--overwrite", arguments.overwrite, "replace frames that are already in the folder");
  run.add_option("--checkpoint", arguments.checkpoint_every,
                 "write the whole state every N frames and at the end, also that of Ctrl-C, for --resume")
      ->type_name("N")
      ->check(CLI::Range(1, 1000000000));
  run.add_flag(
         "--resume", arguments.resumes,
         "go on from the checkpoint in the folder, with any number of ranks or threads; --frames may be "
         "another")
      ->excludes(run.get_option("--overwrite"));
  run.add_option("--ranks", arguments.ranks,
                 "start so many processes on this machine, each of which has a part of the simulation; "
                 "several machines: mpirun coppice run (docs/ranks.md)")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
  run.add_flag("--explain", arguments.explain,
               "print the functions that the scene would run on the device and what their launches touch; "
               "kernels are compiled for that, and no step is done");
  run.add_option("--dot", arguments.dot_file,
                 "write a drawing of these functions for Graphviz (-: to the terminal); no step is done")
      ->type_name("FILE");
  run.add_option("--plan", arguments.plan_file,
                 "draw where the temporaries of these functions lie, offsets over time, as SVG (-: to the "
                 "terminal); no step is done")
      ->type_name("FILE");
  run.add_option(
         "--trace", arguments.trace_file,
         "write what every thread and stream did when, for ui.perfetto.dev or chrome://tracing (-: to "
         "the terminal)")
      ->type_name("FILE");
}

Grammar::Grammar(Arguments& arguments) {
  app.name("coppice");
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);
  app.footer(footer());

  run = app.add_subcommand("run", "simulate a scene and write its frames");
  add_scene_options(*run, arguments);
  add_device_options(*run, arguments);
  add_run_options(*run, arguments);

  view = app.add_subcommand("view", "watch a scene while it is simulated, and steer it");
  add_scene_options(*view, arguments);
  add_device_options(*view, arguments);
  view->add_option("--view", arguments.view,
                   "where it is shown: in a window, as picture files, or nowhere (default: window)")
      ->check(CLI::IsMember({"window", "file", "null"}));
  view->add_option("-o,--output", arguments.output_folder,
                   "folder for pictures and screenshots (default: out/<scene>)")
      ->type_name("DIR");
  view->add_flag("--overwrite", arguments.overwrite,
                 "replace frames that are already in the folder (--view file)");
  view->add_flag("--paused", arguments.is_paused, "begin paused");
  view->add_option("--journal", arguments.journal_file,
                   "write what was done to the simulation, and when (-: to the terminal)")
      ->type_name("FILE");
  view->add_option("--replay", arguments.replay_file, "do again what a journal tells")->type_name("FILE");
  view->add_flag("--no-reload", arguments.no_reload,
                 "leave kernel files alone that are changed while it is simulated");
  CLI::Option* play =
      view->add_option("--play", arguments.played_folder,
                       "show the frames that an earlier run of the scene left in a folder; computes nothing")
          ->type_name("DIR");
  // These options say how something is computed, and an earlier run was computed already.
  for (const char* name :
       {"--journal", "--replay", "--device", "--threads", "--deterministic", "--no-reload"})
    play->excludes(view->get_option(name));

  validate = app.add_subcommand(
      "validate", "check a scene, and say how many particles, cells and bytes it would have; run nothing");
  add_scene_options(*validate, arguments);

  list = app.add_subcommand("list", "the scenes that come with the program, or those in a folder");
  CLI::Option* folders =
      list->add_option("FOLDER", arguments.folders, "a folder with scene files of your own")->type_name("");
  list->add_flag("--keys", arguments.keys, "the reference of all keys of a scene file instead (Markdown)")
      ->excludes(folders);
  info = app.add_subcommand("info", "what this machine and build can do, for bug reports");
  CLI::Option* json = info->add_flag("--json", arguments.json, "as one JSON object");
  info->add_option("--device", arguments.info_device,
                   "only what this device is, or why it cannot be had: cpu, cuda or simt")
      ->type_name("NAME")
      ->excludes(json);
  cache = app.add_subcommand("cache", "the cache of compiled kernels: where it is and how large");
  cache->add_flag("--clear", arguments.clear, "empty it");

  plan = app.add_subcommand("plan", "plan the memory of buffers that are needed at different times");
  add_plan_options(*plan, arguments.plan);

  for (CLI::App* command : app.get_subcommands({})) refuse_empty_values(*command);
}

// The names that could have been meant instead of `typed`: subcommands at first, then the subcommand's flags.
std::vector<std::string> known_words(const Grammar& grammar, std::string_view typed) {
  std::vector<std::string> words;
  const std::vector<CLI::App*> chosen = grammar.app.get_subcommands();
  const CLI::App& app = chosen.empty() ? grammar.app : *chosen.front();
  if (typed.starts_with("-")) {
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
      for (const std::string& name : option->get_snames()) words.push_back("-" + name);
    }
  } else if (chosen.empty()) {
    for (const CLI::App* command : grammar.app.get_subcommands({})) words.push_back(command->get_name());
  }
  return words;
}

// Returns one sentence of our own for the mistakes that people make; CLI11's for the rest.
std::string usage_message(const Grammar& grammar, const std::vector<std::string>& words,
                          const CLI::ParseError& error) {
  const std::vector<CLI::App*> chosen = grammar.app.get_subcommands();
  const bool is_extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  const bool lacks_command = chosen.empty() && !words.empty();
  if (!is_extra && !lacks_command) {
    if (words.empty()) return "no command; try coppice --help";
    return error.what();
  }
  const std::vector<std::string> extras = grammar.app.remaining(true);
  const std::string typed = extras.empty() ? words.front() : extras.front();
  const bool is_flag = typed.starts_with("-");
  const char* what = is_flag ? "unknown flag" : chosen.empty() ? "unknown command" : "unexpected argument";
  // "--frame=10": the flag is what stands before the value.
  const std::string name = typed.substr(0, is_flag ? typed.find('=') : std::string::npos);
  // Flags of one letter are all alike.
  const bool is_short = is_flag && !typed.starts_with("--");
  const auto near = is_short ? std::optional<std::string>() : nearest_name(name, known_words(grammar, name));
  return near ? fmt::format("{} '{}'; did you mean '{}'?", what, name, *near)
              : fmt::format("{} '{}'; try coppice{} --help", what, name,
                            chosen.empty() ? "" : " " + chosen.front()->get_name());
}

constexpr const char* kUsesLegend =
    "What each operation comes behind, and of each launch a line for every field, topology and piece of "
    "memory that it uses.\n"
    "as: the role of the handle; Star<N>, Box<N>, in blocks beside its own, anywhere: how far from its own "
    "cell; else there alone.\n"
    "activates, deactivates, tests: it changes the topology, or asks what is active.\n"
    "in the order of the items: the result depends on it, as sums of floats do.\n";

// Refuses what would be a mix of two texts.
void refuse_sharing(const Arguments& arguments) {
  std::vector<std::string_view> here;
  if (arguments.explain) here.push_back("--explain");
  if (arguments.dot_file == "-") here.push_back("--dot -");
  if (arguments.plan_file == "-") here.push_back("--plan -");
  if (here.size() < 2) return;
  throw Error(ErrorCode::kUsage, fmt::format("{} and {} cannot share the terminal; give {} a file", here[0],
                                             here[1], here[1].substr(0, here[1].find(' '))));
}

void write_drawing(const std::string& text, const std::string& file_name, std::ostream& out) {
  if (file_name.empty()) return;
  if (file_name == "-") {
    out << text;
    return;
  }
  out.flush();  // the file may be /dev/stdout
  AtomicFile file(file_name);
  file.write(text);
  file.commit();
}

void describe_functions(const Arguments& arguments, const RunOptions& options, const CliHooks& hooks,
                        std::ostream& out) {
  COPPICE_CHECK(hooks.functions, "the program gave no way to describe its functions");
  refuse_sharing(arguments);
  const FunctionsText text = hooks.functions(options);
  if (arguments.explain) {
    fmt::print(out, "{} runs these functions on the device.\n\n{}\n{}\n{}", options.scene.name,
               text.functions, kUsesLegend, text.explanation);
  }
  write_drawing(text.graph, arguments.dot_file, out);
  write_drawing(text.plan, arguments.plan_file, out);
}

// The trace of a run, when `file` names one. A run that fails leaves its trace, too: it may tell why.
class TraceSession {
 public:
  explicit TraceSession(const std::string& file) : is_on_(!file.empty()) {
    if (!is_on_) return;
    Trace::start(file);
    name_this_thread_row("main");
  }
  ~TraceSession() {
    try {
      finish();
    } catch (const Error& error) {
      log_warning("no trace: {}", error.what());  // the run's own error is the one that is reported
    }
  }
  void finish() {
    if (std::exchange(is_on_, false)) Trace::stop();
  }

 private:
  bool is_on_;
};

std::vector<scene::SceneOverride> overrides_of(const Arguments& arguments) {
  std::vector<scene::SceneOverride> overrides;
  for (const std::string& assignment : arguments.assignments)
    overrides.push_back(scene::SceneOverride::set(assignment));
  if (arguments.frames) {
    overrides.push_back(
        {fmt::format("--frames {}", *arguments.frames), fmt::format("time.frames={}", *arguments.frames)});
  }
  return overrides;
}

RunOptions run_options(const Arguments& arguments) {
  RunOptions options;
  options.scene = scene::load_scene(resolve_scene(arguments.scene), overrides_of(arguments));
  options.output_folder = arguments.output_folder.empty() ? fs::path("out") / options.scene.file.stem()
                                                          : fs::path(arguments.output_folder);
  options.device = arguments.device;
  options.threads = arguments.threads;
  options.deterministic = arguments.deterministic;
  options.overwrite = arguments.overwrite;
  options.assignments = arguments.assignments;
  options.checkpoint_every = arguments.checkpoint_every;
  options.resumes = arguments.resumes;
  return options;
}

// Refuses a file that the scene was read from.
void refuse_scene_files(const std::string& option, const std::string& file, const scene::SceneConfig& scene) {
  refuse_input(option, file, "the scene", scene.file.string());
  for (const scene::Emitter& emitter : scene.emitters)
    refuse_input(option, file, "a mesh of the scene", emitter.mesh_path.string());
  for (const scene::Collider& collider : scene.colliders)
    refuse_input(option, file, "a mesh of the scene", collider.mesh_path.string());
}

int view_command(const Arguments& arguments, const CliHooks& hooks, const std::atomic<bool>& stop) {
  COPPICE_CHECK(static_cast<bool>(hooks.view), "the program gave no way to view a scene");
  viewer::check_flags(arguments.view,
                      {arguments.is_paused, !arguments.output_folder.empty(), arguments.overwrite});
  ViewOptions options;
  options.run = run_options(arguments);
  options.overrides = overrides_of(arguments);
  options.where = arguments.view;
  options.is_paused = arguments.is_paused, options.reloads_kernels = !arguments.no_reload;
  options.has_frames = arguments.frames.has_value();
  options.journal = arguments.journal_file, options.replay = arguments.replay_file;
  options.play = arguments.played_folder;
  refuse_scene_files("--journal", arguments.journal_file, options.run.scene);
  return hooks.view(options, stop) == RunOutcome::kFinished ? kExitDone : kExitInterrupted;
}

int run_command(const Arguments& arguments, std::ostream& out, const CliHooks& hooks,
                const std::atomic<bool>& stop) {
  COPPICE_CHECK(static_cast<bool>(hooks.run), "the program gave no way to run a scene");
  const bool is_run = !arguments.explain && arguments.dot_file.empty() && arguments.plan_file.empty();
  // A job of one rank is what a batch system's shell looks like.
  const bool is_alone = !is_mpi_rank() || launched_ranks() == 1;
  if (is_run && arguments.ranks > 0 && launched_ranks().value_or(1) != arguments.ranks) {
    if (!is_alone)
      throw Error(ErrorCode::kUsage,
                  fmt::format("--ranks {}: this process is one of {} ranks already; leave it out",
                              arguments.ranks, *launched_ranks()));
    hooks.start_ranks(arguments.ranks, arguments.words);
    return kExitDone;
  }
  const RunOptions options = run_options(arguments);
  if (!is_run) {
    if (!arguments.trace_file.empty())
      throw Error(ErrorCode::kUsage, "--trace records a run, and --explain, --dot and --plan do no step");
    for (const auto& [option, file] :
         {std::pair("--dot", arguments.dot_file), std::pair("--plan", arguments.plan_file)}) {
      refuse_scene_files(option, file, options.scene);
      refuse_output(option, file, options.output_folder.string());
    }
    refuse_same_file("--plan", arguments.plan_file, "--dot", arguments.dot_file);
    describe_functions(arguments, options, hooks, out);
    return kExitDone;
  }
  refuse_scene_files("--trace", arguments.trace_file, options.scene);
  refuse_output("--trace", arguments.trace_file, options.output_folder.string());
  // The first of several ranks is recorded.
  TraceSession recording(launched_rank().value_or(0) == 0 ? arguments.trace_file : "");
  const RunOutcome outcome = hooks.run(options, stop);
  recording.finish();
  return outcome == RunOutcome::kFinished ? kExitDone : kExitInterrupted;
}

void print_table(std::ostream& out, const std::vector<InfoLine>& lines) {
  std::size_t width = 0;
  for (const InfoLine& line : lines) width = std::max(width, line.name.size());
  for (const InfoLine& line : lines) fmt::print(out, "{:<{}}  {}\n", line.name, width, line.value);
}

// Warnings come as a run would say them.
int validate_command(const Arguments& arguments, std::ostream& out, const CliHooks& hooks) {
  COPPICE_CHECK(static_cast<bool>(hooks.validate), "the program gave no way to validate a scene");
  ValidateOptions options;
  options.scene = scene::load_scene(resolve_scene(arguments.scene), overrides_of(arguments));
  const std::vector<InfoLine> lines = hooks.validate(options);
  if (arguments.quiet) return kExitDone;
  fmt::print(out, "{} can be run.\n", options.scene.name);
  print_table(out, lines);
  return kExitDone;
}

// A file that is no scene says why, and the others are listed all the same.
std::string summary_of(const fs::path& file) {
  try {
    const scene::SceneConfig scene = scene::load_scene(file);
    return fmt::format("{}-D{}{}", scene.dim, scene.description.empty() ? "" : "  ", scene.description);
  } catch (const Error& error) {
    return printable(fmt::format("---  {}", error.what()));
  }
}

int list_command(const Arguments& arguments, std::ostream& out) {
  if (arguments.keys) {
    out << scene::describe_scene();
    return kExitDone;
  }
  std::vector<InfoLine> lines;
  for (const std::string& folder : arguments.folders) {
    const std::vector<fs::path> files = list_scene_files(folder);
    if (files.empty()) throw Error(ErrorCode::kNotFound, "the folder has no scene files (*.toml)", {folder});
    for (const fs::path& file : files) lines.push_back({printable(file.string()), summary_of(file)});
  }
  if (!arguments.folders.empty()) {
    print_table(out, lines);
    return kExitDone;
  }
  const std::vector<fs::path> files = list_scene_files();
  if (files.empty())
    throw Error(ErrorCode::kNotFound, "no scenes found; COPPICE_ASSETS can name the assets folder");
  for (const fs::path& file : files) lines.push_back({file.stem().string(), summary_of(file)});
  print_table(out, lines);
  return kExitDone;
}

std::string cache_text(const CacheSummary& cache) {
  return fmt::format("{} ({} kernel{}, {})", cache.folder.string(), cache.entries,
                     cache.entries == 1 ? "" : "s", size_text(static_cast<uint64_t>(cache.size_bytes)));
}

// "CUDA driver" -> "cuda_driver": names that programs can rely on.
std::string json_key(std::string name) {
  std::ranges::transform(name, name.begin(), [](char c) {
    return c == ' ' ? '_' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return json_string(name);
}

std::string cache_json(const CacheSummary& cache) {
  return fmt::format(R"({{"folder": {}, "entries": {}, "bytes": {}, "max_bytes": {}}})",
                     json_string(cache.folder.string()), cache.entries, cache.size_bytes, cache.max_bytes);
}

// Lists every variable, those that are not set as null.
std::string environment_json() {
  std::vector<std::string> members;
  for (const EnvironmentVariable& variable : environment_variables()) {
    const char* value = std::getenv(std::string(variable.name).c_str());
    members.push_back(
        fmt::format("    {}: {}", json_string(variable.name), value ? json_string(value) : "null"));
  }
  return fmt::format("{{\n{}\n  }}", fmt::join(members, ",\n"));
}

void print_json(std::ostream& out, const std::vector<InfoLine>& lines, const CliHooks& hooks) {
  std::vector<std::string> members;
  for (const InfoLine& line : lines)
    members.push_back(json_key(line.name) + ": " + (line.is_number ? line.value : json_string(line.value)));
  if (hooks.cache) members.push_back("\"kernel_cache\": " + cache_json(hooks.cache()));
  members.push_back("\"environment\": " + environment_json());
  fmt::print(out, "{{\n  {}\n}}\n", fmt::join(members, ",\n  "));
}

int info_command(const Arguments& arguments, std::ostream& out, const CliHooks& hooks) {
  if (!arguments.info_device.empty()) {
    COPPICE_CHECK(static_cast<bool>(hooks.device), "the program gave no way to make a device");
    fmt::print(out, "{}: {}\n", arguments.info_device, hooks.device(arguments.info_device));
    return kExitDone;
  }
  std::vector<InfoLine> lines = system_info();
  if (hooks.info) std::ranges::copy(hooks.info(), std::back_inserter(lines));
  if (arguments.json) {
    print_json(out, lines, hooks);
    return kExitDone;
  }
  std::erase_if(lines, [](const InfoLine& line) { return line.is_json_only; });
  if (hooks.cache) lines.push_back({"kernel cache", cache_text(hooks.cache())});
  print_table(out, lines);
  return kExitDone;
}

int cache_command(const Arguments& arguments, std::ostream& out, const CliHooks& hooks) {
  COPPICE_CHECK(hooks.cache && hooks.clear_cache, "the program gave no way to reach the kernel cache");
  out << (arguments.clear ? "cleared " + cache_text(hooks.clear_cache()) : cache_text(hooks.cache())) << "\n";
  return kExitDone;
}

int dispatch(const Grammar& grammar, const Arguments& arguments, std::ostream& out, std::ostream& err,
             const CliHooks& hooks, const std::atomic<bool>& stop) {
  if (grammar.plan->parsed()) return plan_command(arguments.plan, out, err, stop);
  if (arguments.quiet) set_log_level(std::max(log_level(), LogLevel::kWarning));
  if (grammar.validate->parsed()) return validate_command(arguments, out, hooks);
  if (grammar.run->parsed()) return run_command(arguments, out, hooks, stop);
  if (grammar.view->parsed()) return view_command(arguments, hooks, stop);
  if (grammar.list->parsed()) return list_command(arguments, out);
  if (grammar.info->parsed()) return info_command(arguments, out, hooks);
  return cache_command(arguments, out, hooks);
}

// Prints one line whatever the message holds: what files and command lines hold is repeated there, and
// library messages may have line breaks in them.
void print_error(std::ostream& err, const std::string& message) {
  const int rank = launched_rank().value_or(0);
  const std::string which = rank > 0 ? fmt::format("rank {}: ", rank) : "";
  err << "coppice: " << which << "error: " << printable(message) << "\n";
}

// The launcher ends all ranks when one of them ends, and the first one is still to speak. Returns where it
// does not.
void wait_to_be_ended() {
  set_log_level(LogLevel::kError);
  std::this_thread::sleep_for(std::chrono::seconds(20));
}

int exit_code_of(ErrorCode code) {
  if (code == ErrorCode::kUsage) return kExitUsage;
  return code == ErrorCode::kCancelled ? kExitInterrupted : kExitFailure;
}

// The words of a command line, "--dot=" as two: CLI11 would take the next word for its value.
std::vector<std::string> split_words(int argc, const char* const* argv) {
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    const bool has_empty_value = word.starts_with("--") && word.find('=') == word.size() - 1;
    if (has_empty_value) word.pop_back();
    words.push_back(std::move(word));
    if (has_empty_value) words.emplace_back();
  }
  return words;
}

int parse_and_dispatch(int argc, const char* const* argv, std::ostream& out, std::ostream& err,
                       const CliHooks& hooks, const std::atomic<bool>& stop) {
  Arguments arguments;
  Grammar grammar(arguments);
  const std::vector<std::string> words = split_words(argc, argv);
  try {
    grammar.app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::Success& help) {  // --help and --version
    std::ostream& nowhere = err;        // CLI11 prints nothing to it on success
    return grammar.app.exit(help, out, nowhere);
  } catch (const CLI::ParseError& error) {
    print_error(err, usage_message(grammar, words, error));
    return kExitUsage;
  }
  check_environment();
  arguments.words = argv;
  return dispatch(grammar, arguments, out, err, hooks, stop);
}

}  // namespace

int run_cli(int argc, const char* const* argv, std::ostream& out, std::ostream& err, const CliHooks& hooks,
            const std::atomic<bool>& stop) {
  try {
    const int code = parse_and_dispatch(argc, argv, out, err, hooks, stop);
    out.flush();
    if (!out) throw Error(ErrorCode::kIo, "cannot write to standard output");
    return code;
  } catch (const Error& error) {
    // The first rank says what is wrong with a scene, for all that read the same file.
    const bool is_said =
        error.code() == ErrorCode::kUsage && launched_rank().value_or(0) > 0 && are_ranks_here();
    if (is_said) wait_to_be_ended();
    print_error(err, error.what());
    return exit_code_of(error.code());
  } catch (const std::bad_alloc&) {
    print_error(err, "out of memory");
  } catch (const std::exception& error) {
    print_error(err, error.what());
  }
  return kExitFailure;
}

}  // namespace coppice::cli
