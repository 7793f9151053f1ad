// Draws snapshots into a framebuffer, for whoever has an OpenGL context: a window, or a file's offscreen
// target.
//
// Abstract, because a window is a plugin: it calls the program through virtual functions, and the program
// exports nothing.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/render/camera.h"
#include "apps/render/gl_functions.h"
#include "apps/render/value_range.h"
#include "apps/viewer/snapshot.h"

namespace coppice::viewer {

inline constexpr size_t kMostTreeLevels = 6;

enum class RangeChoice {
  kGiven,        // the simulation's, or that of the values
  kPercentiles,  // of the values
  kFixed
};

// These say how the values of a set of points or of a volume are shown, where somebody chose otherwise
// than the simulation.
struct ColorChoice {
  std::optional<render::ColorMap> map;
  RangeChoice range = RangeChoice::kGiven;
  render::Percentiles percentiles;  // of kPercentiles
  render::ScalarRange fixed;        // of kFixed
  std::optional<bool> is_logarithmic;
  std::optional<float> threshold;  // of a volume's surface
  bool operator==(const ColorChoice&) const = default;
};
// Choices are found by this key, which names the attribute: another one has other values.
inline std::string color_key(const PointSet& set) { return set.name + ": " + set.attribute; }
inline std::string color_key(const VolumeSet& set) { return set.name; }

struct ViewOptions {
  bool shows_points = true;
  bool shows_volumes = true;
  std::string grid;                               // of Snapshot::grid_values, as a volume; empty: none
  std::optional<render::VolumeMode> volume_mode;  // of all volumes; none: as the simulation says
  // Planes across x, y and z. If none is set, they are those of the simulation, or one across z through
  // the domain's middle.
  std::array<std::optional<float>, 3> slices_m;
  bool interpolates_slices = true;
  bool shows_domain = true;  // its box and axes
  bool shows_colliders = true;
  bool is_solid = true;      // colliders and the floor; else lines
  bool shows_trees = false;  // Snapshot::trees, by levels from the root down
  std::array<bool, kMostTreeLevels> tree_levels{true, true, true, true, true, true};
  bool colors_by_fill = false;                // else by level
  std::map<std::string, ColorChoice> colors;  // by color_key()
  std::optional<Vec3f> cell_m;                // its cells are outlined in snapshots that have read them
  double most_ms = 20;  // of one call, about: what is not done by then comes with the next

  bool operator==(const ViewOptions&) const = default;
};

// Returns what a volume is drawn as. One that is a single cell thick has neither fog nor a surface to
// see.
inline render::VolumeMode mode_of(const VolumeSet& set, const ViewOptions& options) {
  return set.bricks.dim == 3 ? options.volume_mode.value_or(set.style.mode) : set.style.mode;
}

// Boxes of a tree have a colour for each level, from the root's child down, or this map's, from empty to
// full.
inline constexpr render::ColorMap kFillMap = render::ColorMap::kViridis;
inline render::Rgb tree_level_color(size_t level) {
  static const std::array<render::Rgb, kMostTreeLevels> colors = {
      render::Rgb(1.0f, 0.85f, 0.3f),  render::Rgb(0.95f, 0.45f, 0.25f), render::Rgb(0.35f, 0.75f, 0.95f),
      render::Rgb(0.55f, 0.9f, 0.45f), render::Rgb(0.8f, 0.55f, 0.95f),  render::Rgb(0.9f, 0.9f, 0.9f)};
  return colors[level % colors.size()];
}

// The point that is seen at a pixel is this one.
struct Picked {
  size_t set = 0;      // of Snapshot::points
  uint32_t point = 0;  // of that set
};

// The colours of a set of points or of a volume, for its legend.
struct ShownRange {
  render::ScalarRange range;  // of the values at the colour map's ends
  // Counts positions and values that are not finite: they are not drawn, or drawn in a signal colour.
  size_t n_bad_positions = 0, n_bad_values = 0;
  render::ColorMap map = render::ColorMap::kViridis;
  bool is_logarithmic = false;
  float threshold = 0;  // of a volume's surface
};

class LiveView {
 public:
  virtual ~LiveView() = default;
  // draw() shows this snapshot from now on. The view keeps it until the next one. Errors: those of the
  // driver; then draw() shows nothing until the next one.
  virtual void show(std::shared_ptr<const Snapshot> snapshot) = 0;
  // Fills width x height pixels of a framebuffer with colour and depth; 0 is the window. It never waits
  // for the simulation. Returns whether the picture is complete: else another call with the same camera
  // and size goes on with it. Errors: those of the driver.
  virtual bool draw(const render::Camera& camera, const ViewOptions& options, GLuint framebuffer, int width,
                    int height) = 0;
  // Both say what the last draw() showed of Snapshot::points, and of Snapshot::volumes, in their order.
  virtual std::vector<ShownRange> ranges() const = 0;
  virtual std::vector<ShownRange> volume_ranges() const = 0;
  // Returns the point that is seen there, at the last draw's camera and size; x to the right, y down, in
  // pixels.
  virtual std::optional<Picked> pick(int x, int y) = 0;
  // Returns where the slice, surface or collider that is seen there is in the world, m. Fog is nowhere.
  virtual std::optional<Vec3f> position_at(int x, int y) = 0;
};

// `gl` outlives the view; its context is current here, in all calls and in the destructor.
std::unique_ptr<LiveView> make_live_view(const render::GlFunctions& gl);

}  // namespace coppice::viewer
