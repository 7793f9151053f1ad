// An earlier run's frames (see recorded_run.h).
#include "apps/run/recorded_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <vector>

#include "apps/output/output_folder.h"
#include "apps/run/frame_view.h"
#include "apps/run/scene_points.h"
#include "core/error.h"

namespace coppice {
namespace {

// Returns the values of a column of bytes or ints.
std::vector<uint32_t> indices_of(const ParticleColumn& column) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(column.bytes.data());
  if (column.type == PlyType::kUint8) return {bytes, bytes + column.bytes.size()};
  std::vector<uint32_t> values(column.bytes.size() / sizeof(uint32_t));
  std::memcpy(values.data(), bytes, values.size() * sizeof(uint32_t));
  return values;
}

void check_indices(const ParticleTable& table, const std::string& name, size_t end, const std::string& file) {
  const ParticleColumn* const column = table.find(name);
  if (column == nullptr || column->type == PlyType::kFloat32 || column->components != 1)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} has no uchar or int '{}' for its particles", file, name));
  const std::vector<uint32_t> values = indices_of(*column);
  if (values.empty()) return;
  if (const uint32_t most = *std::ranges::max_element(values); most >= end) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} has particles of {} {}, and the scene has {}: they are another scene's", file,
                            name, most, end));
  }
}

void check_numbers(const ParticleTable& table, const std::string& name, int components,
                   const std::string& file) {
  const ParticleColumn* const column = table.find(name);
  if (column != nullptr && column->type == PlyType::kFloat32 && column->components == components) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{} has no '{}' of {} floats for its particles", file, name, components));
}

// Returns the attribute that has what the colour shows, where that is a number that is not computed.
const char* scalar_column(scene::ColorBy color) {
  if (color == scene::ColorBy::kPressure) return "pressure";
  if (color == scene::ColorBy::kVonMises) return "von_mises";
  return "volume_ratio";
}

// Files have this where the run was asked for it.
void check_color(const ParticleTable& table, scene::ColorBy color, const std::string& file) {
  const char* const name = scalar_column(color);
  if (table.find(name) != nullptr) return check_numbers(table, name, 1, file);
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("{} has no '{}', which the colour shows; run the scene with output.fields.{} = true", file,
                  name, name));
}

}  // namespace

std::vector<int64_t> recorded_frames(const std::filesystem::path& folder, std::optional<int64_t> last) {
  std::vector<int64_t> frames;
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  if (error)
    throw Error(ErrorCode::kNotFound,
                fmt::format("cannot read the folder {}: {}", folder.string(), error.message()));
  for (const auto& entry : entries) {
    const std::string name = entry.path().filename().string();
    const size_t digits = name.find_first_of("0123456789");
    int64_t frame = 0;
    if (digits == std::string::npos) continue;
    std::from_chars(name.data() + digits, name.data() + name.size(), frame);
    if (entry.path() == std::filesystem::path(particles_ply_path(folder.string(), frame)))
      frames.push_back(frame);
  }
  std::ranges::sort(frames);
  if (frames.empty()) {
    throw Error(
        ErrorCode::kNotFound,
        fmt::format("no particles (particles_0000.ply ...) of an earlier run are in {}", folder.string()));
  }
  if (last && *last < frames.front()) {
    throw Error(ErrorCode::kUsage, fmt::format("the first frame in {} is {}; --frames {} leaves none",
                                               folder.string(), frames.front(), *last));
  }
  if (last) frames.erase(std::ranges::upper_bound(frames, *last), frames.end());
  return frames;
}

RecordedRun::RecordedRun(const std::filesystem::path& folder, scene::SceneConfig scene,
                         std::vector<scene::SceneOverride> overrides, std::optional<int64_t> last)
    : folder_(folder),
      parameters_(std::move(scene), std::move(overrides)),
      frames_(recorded_frames(folder, last)) {
  wait_load(0);
}

// All of a frame or nothing is taken over.
void RecordedRun::wait_load(size_t index) {
  const std::string file = particles_ply_path(folder_.string(), frames_[index]);
  ParticleTable table = read_particles_ply(file);
  const scene::SceneConfig& scene = parameters_.wanted();
  if (const std::string own = describe_particles(scene); !table.of.empty() && table.of != own) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format(
            "{} has particles of another scene: {}, and not {}; name the scene that was run, with its "
            "--set",
            file, table.of, own));
  }
  // The flat ones of earlier versions, which do not say it.
  check_numbers(table, "affine", scene.dim * scene.dim, file);
  check_numbers(table, "position", 3, file), check_numbers(table, "velocity", 3, file);
  check_numbers(table, "volume_ratio", 1, file);
  check_color(table, scene.output.color, file);
  check_indices(table, "material", scene.materials.size(), file);
  check_indices(table, "emitter", scene.emitters.size(), file);
  particles_ = std::move(table), index_ = index;
  fastest_m_s_ = 0;
  const std::span<const float> v = particles_.floats("velocity");
  for (size_t i = 0; i + 2 < v.size(); i += 3)
    fastest_m_s_ = std::max(fastest_m_s_, std::hypot(static_cast<double>(v[i]), v[i + 1], v[i + 2]));
}

