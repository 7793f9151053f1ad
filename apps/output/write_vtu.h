// Particles of a program as VTK files, which ParaView opens: an UnstructuredGrid of vertices.
//
//     output::write_vtu("drops.vtu", {{"position", places}, {"mass", masses}});      // as write_ply()
//
// A series has a file for each frame, and a collection (pvd_log.h) that names them with their times:
//
//     PvdLog series("drops.pvd");
//     output::write_vtu("drops_0001.vtu", {{"position", places}}, {.time_s = t});
//     series.add("drops_0001.vtu", t);
//
// The layout of the file is in particle_vtu.h.
#pragma once
#include <string>
#include <vector>

#include "apps/output/particle_vtu.h"
#include "apps/output/pvd_log.h"
#include "apps/output/write_ply.h"

namespace coppice::output {

// Writes particles as write_ply() does, with its errors.
void write_vtu(const std::string& path, const std::vector<ParticleValues>& attributes,
               const VtuOptions& options = {});

}  // namespace coppice::output
