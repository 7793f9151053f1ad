// Draws particles as spheres, live: as many as time allows while the picture changes, all of them at rest.
//
// Particles go into a target of ids and depth that the renderer keeps; the nearest of each pixel is then lit
// and written with its depth into the caller's framebuffer, at every call. So the caller may clear and draw
// anything else there each time, while particles accumulate. A call with a new view or new points draws a
// *draft*: a fair sample of the points (point_order.h), enlarged so that bodies stay closed, in half the
// resolution. Further calls with the same view add the points at their own size before the draft, which goes
// when half of them are there; with the last of them the picture is the one that a single call with unlimited
// time gives, bit for bit.
//
// Spheres that are mostly below 1.5 pixels are flat squares, those up to 8 pixels are GL's points with the
// sphere's depth (half of the cost of triangles without a graphics card), larger ones exact spheres.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "apps/render/gl_functions.h"
#include "apps/render/point_layer.h"
#include "apps/render/view.h"

namespace coppice::render {

struct PointHit {
  uint32_t index;  // into PointLayer::points
  float depth;     // of the pixel, 0 (near) to 1
};

class PointRenderer {
 public:
  // The context is current here, in all calls and in the destructor; `gl` outlives the renderer.
  explicit PointRenderer(const GlFunctions& gl);
  ~PointRenderer();
  PointRenderer(const PointRenderer&) = delete;
  PointRenderer& operator=(const PointRenderer&) = delete;

  // Copies the points to the graphics device and begins anew. Throws Error(kInvalidArgument) as
  // stage_points(), and Error(kUnavailable) for more points than the driver draws.
  void set_points(const PointLayer& layer);

  // Writes colour and depth of particles into width x height pixels of `framebuffer` (0: the window's),
  // tested against the depth that is there. It takes about `most_ms`, but always draws at least one chunk of
  // points, so that repeated calls end. Waits for OpenGL unless the picture was complete. Errors: those of
  // the driver.
  void draw(const View& view, GLuint framebuffer, double most_ms);
  // Returns whether the last draw() showed all points at their own size.
  bool is_complete() const;

  // Returns the nearest point at a pixel of the last draw(), none beside the picture; x to the right, y
  // down. Before the picture is complete it is the nearest of those drawn so far. Waits for OpenGL.
  std::optional<PointHit> wait_and_pick(int x, int y) const;

  ScalarRange range() const;       // what the ends of the colour map stand for
  size_t n_bad_positions() const;  // that are not finite: they are not drawn
  size_t n_bad_values() const;     // that are not finite, or no index of a category: drawn in kBadValueColor

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace coppice::render
