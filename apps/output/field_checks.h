// The writers of fields refuse these alike: VDB's (write_vdb.h) and VTK's (write_vti.h).
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "core/math.h"
#include "sparse/tree.h"

namespace coppice::output {

// A field's name in the file, and where its cells are.
struct FieldPlacement {
  std::string name;
  float width = 1;
  Vec3f origin = Vec3f::Zero();
};
// Errors, with the path as their place: kInvalidArgument for a tree of fewer than `least_dims` dimensions or
// more than 3, a width that is not positive and finite, an origin that is not finite, and a name that is not
// one line.
void check_field(const std::string& path, const TreeRef& tree, uint32_t least_dims,
                 const FieldPlacement& placement);
// Errors: kNumeric for the first value that is not finite.
void check_finite_cells(const std::string& path, std::span<const std::array<int32_t, 3>> coords,
                        std::span<const float> values);

}  // namespace coppice::output
