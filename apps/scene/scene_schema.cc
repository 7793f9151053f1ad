// The keys of a scene file, declared once: names, types, units, ranges, and the sentences of the reference.
#include <array>

#include "apps/scene/scene.h"

namespace coppice::scene {
namespace {

using std::string_view;

constexpr const char* kDensityDoc = "mass per volume at rest";
constexpr const char* kStiffnessDoc = "stiffness; the time step shrinks with its square root";

// Single precision in the solver keeps about 0.06 m at this distance: far beyond any sensible scene.
constexpr Bounds kPlace{.min = -1.0e6, .max = 1.0e6};
constexpr Bounds kLength{.min = 0.0, .max = 1.0e6, .min_excluded = true};
constexpr Bounds kSeed{.min = 0.0, .max = 9007199254740992.0};  // 2^53

Condition only_if_shape(std::vector<std::string> shapes) { return {"shape", std::move(shapes)}; }
FieldOptions only_with_material(std::string material) {
  return {.only_if = {"material", {std::move(material)}}};
}

Schema<Domain> domain_schema() {
  Schema<Domain> schema(
      "The box in which everything happens. Its sides are the walls, wherever they are between the grid's "
      "nodes. It lies near 0: positions are 32-bit "
      "floats, of which a cell must have 16 per axis.");
  schema
      .field("min", &Domain::min, "the corner with the smallest coordinates", {.unit = "m", .bounds = kPlace})
      .field("max", &Domain::max, "the corner with the largest coordinates", {.unit = "m", .bounds = kPlace});
  return schema;
}

Schema<Grid> grid_schema() {
  Schema<Grid> schema("The background grid. Its cells are cubes (squares in 2-D).");
  schema.field("resolution", &Grid::resolution, "cells along the domain's longest side",
               {.bounds = between(8, 4096)});
  return schema;
}

Schema<Time> time_schema() {
  Schema<Time> schema("How long the simulation runs, and how large its steps may be.");
  schema
      .field("frames", &Time::frames,
             "how many frames to simulate and write; 0 loads the scene and compiles its kernels",
             {.bounds = between(0, 100000)})
      .field("fps", &Time::fps, "frames per simulated second",
             {.unit = "1/s", .bounds = between(0.001, 1.0e6)})
      .field("frame_dt_s", &Time::frame_dt_s, "time from frame to frame",
             {.unit = "s",
              .bounds = between(1.0e-6, 1000.0),
              .conflicts_with = "fps",
              .default_text = "1 / fps"})
      .field("cfl", &Time::cfl, "a step moves no particle and no sound wave further than this part of a cell",
             {.bounds = {.min = 0.0, .max = 1.0, .min_excluded = true}, .acts = Acts::kNow})
      .field("max_dt_s", &Time::max_dt_s, "the longest time step",
             {.unit = "s", .bounds = kLength, .acts = Acts::kNow});
  return schema;
}

Schema<SolverKeys> solver_schema() {
  Schema<SolverKeys> schema("How the solver works.");
  schema
      .field("transfer", &SolverKeys::transfer,
             "how particles and grid exchange motion: `apic` damps what is a few cells wide, `aflip` hardly "
             "does, and costs more; docs/materials.md has how much")
      .field("flip", &SolverKeys::flip,
             "share of the motion that the grid is too coarse for which a particle keeps in each step",
             {.bounds = between(0.0, 1.0), .only_if = {"transfer", {"aflip"}}});
  return schema;
}

Schema<Walls> walls_schema() {
  Schema<Walls> schema(
      "What the domain's sides do to the material: `stick` holds it, `slip` lets it slide along but not "
      "leave, "
      "`separate` lets it slide and leave.");
  schema.field("all", &Walls::all, "for every side that is not named below", {.acts = Acts::kNow})
      .field("friction", &Walls::friction, "Coulomb friction of the sides that do not stick",
             {.bounds = between(0, 10), .acts = Acts::kNow})
      .field("x_min", &Walls::x_min, "left", {.default_text = "`all`", .acts = Acts::kNow})
      .field("x_max", &Walls::x_max, "right", {.default_text = "`all`", .acts = Acts::kNow})
      .field("y_min", &Walls::y_min, "floor", {.default_text = "`all`", .acts = Acts::kNow})
      .field("y_max", &Walls::y_max, "ceiling", {.default_text = "`all`", .acts = Acts::kNow})
      .field("z_min", &Walls::z_min, "back; 3-D only", {.default_text = "`all`", .acts = Acts::kNow})
      .field("z_max", &Walls::z_max, "front; 3-D only", {.default_text = "`all`", .acts = Acts::kNow});
  return schema;
}

template <class Parameters>
Schema<Parameters>& add_density(Schema<Parameters>& schema) {
  return schema.field("density_kg_m3", &Parameters::density_kg_m3, kDensityDoc,
                      {.unit = "kg/m^3", .bounds = between(0.01, 1.0e5)});
}

template <class Parameters>
Schema<Parameters>& add_elasticity(Schema<Parameters>& schema) {
  return schema
      .field("youngs_modulus_Pa", &Parameters::youngs_modulus_Pa, kStiffnessDoc,
             {.unit = "Pa", .bounds = between(1.0, 1.0e12)})
      .field("poisson_ratio", &Parameters::poisson_ratio,
             "how far the material bulges when pressed; 0.5 would keep its volume",
             {.bounds = between(0.0, 0.49)});
}

Schema<SnowParameters> snow_schema() {
  Schema<SnowParameters> schema(
      "Snow: elastic up to a limit, then it breaks or compacts, and hardens as it compacts.");
  add_density(schema);
  add_elasticity(schema)
      .field("theta_c", &SnowParameters::theta_c, "compression at which it yields",
             {.bounds = between(0.0, 0.5)})
      .field("theta_s", &SnowParameters::theta_s, "stretch at which it breaks", {.bounds = between(0.0, 0.5)})
      .field("hardening", &SnowParameters::hardening, "how fast it stiffens as it compacts",
             {.bounds = between(0, 30)});
  return schema;
}

Schema<JellyParameters> jelly_schema() {
  Schema<JellyParameters> schema(
      "Jelly: compressible neo-Hookean elasticity, which resists the harder the flatter it is pressed.");
  add_density(schema);
  add_elasticity(schema);
  return schema;
}

Schema<WaterParameters> water_schema() {
  Schema<WaterParameters> schema(
      "Water: weakly compressible. Its pressure follows from how full the space around a particle is, so "
      "that "
      "water keeps its volume over any time, also beside materials of other densities.");
  add_density(schema)
      .field("bulk_modulus_Pa", &WaterParameters::bulk_modulus_Pa, kStiffnessDoc,
             {.unit = "Pa", .bounds = between(1.0, 1.0e12)})
      .field("gamma", &WaterParameters::gamma, "exponent of the equation of state",
             {.bounds = between(1.0, 10.0)})
      .field("viscosity_Pa_s", &WaterParameters::viscosity_Pa_s,
             "Newtonian viscosity; a large one makes the time step shrink with the square of the cells",
             {.unit = "Pa s", .bounds = between(0.0, 1.0e9)})
      .field("tension", &WaterParameters::tension,
             "share of the negative pressure that holds stretched water together; with 0 a splash falls "
             "apart where it is "
             "stretched by 0.06",
             {.bounds = between(0.0, 1.0)});
  return schema;
}

Schema<SandParameters> sand_schema() {
  Schema<SandParameters> schema(
      "Dry sand: resists pressure and, by friction, shear; nothing holds it together. The friction angle phi "
      "is "
      "that of plane flow, in 2-D and 3-D. A long slope flows on where it is steeper than atan(sin(phi)), "
      "29.8 "
      "degrees for 35, and a heap that was poured or has slumped comes to rest at or up to a third below "
      "that: "
      "it arrives with some speed.");
  add_density(schema);
  add_elasticity(schema).field("friction_angle_deg", &SandParameters::friction_angle_deg,
                               "angle of internal friction in plane flow",
                               {.unit = "degrees", .bounds = between(0.0, 60.0)});
  return schema;
}

template <class Parameters>
Schema<Parameters>& add_yield_stress(Schema<Parameters>& schema) {
  return schema.field("yield_stress_Pa", &Parameters::yield_stress_Pa, "shear stress at which it yields",
                      {.unit = "Pa", .bounds = between(0.0, 1.0e12)});
}

Schema<ClayParameters> clay_schema() {
  Schema<ClayParameters> schema(
      "Clay: elastic until a shear stress of its own, whatever presses on it, then it keeps the shape that "
      "it was "
      "given. A vertical face stands up to a height of about 3.8 times the yield stress by density and "
      "gravity.");
  add_density(schema);
  add_yield_stress(add_elasticity(schema));
  return schema;
}

Schema<MudParameters> mud_schema() {
  Schema<MudParameters> schema(
      "Mud: a stiff body below its yield stress, a viscous fluid beyond it (Bingham's). A layer flows down a "
      "slope "
      "where density times gravity times its depth times sin(slope) is more than the yield stress.");
  add_density(schema);
  add_yield_stress(add_elasticity(schema))
      .field("viscosity_Pa_s", &MudParameters::viscosity_Pa_s,
             "how much the shear stress beyond the yield stress grows with the rate of shear",
             {.unit = "Pa s", .bounds = between(0.0, 1.0e9)});
  return schema;
}

void add_emitter_shapes(Schema<Emitter>& schema) {
  const Condition mesh_only = only_if_shape({"mesh"});
  schema
      .field("shape", &Emitter::shape, "what is filled with particles; cylinder and mesh in 3-D only",
             {.required = true})
      .field("center", &Emitter::center, "middle of the shape",
             {.unit = "m",
              .bounds = kPlace,
              .required = true,
              .only_if = only_if_shape({"sphere", "box", "cylinder"})})
      .field("radius", &Emitter::radius, "radius",
             {.unit = "m",
              .bounds = kLength,
              .required = true,
              .only_if = only_if_shape({"sphere", "cylinder"})})
      .field("half_size", &Emitter::half_size, "half of each edge",
             {.unit = "m", .bounds = kLength, .required = true, .only_if = only_if_shape({"box"})})
      .field("half_height", &Emitter::half_height, "half of the height along the cylinder's axis, which is y",
             {.unit = "m", .bounds = kLength, .required = true, .only_if = only_if_shape({"cylinder"})})
      .field("mesh", &Emitter::mesh, "OBJ or PLY file, seen from the scene file's folder",
             {.required = true, .only_if = mesh_only})
      .field("fit", &Emitter::fit,
             "size the longest side of the mesh's bounds to this, and put their middle at `translate`",
             {.unit = "m", .bounds = kLength, .only_if = mesh_only, .conflicts_with = "scale"})
      .field("scale", &Emitter::scale, "size factor", {.bounds = kLength, .only_if = mesh_only})
      .field("translate", &Emitter::translate, "where the mesh is moved, after it was scaled and rotated",
             {.unit = "m", .bounds = kPlace, .only_if = mesh_only})
      .field("strict", &Emitter::strict, "refuse a mesh that has open edges instead of warning",
             {.only_if = mesh_only})
      .field("rotate_deg", &Emitter::rotate_deg, "rotation about x, then y, then z",
             {.unit = "degrees",
              .bounds = kPlace,
              .only_if = only_if_shape({"box", "cylinder", "mesh"}),
              .vector = VectorRule::kRotation});
}

Schema<Inflow> inflow_schema() {
  Schema<Inflow> schema(
      "The emitter's material keeps streaming through its shape with its velocity: the shape is filled when "
      "it "
      "begins, and what moves out of it is followed by more. So many kg/s come as the density times the "
      "velocity times the shape's cross-section, whatever is in the way; a mesh's is the area that it covers "
      "as "
      "seen along the velocity, and it must be closed: its hollows are filled by what passes through them. "
      "A wall behind it must not be one that sticks or that only lets slide. Where something is already when "
      "it begins, or a collider is, or an emitter's inflow that is declared before, nothing is added.");
  schema.field("from_s", &Inflow::from_s, "when it begins", {.unit = "s", .bounds = between(0, 1e9)})
      .field("until_s", &Inflow::until_s, "when it ends",
             {.unit = "s", .bounds = between(0, 1e9), .default_text = "never"});
  return schema;
}

Schema<Emitter> emitter_schema() {
  Schema<Emitter> schema(
      "A body of material that is there at the start. At least one is needed. What an earlier emitter fills "
      "is left out of a later one, and so is what a collider fills; the log says how many particles that "
      "are. "
      "A shape that nothing cuts has exactly the mass of its volume times its density, a mesh if it is "
      "closed: all its particles' masses are scaled for that. An inflow's are not: its rate is exact over "
      "time, and what fills the shape when it begins may lack a layer of particles.");
  add_emitter_shapes(schema);
  schema
      .field("material", &Emitter::material, "what it is made of; docs/materials.md has the laws",
             {.required = true})
      .field("velocity", &Emitter::velocity, "velocity at the start", {.unit = "m/s", .bounds = kPlace})
      .field("particles_per_cell", &Emitter::particles_per_cell, "how densely it is sampled",
             {.bounds = between(1, 1000), .default_text = "4 in 2-D, 8 in 3-D"})
      .field(
          "seed", &Emitter::seed, "seed of the particles' positions",
          {.bounds = kSeed, .default_text = "the scene's seed plus the number of emitters before this one"})
      .field(
          "stiffness_spread", &Emitter::stiffness_spread,
          "particles' stiffness is drawn evenly from 1 - this to 1 + this times the material's, by the seed: "
          "snow then breaks into lumps; it needs hardening",
          {.bounds = between(0, 0.9), .only_if = {"material", {"snow"}}})
      .table("inflow", &Emitter::inflow, inflow_schema())
      .table("snow", &Emitter::snow, snow_schema(), only_with_material("snow"))
      .table("jelly", &Emitter::jelly, jelly_schema(), only_with_material("jelly"))
      .table("water", &Emitter::water, water_schema(), only_with_material("water"))
      .table("sand", &Emitter::sand, sand_schema(), only_with_material("sand"))
      .table("clay", &Emitter::clay, clay_schema(), only_with_material("clay"))
      .table("mud", &Emitter::mud, mud_schema(), only_with_material("mud"));
  return schema;
}

Schema<ColliderKeyframe> collider_keyframe_schema() {
  Schema<ColliderKeyframe> schema(
      "Where a collider is at a time. Between two of them it moves with constant velocity, and turns with "
      "constant spin about its centre; before the first and behind the last it rests. It turns the shortest "
      "way; where only one angle changes and those behind it are 0, by all of that change.");
  schema
      .field("time", &ColliderKeyframe::time_s, "when, in simulated time; later than the one before",
             {.unit = "s", .bounds = between(0, 1e9), .required = true})
      .field("center", &ColliderKeyframe::center, "middle then; of a mesh: `translate`",
             {.unit = "m", .bounds = kPlace, .default_text = "the collider's"})
      .field("rotate_deg", &ColliderKeyframe::rotate_deg, "rotation then about x, then y, then z",
             {.unit = "degrees",
              .bounds = kPlace,
              .default_text = "the collider's",
              .vector = VectorRule::kRotation});
  return schema;
}

void add_collider_shapes(Schema<Collider>& schema) {
  const Condition mesh_only = only_if_shape({"mesh"});
  schema
      .field("shape", &Collider::shape, "its shape; a plane is solid behind it, mesh in 3-D only",
             {.required = true})
      .field("center", &Collider::center, "middle at the start; of a plane any of its points",
             {.unit = "m",
              .bounds = kPlace,
              .required = true,
              .only_if = only_if_shape({"sphere", "box", "plane", "capsule"})})
      .field(
          "radius", &Collider::radius, "radius",
          {.unit = "m", .bounds = kLength, .required = true, .only_if = only_if_shape({"sphere", "capsule"})})
      .field("half_size", &Collider::half_size, "half of each edge",
             {.unit = "m", .bounds = kLength, .required = true, .only_if = only_if_shape({"box"})})
      .field("half_height", &Collider::half_height,
             "from the middle to the centres of the capsule's round ends, along its axis, which is y",
             {.unit = "m", .bounds = kLength, .required = true, .only_if = only_if_shape({"capsule"})})
      .field("normal", &Collider::normal, "direction out of the solid, of any length",
             {.bounds = kPlace, .required = true, .only_if = only_if_shape({"plane"})})
      .field("mesh", &Collider::mesh,
             "OBJ or PLY file, seen from the scene file's folder; parts thinner than half a cell may be lost",
             {.required = true, .only_if = mesh_only})
      .field("fit", &Collider::fit,
             "size the longest side of the mesh's bounds to this, and put their middle at `translate`",
             {.unit = "m", .bounds = kLength, .only_if = mesh_only, .conflicts_with = "scale"})
      .field("scale", &Collider::scale, "size factor", {.bounds = kLength, .only_if = mesh_only})
      .field("translate", &Collider::translate,
             "where the mesh is moved, after it was scaled and rotated; it turns about this point",
             {.unit = "m", .bounds = kPlace, .only_if = mesh_only})
      .field("strict", &Collider::strict, "refuse a mesh that has open edges instead of warning",
             {.only_if = mesh_only})
      .field("rotate_deg", &Collider::rotate_deg, "rotation at the start about x, then y, then z",
             {.unit = "degrees",
              .bounds = kPlace,
              .only_if = only_if_shape({"box", "capsule", "mesh"}),
              .vector = VectorRule::kRotation});
}

Schema<Collider> collider_schema() {
  Schema<Collider> schema(
      "A rigid body that moves as told and is not pushed by the material. What comes to it from outside "
      "stays outside, however thin and fast it is, as long as colliders and walls leave room for it. At most "
      "16.");
  add_collider_shapes(schema);
  schema
      .field("velocity", &Collider::velocity, "velocity of the middle, where there are no keyframes",
             {.unit = "m/s", .bounds = kPlace})
      .field("angular_velocity_rad_s", &Collider::angular_velocity_rad_s,
             "rotation about the middle, where there are no keyframes",
             {.unit = "rad/s", .bounds = kPlace, .vector = VectorRule::kRotation})
      .field("boundary", &Collider::boundary, "what its surface does to the material; see [walls]")
      .field("friction", &Collider::friction, "Coulomb friction, unless the surface sticks",
             {.bounds = between(0, 10)})
      .field(
          "tractions", &Collider::tractions,
          "the table of numbers has the mean tractions on its sides over each frame, in Pa, as "
          "`collider0_x_max_normal_Pa` (a pressure is positive) and `collider0_x_max_shear_y_Pa`, along the "
          "box's own axes: the material's force on what is nearest to that side, by the whole side's area, "
          "covered or not; within two cells of an edge its two sides share. Of a plane "
          "`collider0_normal_Pa` and `collider0_shear_x_Pa` along the world's, by its area in the domain",
          {.only_if = only_if_shape({"box", "plane"})})
      .tables("keyframe", &Collider::keyframes, collider_keyframe_schema());
  return schema;
}

Schema<Outflow> outflow_schema() {
  Schema<Outflow> schema(
      "A box that takes out what comes into it. It is two cells thick at least, and may reach beyond the "
      "domain.");
  schema.field("center", &Outflow::center, "middle", {.unit = "m", .bounds = kPlace, .required = true})
      .field("half_size", &Outflow::half_size, "half of each edge",
             {.unit = "m", .bounds = kLength, .required = true});
  return schema;
}

Schema<CameraKeyframe> keyframe_schema() {
  Schema<CameraKeyframe> schema(
      "Where the camera is at a time. It turns about its target from one to the next, and begins and ends at "
      "rest; the "
      "viewer writes them down (docs/viewer.md).");
  schema
      .field("time", &CameraKeyframe::time_s, "when, in simulated time; later than the one before",
             {.unit = "s", .bounds = between(0, 1e9), .required = true})
      .field("position", &CameraKeyframe::position, "where the camera stands",
             {.unit = "m", .bounds = kPlace, .required = true})
      .field("target", &CameraKeyframe::target, "what it looks at",
             {.unit = "m", .bounds = kPlace, .default_text = "[output.camera]'s"})
      .field("fov_deg", &CameraKeyframe::fov_deg, "vertical angle of view",
             {.unit = "degrees", .bounds = between(1, 150), .default_text = "[output.camera]'s"});
  return schema;
}

Schema<Camera> camera_schema() {
  Schema<Camera> schema(
      "From where a 3-D scene is seen, with y up. A 2-D scene is seen from the front and needs none.");
  schema
      .field("position", &Camera::position, "where the camera stands, unless there are keyframes",
             {.unit = "m",
              .bounds = kPlace,
              .default_text = "in front of the domain, so that what may happen in it is seen"})
      .field("target", &Camera::target, "what it looks at",
             {.unit = "m", .bounds = kPlace, .default_text = "the middle of what is to be seen"})
      .field("fov_deg", &Camera::fov_deg, "vertical angle of view",
             {.unit = "degrees", .bounds = between(1, 150)})
      .tables("keyframe", &Camera::keyframes, keyframe_schema());
  return schema;
}

Schema<OutputFields> fields_schema() {
  Schema<OutputFields> schema(
      "What the files of particles have beside the attributes that they always have. Files of the grid "
      "(`vdb`, "
      "`vti`) have their averages at each node, weighted by the particles' mass and by the node's share of "
      "each "
      "particle. Stress is Kirchhoff's: the volume ratio times Cauchy's. VTK files have the components of "
      "`stress` and `strain` in VTK's order, xx, yy, zz, xy, yz, xz (xx, yy, xy in 2-D), OpenVDB volumes a "
      "grid for each, `stress_xx` and so on.");
  schema
      .field("pressure", &OutputFields::pressure,
             "`pressure`: a float, minus the mean of the stress' diagonal, in Pa (Pa m in 2-D); also there "
             "where `color` shows it")
      .field(
          "von_mises", &OutputFields::von_mises,
          "`von_mises`: a float, the equivalent stress in Pa; in 2-D that of plane strain; also there where "
          "`color` shows it")
      .field("stress", &OutputFields::stress, "`stress`: xx, xy, xz, yy, yz, zz (xx, xy, yy in 2-D) in Pa")
      .field("strain", &OutputFields::strain,
             "`strain`: Green and Lagrange's (F^T F - 1) / 2 of the elastic deformation, in the same order; "
             "water has none")
      .field(
          "velocity", &OutputFields::velocity,
          "`velocity` of the grid, three floats, in OpenVDB volumes; all other files have velocities anyway");
  return schema;
}

Schema<Output> output_schema() {
  Schema<Output> schema("What is written for each frame. The table of per-frame numbers (CSV) always is.");
  schema
      .field("width", &Output::width, "width of the picture",
             {.unit = "pixels", .bounds = between(16, 16384)})
      .field("height", &Output::height, "height of the picture",
             {.unit = "pixels", .bounds = between(16, 16384)})
      .field("color", &Output::color, "what the particles' colour shows", {.acts = Acts::kNow})
      .field("colormap", &Output::colormap, "colours of all but material and emitter", {.acts = Acts::kNow})
      .field("color_range", &Output::color_range, "the values at the colour map's two ends",
             {.default_text = "the range of each frame", .vector = VectorRule::kFixed, .acts = Acts::kNow})
      .field("png", &Output::png, "a picture of each frame")
      .field("mp4", &Output::mp4, "a film of the pictures, when ffmpeg is installed")
      .field("particles", &Output::particles, "all particles with their attributes as binary PLY")
      .field("vdb", &Output::vdb, "the grid's density as an OpenVDB volume")
      .field("vtu", &Output::vtu,
             "the particles as vertices of a VTK file: velocity, mass, material, emitter, and what `fields` "
             "names; `particles.pvd` lists the frames with their times, for ParaView")
      .field("vti", &Output::vti,
             "the box of the grid's active nodes as a VTK image: density, velocity, and the averages of what "
             "`fields` names; `grid.pvd` lists the frames. A box of more than 4 GiB is an error; frame 0 has "
             "no grid yet")
      .table("fields", &Output::fields, fields_schema())
      .table("camera", &Output::camera, camera_schema());
  return schema;
}

}  // namespace

std::span<const string_view> enum_names(EmitterShape) {
  static constexpr std::array<string_view, 4> kNames{"sphere", "box", "cylinder", "mesh"};
  return kNames;
}
std::span<const string_view> enum_names(ColliderShape) {
  static constexpr std::array<string_view, 5> kNames{"sphere", "box", "plane", "capsule", "mesh"};
  return kNames;
}
std::span<const string_view> enum_names(ColorBy) {
  static constexpr std::array<string_view, 6> kNames{"material",     "emitter",  "speed",
                                                     "volume_ratio", "pressure", "von_mises"};
  return kNames;
}
std::span<const string_view> enum_names(Transfer) {
  static constexpr std::array<string_view, 2> kNames{"apic", "aflip"};
  return kNames;
}
std::span<const string_view> enum_names(Colormap) {
  static constexpr std::array<string_view, 4> kNames{"viridis", "inferno", "turbo", "gray"};
  return kNames;
}

Schema<SceneConfig> scene_schema() {
  Schema<SceneConfig> schema(
      "A scene is a TOML file. Lengths are in metres, times in seconds; y is up. A vector has as many "
      "numbers as the "
      "scene has dimensions. Any key can be set from the command line: `--set time.frames=10`, "
      "`--set emitter[0].radius=0.2`; the index behind the last adds a table, and so does "
      "`+=`: `--set 'collider+={shape=\"sphere\", center=[0.5, 0.2, 0.5], radius=0.1}'`.");
  schema.field("name", &SceneConfig::name, "what the scene is called", {.default_text = "the file's name"})
      .field("description", &SceneConfig::description, "one line for `coppice list`")
      .field("dim", &SceneConfig::dim, "number of dimensions",
             {.bounds = between(2, 3), .is_dimension = true})
      .field("seed", &SceneConfig::seed, "seed of everything random", {.bounds = kSeed})
      .field("gravity", &SceneConfig::gravity, "acceleration of everything",
             {.unit = "m/s^2", .bounds = kPlace, .acts = Acts::kNow})
      .table("domain", &SceneConfig::domain, domain_schema())
      .table("grid", &SceneConfig::grid, grid_schema())
      .table("time", &SceneConfig::time, time_schema())
      .table("solver", &SceneConfig::solver, solver_schema())
      .table("walls", &SceneConfig::walls, walls_schema())
      .tables("emitter", &SceneConfig::emitters, emitter_schema())
      .tables("collider", &SceneConfig::colliders, collider_schema())
      .tables("outflow", &SceneConfig::outflows, outflow_schema())
      .table("output", &SceneConfig::output, output_schema());
  return schema;
}

std::string describe_scene() { return "# Scene files\n\n" + scene_schema().describe(); }

}  // namespace coppice::scene
