// How files of particles and of boxes are laid out in rows, for files that several processes write. Without
// others write_particles_ply(), write_particles_vtu() and write_grid_vti() do the same.
//
// Values must live, and stay as they are, until the file is written. Errors: those of these functions, but
// for kIo.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "apps/output/grid_vti.h"
#include "apps/output/particle_ply.h"
#include "apps/output/particle_vtu.h"
#include "apps/output/row_file.h"

namespace coppice {

// `attributes` are of the writer's particles, share.n of them; a row is a particle. `path` is for messages.
RowFile lay_out_ply(const std::string& path, std::span<const PlyAttribute> attributes, const RowShare& share,
                    const std::string& of = {});
RowFile lay_out_vtu(const std::string& path, std::span<const PlyAttribute> attributes, const RowShare& share,
                    const VtuOptions& options = {});

// Returns a rank's part of a box: so many planes, or, of a box that is one plane, lines.
PointBox slab_of(const PointBox& box, int rank, int n_ranks);
// `slab` is the writer's.
RowFile lay_out_vti(const VtiGrid& grid, std::span<const GridArray> arrays, const PointBox& slab);

}  // namespace coppice
