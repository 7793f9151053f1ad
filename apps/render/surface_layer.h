// This holds surfaces of particles on the graphics device: their bricks, the index that rays step
// through, and colours, as shaders/surface.glsl reads them.
#pragma once

#include "apps/render/brick_index.h"
#include "apps/render/particle_surface.h"

namespace coppice::render {

class SurfaceLayer {
 public:
  // The textures take this many units, side by side from `first_unit` on.
  static constexpr int kTextureUnits = 4;

  // `gl` outlives the layer; its context is current in all calls and in the destructor.
  explicit SurfaceLayer(const GlFunctions& gl);

  // Makes the layer show these. Errors: those of BrickAtlas and BrickIndex.
  void update(const ParticleSurfaces& surfaces);
  bool has(int field) const { return !fields_[static_cast<size_t>(field)].is_empty; }
  // Returns the box that is drawn of a field, m.
  const Aabb3f& box(int field) const { return fields_[static_cast<size_t>(field)].box; }
  void bind(int first_unit) const;
  // Sets the uniforms of shaders/surface.glsl. The program is in use, and includes that file.
  void set_uniforms(const GlProgram& program, int first_unit) const;

 private:
  const GlFunctions& gl_;
  BrickAtlas atlas_;
  BrickIndex crossed_, all_;  // bricks that the surface passes, and all bricks
  GlTexture colors_;
  std::array<SurfaceField, 2> fields_;
  float cell_m_ = 1.0f;
  Vec3f colors_origin_ = Vec3f::Zero(), colors_size_m_ = Vec3f::Ones();
};

// Allocates a 3-D texture for trilinear interpolation, clamped to its edge: u8[z][y][x], or [z][y][x][4]
// for GL_RGBA8. Leaves no 3-D texture bound.
void allocate_texture_3d(const GlFunctions& gl, const GlTexture& texture, GLenum format, const Vec3i& size,
                         std::span<const uint8_t> texels);

}  // namespace coppice::render
