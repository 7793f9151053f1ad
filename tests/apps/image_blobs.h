// Finds spheres of one hue in pictures.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "apps/render/camera.h"
#include "apps/render/color_map.h"
#include "apps/render/image.h"

namespace coppice::render {

// Red, green, blue: far apart in hue whatever the light.
inline const std::vector<Rgb> kPrimaries = {Rgb(0.9f, 0.1f, 0.1f), Rgb(0.1f, 0.8f, 0.1f),
                                            Rgb(0.1f, 0.2f, 0.95f)};

inline bool is_reddish(Rgba8 c) { return c[0] > 1.6 * c[1] && c[0] > 1.6 * c[2]; }
inline bool is_greenish(Rgba8 c) { return c[1] > 1.6 * c[0] && c[1] > 1.6 * c[2]; }
inline bool is_bluish(Rgba8 c) { return c[2] > 1.3 * c[0] && c[2] > 1.3 * c[1] && c[2] > 110; }

struct Blob {
  double x = 0;  // centroid, px, pixel centres at half-integers
  double y = 0;
  int count = 0;
  double radius() const { return std::sqrt(count / 3.14159265358979); }
};

template <class Predicate>
Blob find_blob(const Image& image, Predicate belongs) {
  Blob blob;
  for (int y = 0; y < image.height(); ++y) {
    for (int x = 0; x < image.width(); ++x) {
      if (!belongs(image.pixel(x, y))) continue;
      blob.x += x + 0.5;
      blob.y += y + 0.5;
      ++blob.count;
    }
  }
  blob.x /= std::max(blob.count, 1);
  blob.y /= std::max(blob.count, 1);
  return blob;
}

// The radius in pixels at which a sphere's outline is seen, of a circle of the same area. A perspective
// camera sees it under asin(r / d); off the axis it is an ellipse stretched by 1 / cos^1.5 (area).
inline double outline_radius_px(const Camera& camera, const Vec3f& center, double radius_m, int height_px) {
  const Vec3f to_center = center - camera.position;
  const Vec3f forward = (camera.look_at - camera.position).normalized();
  const double half_tangent = std::tan(camera.fov_deg * 3.14159265358979 / 360.0);
  const double cosine = to_center.dot(forward) / to_center.norm();
  const double angle = std::asin(radius_m / to_center.norm());
  return std::tan(angle) / half_tangent * 0.5 * height_px / std::pow(cosine, 1.5);
}

}  // namespace coppice::render
