// A window for a solver of your own:
//
//   int main(int argc, char** argv) {
//     Swirl swirl(Device::best());
//     Viewer viewer(argc, argv, "swirl");                       // --view window|file|null, --frames N, ...
//     viewer.points("tracers", [&](auto& points) { swirl.pack(points); }, {.attribute = "speed", .unit = "m/s"});
//     viewer.slider("spin", swirl.spin, 0.0f, 10.0f, "1/s");
//     return viewer.run([&] { swirl.step(); });
//   }
//
// run() keeps this thread for the window and calls everything that was given on another one, between two
// steps: none of it needs a lock, and the window answers however long a step takes. What a step throws pauses
// the simulation and is shown. A step is over when all that it launched on the devices of the fields is done,
// so that it need not wait itself.
//
// Everything is given before run(). Functions that are empty, values that are not finite and names that are
// there already are Errors: kInvalidArgument. Within run(), and when it has returned, nothing can be given
// any more: kUsage.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/geometry/stroke.h"
#include "apps/render/color_map.h"
#include "apps/render/packed_points.h"
#include "apps/render/volume_style.h"
#include "core/math.h"
#include "sparse/tree.h"

namespace coppice {

// This says how a set of particles is drawn.
struct PointLook {
  std::string attribute, unit;  // what values are: "speed", "m/s"
  float radius_m = 0.01f;
  bool is_categorical = false;  // values are indices into a palette of 8 colours
  // These name the colours, for the legend: at most 8, and then other indices have no colour. Without
  // names the 9th index has the first colour.
  std::vector<std::string> categories;
  render::ColorMap map = render::ColorMap::kViridis;
  std::optional<render::ScalarRange> range;  // none: of the values
};

// This says how a field of a tree is drawn: as fog, unless its style says otherwise.
struct FieldLook {
  std::string unit;                   // of the values: "K"
  render::VolumePlacement placement;  // in the world, of the cells of the node that the field is placed on
  render::VolumeStyle
      style;  // of a tree of one or two dimensions fog is drawn as the slice through its cells
  bool has_range =
      false;  // style.range is meant; else it is that of the values, those of inactive cells among bricks too
};

class Viewer {
 public:
  // `argv` is main()'s: run() complains of what it does not know. `title` is one word or several.
  Viewer(int argc, const char* const* argv, std::string title);
  ~Viewer();
  Viewer(const Viewer&) = delete;
  Viewer& operator=(const Viewer&) = delete;

  // `fill` replaces the contents with all particles; when it is called, no step is under way.
  void points(std::string name, std::function<void(std::vector<render::PackedPoint>& points)> fill,
              PointLook look = {});
  // `field` is called each time the field is shown, for solvers that swap two. It may be of any node but
  // a dynamic one.
  void field(std::string name, std::function<Field<float>()> field, FieldLook look = {});
  // `value` is read and written between two steps alone. It outlives run(). A name is one word. Errors:
  // kInvalidArgument unless min < max.
  void slider(std::string name, float& value, float min, float max, std::string unit = "");
  // Adds another device whose work belongs to the steps, for programs that show no field of a tree on it.
  void device(IntrusivePtr<Device> device);
  // Sets what is seen at first. Without it, that is the particles and cells of the first moment that has
  // some, but for those far away from nearly all others, and a little more around them. It is set again
  // when they spread over more than four times as much, until somebody moves the camera.
  void domain(const Aabb3f& domain, int dim = 3);
  // Adds a number beside the picture.
  void reading(std::string name, std::function<double()> value, std::string unit = "");
  // `reset` goes back to the beginning; without it there is no way back. Launches that failed are
  // forgotten before it. Devices outlive it.
  void on_reset(std::function<void()> reset);
  // These make the mouse a hand, and are called between two steps. What is in the stroke is to move by
  // `velocity` (m/s) beside its own, or is to be taken out. Places and the radius are finite, the radius
  // is positive. If one throws, it must have changed nothing, and its error is shown in one line. Without
  // them the window has no such tool. on_emit: a ball of the program's own material is to be added, with
  // a velocity; journals call that "particles".
  void on_emit(std::function<void(const Vec3f& center, float radius_m, const Vec3f& velocity_m_s)> emit);
  void on_push(std::function<void(const Stroke& stroke, const Vec3f& velocity)> push);
  void on_cut(std::function<void(const Stroke& stroke)> cut);
  // Sets the simulated seconds of a step (else time is not shown), and the steps from one written picture
  // to the next.
  void time_step(double dt_s, int steps_per_frame = 1);

  // Returns main()'s exit code: 0; 1 with one line on stderr when something failed; 2 for bad arguments;
  // 130 when it was interrupted. It is called once; a second call is an Error: kUsage.
  int run(std::function<void()> step);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace coppice
