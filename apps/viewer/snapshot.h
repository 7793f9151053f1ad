// A snapshot shows one moment of a simulation: it is complete, and immutable once it was handed over.
//
// The simulation's thread fills one while the viewer draws another (snapshot_exchange.h). Memory is kept from
// one moment to the next, so that filling allocates nothing once it has grown.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/render/brick_pack.h"
#include "apps/render/color_map.h"
#include "apps/render/packed_points.h"
#include "apps/render/render_scene.h"
#include "apps/render/tree_boxes.h"
#include "apps/render/volume_style.h"
#include "core/math.h"

namespace coppice::viewer {

// A set of particles with one attribute each.
struct PointSet {
  std::string name;             // "particles"
  std::string attribute, unit;  // of the values: "speed", "m/s"
  std::vector<render::PackedPoint> points;
  float radius_m = 0.01f;
  bool is_categorical = false;  // values are indices into `palette`
  std::vector<render::Rgb> palette;
  // Names the palette's colours, for the legend: as many as there are colours, and no other index has a
  // colour; or none, and indices beyond the palette begin anew.
  std::vector<std::string> categories;
  render::ColorMap map = render::ColorMap::kViridis;
  std::optional<render::ScalarRange> range;  // none: of the values themselves
  std::vector<uint8_t> is_enclosed;          // [points], not 0: in a body that a volume shows; empty: none is
  std::vector<render::Look> looks;           // [points], of pictures for files; empty: all spheres
  std::array<float, 2> body_spacing_m{};     // as RenderScene has them
};

// This is a field of a tree, where it is not zero, and how it is drawn.
struct VolumeSet {
  std::string name, unit;
  render::BrickVolume bricks;
  render::VolumePlacement placement;  // of the tree's cells in the world
  render::VolumeStyle style;
  bool has_range = false;  // style.range was given; else it is that of the values
  bool is_body = false;    // what particles make up, which pictures of files draw from the particles
};

// The containers of a tree's nodes.
struct TreeSet {
  std::string name;  // "mpm.grid"
  render::TreeBoxes boxes;
};

// This is one of Snapshot::grid_values: each material that makes up bodies is a volume, and those of its
// points that are not spray are enclosed.
inline constexpr const char* kBodies = "bodies";

// These are packed only while somebody wants to see them.
struct Wanted {
  bool trees = false;
  bool volumes = true;
  std::string grid;             // one of Snapshot::grid_values, as a volume; empty: none
  std::optional<Vec3f> cell_m;  // the cell that this point of the world lies in is read
  bool operator==(const Wanted&) const = default;
};

// A number that is shown beside the picture.
struct Reading {
  std::string name;
  double value = 0;
  std::string unit;
};

// All values of a cell of a tree.
struct CellReading {
  std::string name;  // "grid (12, 3, 40)"
  Aabb3f bounds;     // m
  bool is_active = false;
  std::vector<Reading> values;
};

// A simulation that can be at any time at once, as a film can, stands at this frame; the parameter
// kPlaybackPath sets it.
struct Playback {
  int64_t first = 0, last = 0, now = 0;  // frames
};
inline constexpr const char* kPlaybackPath = "frame";

struct Snapshot {
  Wanted wanted;       // what it is to be filled with; set before
  uint64_t steps = 0;  // that the simulation had made since it began
  double time_s = 0;
  int dim = 3;
  Aabb3f domain;
  std::vector<PointSet> points;
  std::vector<VolumeSet> volumes;
  std::vector<TreeSet> trees;
  std::vector<std::string> grid_values;  // what can be wanted of the simulation's grid: "density"
  std::vector<render::RenderCollider> colliders;
  std::vector<Reading> readings;
  std::vector<CellReading> cells;  // at Wanted::cell_m: one of each tree
  std::optional<Playback> playback;
  double pack_s = 0;  // what filling this one took, by the host's clock
};

}  // namespace coppice::viewer
