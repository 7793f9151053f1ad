// Particles as a VTK file that ParaView opens: an UnstructuredGrid of vertices, raw and little endian.
//
// Each particle is a point and a cell of its own (VTK_VERTEX), so that filters of cells take it, too. The
// attribute "position" gives the points, all others are the points' data. What is appended, in this order:
//     attributes but the position   [n][components], in the order given
//     Points                        f32[n][3]; z is 0 where a position has 2 components
//     connectivity, offsets         i64[n]: 0 ..., 1 ...
//     types                         u8[n]: 1
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/output/particle_ply.h"

namespace coppice {

struct VtuOptions {
  std::optional<double> time_s;  // of the frame
  // Names of an attribute's components, by its name: one for each.
  std::map<std::string, std::vector<std::string>> component_names = {};
};

// Writes the file whole or not at all. Errors: those of write_particles_ply().
void write_particles_vtu(const std::string& path, std::span<const PlyAttribute> attributes,
                         int64_t n_particles, const VtuOptions& options = {});

}  // namespace coppice
