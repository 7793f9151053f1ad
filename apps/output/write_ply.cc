// Checks what a program gives, and has it written.
#include "apps/output/write_ply.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "core/error.h"

namespace coppice::output {
namespace {

void check_finite(const std::string& path, const PlyAttribute& a, size_t count) {
  if (a.type != PlyType::kFloat32) return;
  for (size_t i = 0; i < count; ++i) {
    const auto* particle = static_cast<const std::byte*>(a.data) + i * a.particle_stride_bytes;
    for (int c = 0; c < a.components; ++c) {
      float value = 0;
      std::memcpy(&value, particle + c * sizeof value, sizeof value);
      if (std::isfinite(value)) continue;
      throw Error(ErrorCode::kNumeric,
                  fmt::format("attribute '{}' of particle {} has the value {}, expected finite numbers",
                              a.name, i, value),
                  {path});
    }
  }
}

}  // namespace

detail::CheckedParticles detail::check_particles(const std::string& path,
                                                 const std::vector<ParticleValues>& attributes) {
  CheckedParticles checked;
  for (const ParticleValues& values : attributes) {
    const ParticleValues& first = attributes.front();
    if (values.count() != first.count()) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("attribute '{}' has {} values, expected {}, as many as '{}' has",
                              values.attribute().name, values.count(), first.count(), first.attribute().name),
                  {path});
    }
    check_finite(path, values.attribute(), values.count());
    checked.attributes.push_back(values.attribute());
  }
  checked.count = attributes.empty() ? 0 : static_cast<int64_t>(attributes.front().count());
  return checked;
}

void write_ply(const std::string& path, const std::vector<ParticleValues>& attributes,
               const std::string& of) {
  const detail::CheckedParticles checked = detail::check_particles(path, attributes);
  write_particles_ply(path, checked.attributes, checked.count, of);
}

}  // namespace coppice::output
