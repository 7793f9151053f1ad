// Lets the triangles of a mesh face alike, where some face the other way than their neighbours.
#pragma once

#include <cstdint>

#include "apps/geometry/mesh.h"

namespace coppice {

// Turns triangles over until the two at every edge that has two face alike; returns how many were turned.
// Where triangles hang together by such edges, the larger area keeps its side. Vertices at the same position
// count as one. A part that has only one side, as a Moebius strip, stays as it is. Cost: O(n log
// n).
int64_t orient_alike(TriangleMesh& mesh);

}  // namespace coppice
