// A scene for the MLS-MPM solver: what is simulated, for how long, and what is written.
//
// load_scene() returns a checked scene: every number is finite and in range, every required key was there,
// and what depends on other keys is filled in (marked "filled" below). SI units; y is up. In 2-D scenes every
// vector has z = 0 and a rotation its angle in z. A scene is plain data: copy it, change it, hand it to a
// solver. docs/scene.md is describe_scene().
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/scene/collider_shape.h"
#include "apps/scene/material.h"
#include "apps/scene/schema.h"
#include "core/math.h"

namespace coppice::scene {

enum class EmitterShape { kSphere, kBox, kCylinder, kMesh };
enum class ColorBy { kMaterial, kEmitter, kSpeed, kVolumeRatio, kPressure, kVonMises };
enum class Transfer { kApic, kAflip };
enum class Colormap { kViridis, kInferno, kTurbo, kGray };

std::span<const std::string_view> enum_names(EmitterShape);
std::span<const std::string_view> enum_names(ColliderShape);
std::span<const std::string_view> enum_names(ColorBy);
std::span<const std::string_view> enum_names(Colormap);
std::span<const std::string_view> enum_names(Transfer);

// A box of space with walls; z is 0 to 0 in 2-D.
struct Domain {
  Vec3d min = Vec3d::Zero();  // m
  Vec3d max = Vec3d::Ones();  // m
  TableOrigin origin;
};

struct Grid {
  int resolution = 64;  // cells along the domain's longest side
};

struct Time {
  int frames = 48;
  double fps = 24.0;
  double frame_dt_s = 0.0;  // filled: 1 / fps unless given
  double cfl = 0.4;         // cells that a particle or a sound wave may cross in one step, at most
  double max_dt_s = 1.0e-3;
};

// How particles and grid exchange motion (docs/materials.md, Damping).
struct SolverKeys {
  Transfer transfer = Transfer::kApic;
  double flip = 0.99;  // aflip: share of its own motion that a particle keeps, per step
};

struct Walls {
  BoundaryKind all = BoundaryKind::kSeparate;
  double friction = 0.0;
  std::optional<BoundaryKind> x_min, x_max, y_min, y_max, z_min, z_max;
  // filled: in the order above
  std::array<BoundaryKind, 6> sides{};
  TableOrigin origin;
};

// An emitter with it goes on: its material streams through its shape with its velocity.
struct Inflow {
  double from_s = 0.0;            // begins here
  std::optional<double> until_s;  // ends here; never unless given
  TableOrigin origin;
};

struct Emitter {
  EmitterShape shape = EmitterShape::kSphere;
  Vec3d center = Vec3d::Zero();     // m; sphere, box, cylinder
  double radius = 0.0;              // m; sphere, cylinder
  Vec3d half_size = Vec3d::Zero();  // m; box
  double half_height = 0.0;         // m; cylinder, whose axis is y before rotation
  std::string mesh;                 // as written; see mesh_path
  std::optional<double> fit;        // m; longest side of the mesh's bounds, whose middle goes to `translate`
  double scale = 1.0;               // when `fit` is not given
  Vec3d translate = Vec3d::Zero();  // m; mesh
  bool strict = false;              // an open mesh is an error
  Vec3d rotate_deg =
      Vec3d::Zero();  // about x, then y, then z; box and cylinder about their center, before `translate`
  Vec3d velocity = Vec3d::Zero();    // m/s
  int particles_per_cell = 0;        // filled: 4 in 2-D and 8 in 3-D unless given
  std::optional<std::int64_t> seed;  // filled: the scene's seed + the emitter's index unless given
  double stiffness_spread = 0.0;     // snow; of its particles' stiffness, relative
  std::optional<Inflow> inflow;
  MaterialKind material = MaterialKind::kSnow;
  SnowParameters snow;
  JellyParameters jelly;
  WaterParameters water;
  SandParameters sand;
  ClayParameters clay;
  MudParameters mud;

