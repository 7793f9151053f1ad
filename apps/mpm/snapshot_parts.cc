// Follows from what files have (see snapshot_parts.h).
#include "apps/mpm/snapshot_parts.h"

namespace coppice::mpm {

bool writes_pressure(const scene::Output& output) {
  return output.fields.pressure || output.color == scene::ColorBy::kPressure;
}

bool writes_von_mises(const scene::Output& output) {
  return output.fields.von_mises || output.color == scene::ColorBy::kVonMises;
}

std::optional<SnapshotParts> parts_to_write(const scene::Output& output, bool has_pictures) {
  const bool has_stress = output.fields.stress || writes_pressure(output) || writes_von_mises(output);
  const scene::OutputFields& fields = output.fields;
  const bool has_averages =
      (output.vti || output.vdb) && (fields.pressure || fields.von_mises || fields.stress || fields.strain);
  if (!output.particles && !output.vtu && !has_pictures && !has_averages) return std::nullopt;
  return SnapshotParts{.affine = output.particles,
                       .deformation = output.particles || output.fields.strain,
                       .stress = has_stress};
}

}  // namespace coppice::mpm
