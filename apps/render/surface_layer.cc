// Uploads, bindings and uniforms of surfaces.
#include "apps/render/surface_layer.h"

#include <fmt/format.h>

#include <limits>

namespace coppice::render {

SurfaceLayer::SurfaceLayer(const GlFunctions& gl)
    : gl_(gl), atlas_(gl), crossed_(gl), all_(gl), colors_(gl) {}

void SurfaceLayer::update(const ParticleSurfaces& surfaces) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  fields_ = surfaces.fields;
  cell_m_ = surfaces.cell_m;
  atlas_.update(surfaces.volume);
  crossed_.update(atlas_, {kSurfaceThreshold, kSurfaceThreshold});
  all_.update(atlas_, {-kInfinity, kInfinity});
  const SurfaceColors& colors = surfaces.jelly_colors;
  const std::array<uint8_t, 4> nothing{};
  const bool has_colors = !colors.texels.empty();
  allocate_texture_3d(gl_, colors_, GL_RGBA8, has_colors ? colors.size : Vec3i(Vec3i::Ones()),
                      has_colors ? std::span<const uint8_t>(colors.texels) : nothing);
  colors_origin_ = colors.origin;
  colors_size_m_ = (has_colors ? colors.size : Vec3i(Vec3i::Ones())).cast<float>() * colors.cell_m;
}

void SurfaceLayer::bind(int first_unit) const {
  for (const GLuint texture : {atlas_.texture(), crossed_.texture(), all_.texture(), colors_.id()}) {
    gl_.ActiveTexture(GL_TEXTURE0 + static_cast<GLenum>(first_unit++));
    gl_.BindTexture(GL_TEXTURE_3D, texture);
  }
}

void SurfaceLayer::set_uniforms(const GlProgram& program, int first_unit) const {
  program.set("u_atlas", first_unit);
  program.set("u_index", first_unit + 1);
  program.set("u_all", first_unit + 2);
  program.set("u_body_colors", first_unit + 3);
  program.set("u_bricks", all_.size());
  program.set("u_texel", Vec3f((atlas_.slots().cast<float>() * float(kBrickSide)).cwiseInverse()));
  program.set("u_step", 1.0f);
  program.set("u_samples_exits", 1);
  program.set("u_threshold", kSurfaceThreshold);
  program.set("u_cell_m", cell_m_);
  program.set("u_colors_origin", colors_origin_);
  program.set("u_colors_size", colors_size_m_);
  for (size_t f = 0; f < fields_.size(); ++f) {
    const SurfaceField& field = fields_[f];
    const auto set = [&](const char* name, const auto& value) {
      program.set(fmt::format("{}[{}]", name, f).c_str(), value);
    };
    set("u_has_field", field.is_empty ? 0 : 1);
    // Values stand at the middle of cells.
    set("u_field_offset", Vec3f(field.shift - Vec3f::Constant(0.5f) - all_.origin().cast<float>()));
    set("u_field_low", field.is_empty ? Vec3f(Vec3f::Zero()) : field.box.min);
    set("u_field_high", field.is_empty ? Vec3f(Vec3f::Zero()) : field.box.max);
  }
}

void allocate_texture_3d(const GlFunctions& gl, const GlTexture& texture, GLenum format, const Vec3i& size,
                         std::span<const uint8_t> texels) {
  gl.ActiveTexture(GL_TEXTURE0);
  gl.BindTexture(GL_TEXTURE_3D, texture.id());
  gl.PixelStorei(GL_UNPACK_ALIGNMENT, 1);
  gl.TexImage3D(GL_TEXTURE_3D, 0, static_cast<GLint>(format), size.x(), size.y(), size.z(), 0,
                format == GL_RGBA8 ? GL_RGBA : GL_RED, GL_UNSIGNED_BYTE, texels.data());
  for (const GLenum filter : {GL_TEXTURE_MIN_FILTER, GL_TEXTURE_MAG_FILTER})
    gl.TexParameteri(GL_TEXTURE_3D, filter, GL_LINEAR);
  for (const GLenum wrap : {GL_TEXTURE_WRAP_S, GL_TEXTURE_WRAP_T, GL_TEXTURE_WRAP_R})
    gl.TexParameteri(GL_TEXTURE_3D, wrap, GL_CLAMP_TO_EDGE);
  gl.BindTexture(GL_TEXTURE_3D, 0);
}

}  // namespace coppice::render
