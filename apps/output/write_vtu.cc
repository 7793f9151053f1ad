// Checks what a program gives, and has it written.
#include "apps/output/write_vtu.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace coppice::output {

void write_vtu(const std::string& path, const std::vector<ParticleValues>& attributes,
               const VtuOptions& options) {
  const detail::CheckedParticles checked = detail::check_particles(path, attributes);
  for (const auto& [name, components] : options.component_names) {
    const auto of = std::ranges::find(checked.attributes, name, &PlyAttribute::name);
    const int expected = of == checked.attributes.end() ? 0 : of->components;
    if (static_cast<int>(components.size()) == expected) continue;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("attribute '{}' has {} names of components, expected {}", name, components.size(),
                            expected),
                {path});
  }
  write_particles_vtu(path, checked.attributes, checked.count, options);
}

}  // namespace coppice::output