bool RecordedRun::wait_advance(int) {
  wait_load((index_ + 1) % frames_.size());
  ++steps_;
  return true;
}

void RecordedRun::wait_reset() {
  wait_load(0);
  steps_ = 0;
}

double RecordedRun::time_s() const {
  return static_cast<double>(frames_[index_]) * parameters_.wanted().time.frame_dt_s;
}

void RecordedRun::wait_pack(viewer::Snapshot& s) {
  const scene::SceneConfig& scene = parameters_.wanted();
  s.dim = scene.dim;
  s.domain = {scene.domain.min.cast<float>(), scene.domain.max.cast<float>()};
  s.colliders = colliders_at(scene, time_s());
  s.points.resize(1);
  viewer::PointSet& p = s.points[0];
  const mpm::PointValue value = describe_points(scene, p);
  // wait_load() has looked at their types and values.
  const auto positions = particles_.floats("position"), velocities = particles_.floats("velocity"),
             scalars = particles_.floats(scalar_column(scene.output.color));
  const auto materials = indices_of(*particles_.find("material")),
             emitters = indices_of(*particles_.find("emitter"));
  const auto vector_at = [](std::span<const float> v, size_t i) {
    return Vec3f(v[3 * i], v[3 * i + 1], v[3 * i + 2]);
  };
  const auto value_at = [&](size_t i) -> float {
    switch (value) {
      case mpm::PointValue::kMaterial:
        return static_cast<float>(scene::kind_of_material(scene.materials[materials[i]]));
      case mpm::PointValue::kEmitter:
        return static_cast<float>(emitters[i]);
      case mpm::PointValue::kSpeed:
        return vector_at(velocities, i).norm();
      case mpm::PointValue::kPressure:
      case mpm::PointValue::kVonMises:
      case mpm::PointValue::kVolumeRatio:
        break;
    }
    return scalars[i];
  };
  p.points.resize(static_cast<size_t>(particles_.n_particles));
  p.looks.resize(p.points.size());
  for (size_t i = 0; i < p.points.size(); ++i) {
    p.points[i] = {vector_at(positions, i), value_at(i)};
    p.looks[i] = look_of(scene::kind_of_material(scene.materials[materials[i]]), scene.output.color);
  }
  s.readings = {{"particles", static_cast<double>(p.points.size()), ""},
                {"frame", static_cast<double>(frames_[index_]), ""},
                {"largest speed", fastest_m_s_, "m/s"}};
  s.playback = viewer::Playback{frames_.front(), frames_.back(), frames_[index_]};
  s.volumes.clear(), s.trees.clear(), s.cells.clear(), s.grid_values.clear();
}

std::vector<viewer::Parameter> RecordedRun::parameters() const {
  std::vector<viewer::Parameter> all = parameters_.list();
  std::erase_if(all, [](const viewer::Parameter& p) { return !p.path.starts_with("output."); });
  return all;
}

void RecordedRun::wait_set(const std::string& path, const std::string& value) {
  if (path == viewer::kPlaybackPath) {
    int64_t frame = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), frame);
    if (error != std::errc() || end != value.data() + value.size() || frame < frames_.front() ||
        frame > frames_.back()) {
      throw Error(ErrorCode::kUsage, fmt::format("'{}' must be a frame from {} to {}, not {}", path,
                                                 frames_.front(), frames_.back(), value));
    }
    return wait_load(static_cast<size_t>(std::ranges::lower_bound(frames_, frame) - frames_.begin()));
  }
  if (!path.starts_with("output."))
    throw Error(ErrorCode::kUsage, fmt::format("'{}' cannot be changed in what was computed earlier", path));
  SceneParameters changed = parameters_;
  changed.set(path, value);
  check_color(particles_, changed.wanted().output.color,
              particles_ply_path(folder_.string(), frames_[index_]));
  parameters_.set(path, value);
}

}  // namespace coppice