  std::filesystem::path mesh_path;  // filled: `mesh` seen from the scene file's folder
  int material_id = 0;              // filled: index into SceneConfig::materials
  TableOrigin origin;               // origin.of("mesh") is where to point when the mesh is bad
};

// A collider is here at a time (collider_motion.h).
struct ColliderKeyframe {
  double time_s = 0.0;
  Vec3d center = Vec3d::Zero();      // m; filled unless given: the collider's
  Vec3d rotate_deg = Vec3d::Zero();  // filled unless given: the collider's
  TableOrigin origin;
};

struct Collider {
  ColliderShape shape = ColliderShape::kSphere;
  Vec3d center = Vec3d::Zero();     // m, at t = 0; plane: one of its points; filled for a mesh: `translate`
  double radius = 0.0;              // m; sphere, capsule; a solver sets that of a mesh around its centre
  Vec3d half_size = Vec3d::Zero();  // m; box
  double half_height = 0.0;         // m; capsule: from its centre to those of its ends, along y
  Vec3d normal = Vec3d::UnitY();    // plane: out of the solid; filled: of length 1
  std::string mesh;                 // this and the next four are as an Emitter's
  std::optional<double> fit;
  double scale = 1.0;
  Vec3d translate = Vec3d::Zero();
  bool strict = false;
  Vec3d rotate_deg = Vec3d::Zero();              // box, capsule, mesh, at t = 0; about x, then y, then z
  Vec3d velocity = Vec3d::Zero();                // m/s
  Vec3d angular_velocity_rad_s = Vec3d::Zero();  // about the centre
  std::vector<ColliderKeyframe> keyframes;       // none, or two at least, whose times go up
  BoundaryKind boundary = BoundaryKind::kSeparate;
  double friction = 0.0;   // Coulomb
  bool tractions = false;  // box and plane: the table of numbers has those on its sides

  std::filesystem::path mesh_path;  // filled: `mesh` seen from the scene file's folder
  TableOrigin origin;
};

// Particles that come into this box leave the simulation.
struct Outflow {
  Vec3d center = Vec3d::Zero();     // m
  Vec3d half_size = Vec3d::Zero();  // m
  TableOrigin origin;
};

// The camera is here at a time; it moves from one keyframe to the next.
struct CameraKeyframe {
  double time_s = 0.0;
  Vec3d position = Vec3d::Zero();  // m
  Vec3d target = Vec3d::Zero();    // m; filled unless given: the camera's
  double fov_deg = 0.0;            // vertical; filled unless given: the camera's
  TableOrigin origin;
};

struct Camera {
  Vec3d position = Vec3d::Zero();         // m; filled unless given: sees the whole domain
  Vec3d target = Vec3d::Zero();           // m; filled unless given: the domain's middle
  double fov_deg = 30.0;                  // vertical
  std::vector<CameraKeyframe> keyframes;  // times go up
  TableOrigin origin;
};

// Particles' files have these attributes beside those that they always have.
struct OutputFields {
  bool pressure = false;   // Pa
  bool von_mises = false;  // Pa
  bool stress = false;     // Pa
  bool strain = false;
  bool velocity = false;  // m/s; of the grid, in volumes
};

struct Output {
  int width = 1280;
  int height = 720;
  ColorBy color = ColorBy::kMaterial;
  Colormap colormap = Colormap::kViridis;
  std::optional<Vec2d>
      color_range;  // values at the colour map's two ends; each frame's own range unless given
  bool png = true;
  bool mp4 = true;  // needs ffmpeg and png
  bool particles = true;
  bool vdb = true;
  bool vtu = false;
  bool vti = false;
  OutputFields fields;
  Camera camera;
  TableOrigin origin;
};

struct SceneConfig {
  std::string name;  // filled: the file's stem unless given
  std::string description;
  int dim = 3;
  std::int64_t seed = 1;
  Vec3d gravity = {0.0, -9.81, 0.0};  // m/s^2
  Domain domain;
  Grid grid;
  Time time;
  SolverKeys solver;
  Walls walls;
  std::vector<Emitter> emitters;
  std::vector<Collider> colliders;
  std::vector<Outflow> outflows;
  Output output;

  std::vector<MaterialParameters> materials;  // filled: the distinct ones, in order of first use
  std::filesystem::path file;                 // filled: what was loaded; empty when parsed from text
  std::string text;                           // filled: of the file, which may be a pipe and is read once
  TableOrigin origin;

  double dx_m() const;       // side of a grid cell
  Vec3d size_cells() const;  // the domain's sides, in cells: whole numbers where they are up to rounding
  Vec3i cells() const;       // cells that cover the domain; 1 along z in 2-D
  bool has_inflow() const;
  bool has_flow() const;  // an inflow or an outflow
};

Schema<SceneConfig> scene_schema();

// docs/scene.md, and what `coppice list --keys` prints.
std::string describe_scene();

// Errors: kUsage for what is wrong in the file or an override, kIo when the file cannot be read.
SceneConfig load_scene(const std::filesystem::path& path, std::span<const SceneOverride> overrides = {});
// The same for text; meshes are looked up beside `file_name`.
SceneConfig parse_scene(std::string_view text, const std::string& file_name,
                        std::span<const SceneOverride> overrides = {});

}  // namespace coppice::scene
