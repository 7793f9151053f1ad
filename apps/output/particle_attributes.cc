// Checks attributes (see particle_attributes.h).
#include "apps/output/particle_attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/check.h"
#include "core/error.h"

namespace coppice {

size_t type_bytes(PlyType type) { return type == PlyType::kUint8 ? 1 : 4; }

const char* type_name(PlyType type) {
  return type == PlyType::kFloat32 ? "float" : type == PlyType::kUint8 ? "uchar" : "int";
}

int file_components(const PlyAttribute& a) { return a.name == "position" ? 3 : a.components; }

std::string property_name(const std::string& attribute, int components, int component) {
  if (attribute == "position") return std::string(1, static_cast<char>('x' + component));
  return components == 1 ? attribute : fmt::format("{}_{}", attribute, component);
}

namespace {

// Returns whether a header's line can have it as a name.
bool is_word(const std::string& name) {
  return !name.empty() &&
         std::none_of(name.begin(), name.end(), [](unsigned char c) { return c <= ' ' || c == 127; });
}

}  // namespace

void check_attributes(std::span<const PlyAttribute> attributes, int64_t n_particles,
                      const std::string& path) {
  const auto refuse = [&](const std::string& why) { throw Error(ErrorCode::kInvalidArgument, why, {path}); };
  COPPICE_CHECK(n_particles >= 0);
  bool has_position = false;
  std::set<std::string> properties;
  for (const PlyAttribute& a : attributes) {
    COPPICE_CHECK(a.components >= 1, "attribute {}", a.name);
    COPPICE_CHECK(a.data != nullptr || n_particles == 0, "attribute {}", a.name);
    if (!is_word(a.name)) refuse(fmt::format("an attribute is named '{}', expected one word", a.name));
    if (a.name == "position") {
      has_position = true;
      if (a.type != PlyType::kFloat32 || (a.components != 2 && a.components != 3)) {
        refuse(fmt::format("a position is {} of type {}, expected 2 or 3 of type float", a.components,
                           type_name(a.type)));
      }
    }
    for (int c = 0; c < file_components(a); ++c) {
      const std::string property = property_name(a.name, file_components(a), c);
      if (!properties.insert(property).second)
        refuse(fmt::format("attribute '{}' has the property '{}', which another one has", a.name, property));
    }
  }
  if (!has_position) refuse("particles need an attribute 'position'");
}

void append_values(const PlyAttribute& a, int64_t i, std::string& bytes) {
  const int64_t size = static_cast<int64_t>(type_bytes(a.type));
  const int64_t component_stride = a.component_stride_bytes != 0 ? a.component_stride_bytes : size;
  const int64_t particle_stride =
      a.particle_stride_bytes != 0 ? a.particle_stride_bytes : size * a.components;
  const char* particle = static_cast<const char*>(a.data) + i * particle_stride;
  if (component_stride == size)
    bytes.append(particle, size * a.components);
  else
    for (int c = 0; c < a.components; ++c) bytes.append(particle + c * component_stride, size);
  for (int c = a.components; c < file_components(a); ++c) bytes.append(size, '\0');
}

}  // namespace coppice
