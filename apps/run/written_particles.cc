// Lists attributes (see written_particles.h).
#include "apps/run/written_particles.h"

#include <array>
#include <utility>

#include "apps/mpm/snapshot_parts.h"
#include "apps/run/particle_fields.h"

namespace coppice {
namespace {

// Indices are bytes in files where all there may be are.
constexpr size_t kMostOfBytes = 256;
std::vector<uint8_t> as_bytes(const std::vector<uint32_t>& values, size_t end) {
  if (end > kMostOfBytes) return {};
  return {values.begin(), values.end()};
}
PlyAttribute indices(std::string name, const std::vector<uint32_t>& values, const std::vector<uint8_t>& bytes,
                     size_t end) {
  if (end > kMostOfBytes) return {std::move(name), PlyType::kInt32, 1, values.data()};
  return {std::move(name), PlyType::kUint8, 1, bytes.data()};
}

// Says at which place of ours (xx xy xz yy yz zz) each component of VTK's is.
constexpr std::array<size_t, 6> kVtkOrder3{0, 3, 5, 1, 4, 2};
constexpr std::array<size_t, 3> kVtkOrder2{0, 2, 1};  // of xx xy yy

std::vector<float> in_vtk_order(const std::vector<float>& values, int dim) {
  const std::span<const size_t> order =
      dim == 3 ? std::span<const size_t>(kVtkOrder3) : std::span<const size_t>(kVtkOrder2);
  std::vector<float> reordered(values.size());
  for (size_t i = 0; i < values.size(); ++i)
    reordered[i] = values[i - i % order.size() + order[i % order.size()]];
  return reordered;
}

}  // namespace

WrittenParticles::WrittenParticles(const scene::SceneConfig& scene, const mpm::ParticleSnapshot& p)
    : scene_(scene),
      particles_(p),
      materials_(as_bytes(p.material, scene.materials.size())),
      emitters_(as_bytes(p.emitter, scene.emitters.size())) {
  const scene::Output& output = scene.output;
  const int symmetric = scene.dim * (scene.dim + 1) / 2;
  if (mpm::writes_pressure(output))
    fields_.push_back({"pressure", 1, pressures(p, scene.dim), false, output.fields.pressure});
  if (mpm::writes_von_mises(output))
    fields_.push_back({"von_mises", 1, von_mises_stresses(p, scene.dim), false, output.fields.von_mises});
  if (output.fields.stress) fields_.push_back({"stress", symmetric, p.stress, true, true});
  if (output.fields.strain) fields_.push_back({"strain", symmetric, strains(p, scene.dim), true, true});
  const bool is_for_vtk = output.vtu || output.vti || output.vdb;
  for (const Field& field : fields_) {
    reordered_.emplace_back();
    if (is_for_vtk && field.is_symmetric) reordered_.back() = in_vtk_order(field.values, scene.dim);
  }
}

PlyAttribute WrittenParticles::material() const {
  return indices("material", particles_.material, materials_, scene_.materials.size());
}
PlyAttribute WrittenParticles::emitter() const {
  return indices("emitter", particles_.emitter, emitters_, scene_.emitters.size());
}

std::vector<PlyAttribute> WrittenParticles::all() const {
  const mpm::ParticleSnapshot& p = particles_;
  const int matrix = scene_.dim * scene_.dim;
  std::vector<PlyAttribute> attributes{
      {"position", PlyType::kFloat32, 3, p.position.data()},
      {"velocity", PlyType::kFloat32, 3, p.velocity.data()},
      {"volume_ratio", PlyType::kFloat32, 1, p.volume_ratio.data()},
      {"material_scalar", PlyType::kFloat32, 1, p.material_scalar.data()},
      {"affine", PlyType::kFloat32, matrix, p.affine.data()},
      {"deformation", PlyType::kFloat32, matrix, p.deformation.data()},
      {"mass", PlyType::kFloat32, 1, p.mass.data()},
      material(),
      emitter(),
  };
  for (const Field& field : fields_)
    attributes.push_back({field.name, PlyType::kFloat32, field.components, field.values.data()});
  return attributes;
}

std::vector<PlyAttribute> WrittenParticles::shown() const {
  const mpm::ParticleSnapshot& p = particles_;
  std::vector<PlyAttribute> attributes{{"position", PlyType::kFloat32, 3, p.position.data()},
                                       {"velocity", PlyType::kFloat32, 3, p.velocity.data()},
                                       {"volume_ratio", PlyType::kFloat32, 1, p.volume_ratio.data()},
                                       {"mass", PlyType::kFloat32, 1, p.mass.data()},
                                       material(),
                                       emitter()};
  for (size_t f = 0; f < fields_.size(); ++f) {
    const Field& field = fields_[f];
    const std::vector<float>& values = field.is_symmetric ? reordered_[f] : field.values;
    attributes.push_back({field.name, PlyType::kFloat32, field.components, values.data()});
  }
  return attributes;
}

std::vector<PlyAttribute> WrittenParticles::averaged() const {
  std::vector<PlyAttribute> attributes;
  const std::vector<PlyAttribute> shown = this->shown();
  for (size_t f = 0; f < fields_.size(); ++f)
    if (fields_[f].is_named) attributes.push_back(shown[shown.size() - fields_.size() + f]);
  return attributes;
}

std::map<std::string, std::vector<std::string>> WrittenParticles::component_names() const {
  std::map<std::string, std::vector<std::string>> names;
  for (const Field& field : fields_) {
    if (!field.is_symmetric) continue;
    if (scene_.dim == 3)
      names[field.name] = {"xx", "yy", "zz", "xy", "yz", "xz"};
    else
      names[field.name] = {"xx", "yy", "xy"};
  }
  return names;
}

}  // namespace coppice
