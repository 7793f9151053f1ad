// Says what two handles of one launch may be when they name the same field (docs/sparse.md has the table).
#pragma once
#include <string_view>

#include "sparse/device/handles.h"

namespace coppice {

// Says how a handle uses its field, as far as that matters to another handle of the same field.
struct RoleUse {
  Role role;
  int radius = 0;  // cells: of a Read or an Accumulate with a reach
};

// Returns an empty text when the two may stand beside each other, in either order: then the kernel's
// accesses to its own cell have C++'s order, and no other item's access can be seen. Else returns what is
// to be done instead, as the end of a sentence.
std::string_view why_not_together(const RoleUse& a, const RoleUse& b);

// Returns whether beside `b` a Read may only read its own cell: its at() and neighbour_data() are then
// errors when they are called.
inline bool changes_own_cells(const RoleUse& b) { return b.role == Role::kWrite || b.role == Role::kUpdate; }

}  // namespace coppice
