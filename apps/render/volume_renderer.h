// Draws a volume of bricks into a framebuffer that may have opaque things in it: as fog, as a surface, or
// slices of it.
//
// A ray per pixel goes from brick to brick (shaders/volume.frag). While the camera moves a picture is a
// draft, a third as wide and high; at rest the picture is drawn in tiles, as many per call as there is
// time for, and the draft shows where there is none yet. It owns no window and no context.
#pragma once
#include <memory>

#include "apps/render/brick_atlas.h"
#include "apps/render/volume_view.h"

namespace coppice::render {

class VolumeRenderer {
 public:
  // Errors: kUnavailable when the driver refuses the shaders. `gl` outlives the renderer; its context is
  // current here, in draw() and in the destructor.
  explicit VolumeRenderer(const GlFunctions& gl);
  ~VolumeRenderer();

  // Draws over what the framebuffer has, for about most_ms milliseconds; it ends by itself where that is
  // infinite. Returns whether the picture is complete: else the next call with the same view and atlas goes
  // on with it, and the framebuffer must have the same opaque things again. Surfaces and slices are tested
  // against its depth and write it; fog ends at it and leaves it. Waits for the graphics device. Leaves depth
  // test, blending and scissor test off, the depth mask on, and no program, vertex array or texture bound.
  // Errors: kInvalidArgument (the view), kUnavailable, kOutOfMemory.
  bool draw(const BrickAtlas& atlas, const VolumeView& view, double most_ms);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace coppice::render
