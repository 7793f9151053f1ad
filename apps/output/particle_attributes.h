// PLY's and VTK's files of particles share these rules about attributes (particle_ply.h, particle_vtu.h).
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "apps/output/particle_ply.h"

namespace coppice {

size_t type_bytes(PlyType type);
// Returns "float", "uchar" or "int".
const char* type_name(PlyType type);
// Returns the components in the file: a 2-D position has a z there.
int file_components(const PlyAttribute& a);
// Returns "x" for a position's first component, the attribute's name for a single one, or else "name_0".
std::string property_name(const std::string& attribute, int components, int component);
// Throws kInvalidArgument for attributes that a file cannot have, or not together.
void check_attributes(std::span<const PlyAttribute> attributes, int64_t n_particles, const std::string& path);
// Appends particle `i`'s values of one attribute, as many as file_components(), to `bytes`.
void append_values(const PlyAttribute& a, int64_t i, std::string& bytes);

}  // namespace coppice
