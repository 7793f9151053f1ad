// Chooses how a loop over cells computes its leaves: from tiles, in rows, or in pieces.
#pragma once
#include "sparse/launch_request.h"

namespace coppice {

struct Binding;

// Chooses which handles get tiles and whether rows are blended: both need the storage to suffice. Blending
// drops what it computes of inactive cells, but a check could not drop its complaints.
void choose_tiles(const detail::LaunchRequest& request, Binding& binding, bool checks);

}  // namespace coppice
