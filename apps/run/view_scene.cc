// `coppice view` (see view_scene.h).
#include "apps/run/view_scene.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "apps/run/frame_view.h"
#include "apps/run/recorded_run.h"
#include "apps/run/run_scene.h"
#include "apps/run/scene_simulation.h"
#include "apps/viewer/journal.h"
#include "apps/viewer/make_backend.h"
#include "apps/viewer/quiet_backends.h"
#include "apps/viewer/run_viewer.h"
#include "core/error.h"
#include "core/log.h"

namespace coppice {
namespace {

// The frame that --frames names.
std::optional<int64_t> last_asked(const cli::ViewOptions& options) {
  return options.has_frames ? std::optional<int64_t>(options.run.scene.time.frames) : std::nullopt;
}

// The frame that the simulation ends with, counted from the first that is shown; negative: none.
int64_t last_frame(const cli::ViewOptions& options) {
  const bool is_window = options.where == "window";
  if (!options.play.empty())  // which a window shows over and over
    return is_window ? -1
                     : static_cast<int64_t>(recorded_frames(options.play, last_asked(options)).size()) - 1;
  return is_window && !options.has_frames ? -1 : options.run.scene.time.frames;
}

// Pictures go into another folder: --overwrite removes what an earlier run has left there.
void check_played_folder(const cli::ViewOptions& options) {
  std::error_code error;
  if (options.where != "file" || !std::filesystem::equivalent(options.play, options.run.output_folder, error))
    return;
  throw Error(ErrorCode::kUsage,
              fmt::format("pictures of what is played from {} need a folder of their own; name it with -o",
                          options.play.string()));
}

}  // namespace

cli::RunOutcome view_scene(const cli::ViewOptions& options, const std::atomic<bool>& stop) {
  const scene::SceneConfig& scene = options.run.scene;
  const bool is_window = options.where == "window";
  if (!options.play.empty()) check_played_folder(options);
  viewer::ViewerRun run;
  run.title = scene.name;
  run.make = [&]() -> std::unique_ptr<viewer::Simulation> {
    if (!options.play.empty())
      return std::make_unique<RecordedRun>(options.play, scene, options.overrides, last_asked(options));
    return std::make_unique<SceneSimulation>(make_device(options.run), scene, options.overrides);
  };
  run.options.is_paused = options.is_paused;
  run.options.last_frame = last_frame(options);
  run.options.shows_every_frame = options.where == "file";
  // A window plays a recorded run at the pace of simulated time, not as fast as files are read.
  run.options.pace = is_window && !options.play.empty() ? 1 : 0;
  run.options.reloads_kernels = options.reloads_kernels && options.play.empty();
  run.options.nice = is_window ? viewer::kNiceBesideWindow : 0;
  if (!options.replay.empty()) run.options.replay = viewer::read_journal(options.replay, options.journal);
  run.first_camera = [&](const viewer::Snapshot& s, float aspect) {
    return camera_of(scene, aspect, s.time_s);
  };
  run.has_camera_path = scene.dim == 3 && !scene.output.camera.keyframes.empty();
  run.journal = options.journal;
  run.screenshot_folder = options.run.output_folder;
  const std::unique_ptr<viewer::ViewerBackend> backend =
      viewer::make_backend({.where = options.where,
                            .folder = options.run.output_folder,
                            .overwrite = options.run.overwrite,
                            .width = scene.output.width,
                            .height = scene.output.height,
                            .title = scene.name});
  const viewer::ViewerOutcome outcome = run_viewer(run, *backend, stop);
  if (const auto* files = dynamic_cast<const viewer::FileBackend*>(backend.get()))
    files->wait_finish(scene.output.mp4 ? std::optional(1.0 / scene.time.frame_dt_s) : std::nullopt);
  return outcome == viewer::ViewerOutcome::kStopped ? cli::RunOutcome::kInterrupted
                                                    : cli::RunOutcome::kFinished;
}

}  // namespace coppice
