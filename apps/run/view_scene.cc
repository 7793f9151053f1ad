// `coppice view` (see view_scene.h).
#include "apps/run/view_scene.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

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

// That are shown behind the first one.
int64_t frames_of(const cli::ViewOptions& options) {
  const int64_t asked = options.run.scene.time.frames;
  if (options.play.empty()) return asked;
  const auto there = static_cast<int64_t>(recorded_frames(options.play).size());
  return options.has_frames ? std::min(asked, there - 1) : there - 1;
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
    if (!options.play.empty()) return std::make_unique<RecordedRun>(options.play, scene, options.overrides);
    return std::make_unique<SceneSimulation>(make_device(options.run), scene, options.overrides);
  };
  run.options.is_paused = options.is_paused;
  run.options.last_frame = is_window && !options.has_frames ? -1 : frames_of(options);
  run.options.shows_every_frame = options.where == "file";
  // As it was, not as fast as files are read.
  run.options.pace = is_window && !options.play.empty() ? 1 : 0;
  run.options.reloads_kernels = options.reloads_kernels && options.play.empty();
  run.options.nice = is_window ? viewer::kNiceBesideWindow : 0;
  if (!options.replay.empty()) run.options.replay = viewer::read_journal(options.replay, options.journal);
  run.first_camera = [&](const viewer::Snapshot& s, float aspect) {
    return camera_of(scene, aspect, s.time_s);
  };
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
  if (const auto* files = dynamic_cast<const viewer::FileBackend*>(backend.get())) {
    log_info("{} pictures are in {}", files->written(), options.run.output_folder.string());
    if (scene.output.mp4) files->wait_make_movie(1.0 / scene.time.frame_dt_s);
  }
  return outcome == viewer::ViewerOutcome::kStopped ? cli::RunOutcome::kInterrupted
                                                    : cli::RunOutcome::kFinished;
}

}  // namespace coppice
