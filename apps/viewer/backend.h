// A back end shows what the viewer sees: in a window, in files, or nowhere.
//
// A back end is used on the thread that called Viewer::run(), but for wake(). The window's is a plugin
// (window/window_plugin.h): it reaches the viewer by these virtual functions alone.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/render/camera_path.h"
#include "apps/viewer/command.h"
#include "apps/viewer/film.h"
#include "apps/viewer/live_view.h"
#include "apps/viewer/reports.h"
#include "apps/viewer/simulation.h"
#include "apps/viewer/snapshot.h"
#include "apps/viewer/status.h"
#include "apps/viewer/still.h"

namespace coppice::viewer {

// A back end may ask this of the viewer.
class Session {
 public:
  virtual ~Session() = default;
  virtual const std::string& title() const = 0;
  // False: there are too many commands that the simulation has not looked at yet.
  virtual bool post(Command command) = 0;
  virtual SimulationStatus status() const = 0;
  // Returns what was measured of what is watched (Watch).
  virtual Reports reports() const = 0;
  // Returns lines of the log with numbers above `after`, of all levels, the oldest first; the last
  // thousand at most.
  virtual std::vector<std::shared_ptr<const LogLine>> log_lines(uint64_t after) const = 0;
  // Adds a line to what log_lines() returns, and to nothing else.
  virtual void log(LogLevel level, const std::string& text) = 0;
  virtual CompileStatus compile_status() const = 0;
  // Returns whether what was computed last is still to be taken.
  virtual bool has_more() const = 0;
  virtual std::vector<Parameter> parameters() const = 0;
  // Returns the camera to begin with, once there is a snapshot.
  virtual render::Camera first_camera(const Snapshot& snapshot, float aspect) const = 0;
  // Returns whether first_camera() moves with the snapshots' time, through keyframes.
  virtual bool has_camera_path() const = 0;
  // Returns the camera of keyframes at a time; there is one keyframe at least.
  virtual render::Camera camera_at(const std::vector<render::CameraKey>& keys, double time_s) const = 0;
  virtual std::unique_ptr<LiveView> make_live_view(const render::GlFunctions& gl) const = 0;
  // Writes a picture of a snapshot in the quality of files. Returns the file's name; or why there is none, as
  // text, for this may be called by a plugin.
  virtual std::string write_screenshot(const Snapshot& snapshot, const render::Camera& camera,
                                       const ViewOptions& options, int width, int height) noexcept = 0;
  // Draws a picture in the quality of files beside the window, which is woken when take_still() has it.
  // If several were asked for, the last one counts. Snapshots must be such that has_still() is true.
  virtual bool has_still(const Snapshot& snapshot, const ViewOptions& options) const = 0;
  virtual void ask_still(uint64_t number, std::shared_ptr<const Snapshot> snapshot,
                         const render::Camera& camera, const ViewOptions& options, int width, int height) = 0;
  virtual std::optional<Still> take_still() = 0;
  virtual void forget_still() = 0;  // what was asked for; what is being drawn of it ends
  // Begins a film of what the window shows from now on. The session owns it, and waits for it at its end.
  // Returns null, and says why, where there can be none.
  virtual Film* begin_film(std::string& why) noexcept = 0;
};

class ViewerBackend {
 public:
  virtual ~ViewerBackend() = default;
  virtual bool wants_snapshot() const = 0;
  // The snapshot is complete and immutable. While the back end keeps one, the simulation cannot fill it:
  // let go of the one before.
  virtual void show(std::shared_ptr<const Snapshot> snapshot) = 0;
  // Handles input, draws, and waits until there is something to do, at most for a tenth of a second.
  // Returns false when it was closed.
  virtual bool poll(Session& session) = 0;
  // Ends a wait in poll(). May be called on any thread.
  virtual void wake() = 0;
};

}  // namespace coppice::viewer
