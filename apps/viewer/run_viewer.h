// Runs a simulation on a thread of its own, and a back end on this one, until either ends.
#pragma once
#include <atomic>
#include <filesystem>
#include <functional>
#include <string>

#include "apps/viewer/backend.h"
#include "apps/viewer/simulation_thread.h"

namespace coppice::viewer {

struct ViewerRun {
  std::string title;
  SimulationThread::Make make;
  // Its `on_news` and `journal` are not used: they are the viewer's.
  SimulationThreadOptions options;
  std::function<render::Camera(const Snapshot&, float aspect)> first_camera;  // none: all of the domain
  bool has_camera_path = false;                   // first_camera depends on the snapshot's time
  std::filesystem::path journal;                  // written while the run goes on; empty: nowhere
  std::vector<JournalEntry> journal_begin;        // what was done before the simulation began
  std::filesystem::path screenshot_folder = ".";  // view_0000.png, the first that is not there
};

enum class ViewerOutcome { kClosed, kEnded, kStopped };

// Returns when the back end was closed, the simulation has ended and the back end is done with it, or `stop`
// is true. Errors: what the simulation failed with when the back end was closed behind that (a window shows
// it and stays open); kIo for the journal; kUsage where that is a picture's file in the screenshot folder.
ViewerOutcome run_viewer(const ViewerRun& run, ViewerBackend& backend, const std::atomic<bool>& stop);

}  // namespace coppice::viewer
