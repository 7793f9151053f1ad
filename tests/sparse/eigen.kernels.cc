// A kernel whose arguments and field values are Eigen's.
#include "coppice/kernel.h"
#include "core/math.h"

using namespace coppice;

COPPICE_KERNEL(turn_points, Item i, Mat3f rotation, Vec4f shift, Vec3f* points)
{ points[i.index] = rotation * points[i.index] + shift.head<3>() * shift.w(); }
struct Ray {
  Vec3f origin;
  int32_t number;
  Vec3d direction;
};
COPPICE_KERNEL(step_rays, Item i, const Ray* rays, Ray shift, Ray* out)
{
  out[i.index] = {rays[i.index].origin + shift.origin, rays[i.index].number + shift.number,
                  rays[i.index].direction.cross(shift.direction)};
}
COPPICE_KERNEL(grow_rays, Grow<Ray> field, Item i, Ray ray)
{ field.set(i, {static_cast<int>(i.index)}, ray); }
COPPICE_KERNEL(normalize_cells, Update<Vec3f> field, Cell1 cell)
{ field[cell].normalize(); }
COPPICE_KERNEL(grow_vectors, Grow<Vec3f> field, Item i, Vec3f value)
{ field.set(i, {static_cast<int>(i.index)}, value * (1.0f + i.index)); }
COPPICE_KERNEL(read_vectors, Read<Vec3f> field, Item i, Vec3f* out)
{ out[i.index] = field.at(i, {static_cast<int>(i.index)}); }
// With one of Eigen's variables, an object that holds nothing.
COPPICE_KERNEL(keep_ends, Item i, Vec3f* points)
{
  Vec3f& v = points[i.index];
  const float end = v(Eigen::last);
  v(2) = v(0);
  v(0) = end;
}
