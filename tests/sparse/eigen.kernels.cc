// A kernel whose arguments and field values are Eigen's.
#include "coppice/kernel.h"
#include "core/math.h"

using namespace coppice;

COPPICE_KERNEL(turn_points, Item i, Mat3f rotation, Vec4f shift, Vec3f* points)
{ points[i.index] = rotation * points[i.index] + shift.head<3>() * shift.w(); }
COPPICE_KERNEL(normalize_cells, Update<Vec3f> field, Cell1 cell)
{ field[cell].normalize(); }
COPPICE_KERNEL(grow_vectors, Grow<Vec3f> field, Item i, Vec3f value)
{ field.set(i, {static_cast<int>(i.index)}, value * (1.0f + i.index)); }
COPPICE_KERNEL(read_vectors, Read<Vec3f> field, Item i, Vec3f* out)
{ out[i.index] = field.at(i, {static_cast<int>(i.index)}); }
