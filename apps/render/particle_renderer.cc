// The passes of a frame.
#include "apps/render/particle_renderer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "apps/render/gl_objects.h"
#include "apps/render/particle_shading.h"
#include "apps/render/scene_geometry.h"
#include "core/error.h"

namespace coppice::render {
namespace {

enum TextureUnit { kParticles, kSurfaces, kColliders, kIds, kDepth, kShadow, kFloorLight, kTextureUnits };

// A camera with what shaders need of it.
struct View {
  Mat4f view_from_world;
  Mat4f clip_from_view;
  Vec2f half_extent;
  bool orthographic;
  float pixel_m;  // see shaders/common.glsl
  Vec2f size_px;

  View(const Camera& camera, const Aabb3f& bounds, int width_px, int height_px) {
    const float aspect = static_cast<float>(width_px) / static_cast<float>(height_px);
    view_from_world = camera.view_from_world();
    clip_from_view = camera.clip_from_view(aspect, camera.planes_around(bounds));
    half_extent = camera.half_extent(aspect);
    orthographic = camera.projection == Projection::kOrthographic;
    size_px = Vec2f(static_cast<float>(width_px), static_cast<float>(height_px));
    pixel_m = 2.0f * half_extent.y() / size_px.y();
  }
};

}  // namespace

struct ParticleRenderer::Impl {
  const GlFunctions& gl;
  RenderOptions options;
  GLint max_particles = 0;
  GLint max_texture_px = 0;

  GlProgram particle_program;
  GlProgram collider_program;
  GlProgram shade_program;
  GlVertexArray no_attributes;
  GlBufferTexture particles;
  GlBufferTexture surfaces;
  GlBufferTexture colliders;
  GlTexture floor_light;
  GlTexture shadow_depth;
  GlFramebuffer shadow_target;
  std::optional<GlTexture> ids;  // this and the next two: of the last frame's size
  std::optional<GlTexture> depth;
  std::optional<GlFramebuffer> sample_target;
  int sample_width = 0;
  int sample_height = 0;

  Impl(const GlFunctions& functions, const RenderOptions& wanted)
      : gl(functions),
        options(wanted),
        particle_program(gl, "particle.vert", "particle.frag"),
        collider_program(gl, "collider.vert", "collider.frag"),
        shade_program(gl, "fullscreen.vert", "shade.frag"),
        no_attributes(gl),
        particles(gl, GL_RGBA32UI),
        surfaces(gl, GL_RGBA8),
        colliders(gl, GL_RGBA32F),
        floor_light(gl),
        shadow_depth(gl),
        shadow_target(gl) {
    gl.GetIntegerv(GL_MAX_TEXTURE_BUFFER_SIZE, &max_particles);
    gl.GetIntegerv(GL_MAX_TEXTURE_SIZE, &max_texture_px);
    make_shadow_target();
  }

  void require_complete(const char* what) {
    const GLenum status = gl.CheckFramebufferStatus(GL_FRAMEBUFFER);
    check_gl(gl, "allocating render targets");
    if (status != GL_FRAMEBUFFER_COMPLETE) {
      throw Error(ErrorCode::kUnavailable,
                  fmt::format("the OpenGL driver cannot draw {}: status 0x{:04x}", what, status));
    }
  }

  void make_shadow_target() {
    allocate_texture(gl, shadow_depth, GL_DEPTH_COMPONENT32F, options.shadow_size_px, options.shadow_size_px,
                     GL_LINEAR);
    gl.TexParameteri(GL_TEXTURE_2D, GL_TEXTURE_COMPARE_MODE, GL_COMPARE_REF_TO_TEXTURE);
    gl.TexParameteri(GL_TEXTURE_2D, GL_TEXTURE_COMPARE_FUNC, GL_LEQUAL);
    gl.BindFramebuffer(GL_FRAMEBUFFER, shadow_target.id());
    gl.FramebufferTexture2D(GL_FRAMEBUFFER, GL_DEPTH_ATTACHMENT, GL_TEXTURE_2D, shadow_depth.id(), 0);
    gl.DrawBuffer(GL_NONE);
    gl.ReadBuffer(GL_NONE);
    require_complete("a shadow map");
    gl.BindFramebuffer(GL_FRAMEBUFFER, 0);
  }

  void make_sample_target(int width, int height) {
    if (width == sample_width && height == sample_height) return;
    if (width > max_texture_px || height > max_texture_px) {
      throw Error(
          ErrorCode::kUnavailable,
          fmt::format(
              "this OpenGL driver draws at most {0} x {0} samples, not {1} x {2}; choose a smaller frame",
              max_texture_px, width, height));
    }
    sample_width = sample_height = 0;
    ids.emplace(gl);
    depth.emplace(gl);
    sample_target.emplace(gl);
    allocate_texture(gl, *ids, GL_R32UI, width, height, GL_NEAREST);
    allocate_texture(gl, *depth, GL_DEPTH_COMPONENT32F, width, height, GL_NEAREST);
    gl.BindFramebuffer(GL_FRAMEBUFFER, sample_target->id());
    gl.FramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, ids->id(), 0);
    gl.FramebufferTexture2D(GL_FRAMEBUFFER, GL_DEPTH_ATTACHMENT, GL_TEXTURE_2D, depth->id(), 0);
    require_complete("particle ids");
    sample_width = width;
    sample_height = height;
  }

  void upload(const RenderScene& scene, const ParticleShading& shading) {
    if (shading.particles.size() > static_cast<size_t>(max_particles)) {
      throw Error(ErrorCode::kUnavailable,
                  fmt::format("this OpenGL driver draws at most {} particles, not {}", max_particles,
                              shading.particles.size()));
    }
    const std::vector<float> packed_colliders = pack_colliders(scene);
    particles.upload(std::as_bytes(std::span(shading.particles)));
    surfaces.upload(std::as_bytes(std::span(shading.surfaces)));
    colliders.upload(std::as_bytes(std::span(packed_colliders)));
    static constexpr uint8_t kOpen = 255;
    const bool shaded = !shading.floor_visibility.empty();
    allocate_texture(gl, floor_light, GL_R8, shaded ? shading.floor_size.x() : 1,
                     shaded ? shading.floor_size.y() : 1, GL_LINEAR,
                     shaded ? shading.floor_visibility.data() : &kOpen);
    check_gl(gl, "copying particles to the graphics device");
  }

  void bind_texture(TextureUnit unit, GLuint texture) {
    gl.ActiveTexture(GL_TEXTURE0 + static_cast<GLenum>(unit));
    gl.BindTexture(GL_TEXTURE_2D, texture);
  }

  void use(const GlProgram& program, const View& view, const RenderScene& scene) {
    program.use();
    program.set("u_view_from_world", view.view_from_world);
    program.set("u_clip_from_view", view.clip_from_view);
    program.set("u_world_from_view", Mat4f(view.view_from_world.inverse()));
    program.set("u_half_extent", view.half_extent);
    program.set("u_orthographic", view.orthographic ? 1 : 0);
    program.set("u_target_size", view.size_px);
    program.set("u_pixel_m", view.pixel_m);
    program.set("u_radius_m", scene.radius_m);
    program.set("u_particles", static_cast<int>(kParticles));
    program.set("u_surfaces", static_cast<int>(kSurfaces));
    program.set("u_colliders", static_cast<int>(kColliders));
  }

  // Depth, and ids where the framebuffer has them, of everything.
  void draw_geometry(const View& view, const RenderScene& scene, size_t n_particles, GLuint target) {
    gl.BindFramebuffer(GL_FRAMEBUFFER, target);
    gl.Viewport(0, 0, static_cast<GLsizei>(view.size_px.x()), static_cast<GLsizei>(view.size_px.y()));
    gl.Enable(GL_DEPTH_TEST);
    gl.DepthFunc(GL_LESS);
    gl.DepthMask(GL_TRUE);
    const GLfloat farthest = 1.0f;
    const GLuint nothing[4] = {0, 0, 0, 0};
    gl.ClearBufferfv(GL_DEPTH, 0, &farthest);
    if (target != shadow_target.id()) gl.ClearBufferuiv(GL_COLOR, 0, nothing);
    if (!scene.colliders.empty()) {
      use(collider_program, view, scene);
      gl.Enable(GL_CULL_FACE);
      gl.CullFace(GL_FRONT);
      gl.DrawArrays(GL_TRIANGLES, 0, static_cast<GLsizei>(36 * scene.colliders.size()));
      gl.Disable(GL_CULL_FACE);
    }
    if (n_particles != 0) {
      use(particle_program, view, scene);
      gl.DrawArrays(GL_TRIANGLES, 0, static_cast<GLsizei>(3 * n_particles));
    }
    gl.Disable(GL_DEPTH_TEST);
  }

  void shade(const View& view, const View& light, const RenderScene& scene, const ParticleShading& shading,
             GLuint framebuffer, int width, int height) {
    gl.BindFramebuffer(GL_FRAMEBUFFER, framebuffer);
    gl.Viewport(0, 0, width, height);
    use(shade_program, view, scene);
    bind_texture(kIds, ids->id());
    bind_texture(kDepth, depth->id());
    bind_texture(kShadow, shadow_depth.id());
    bind_texture(kFloorLight, floor_light.id());
    shade_program.set("u_ids", static_cast<int>(kIds));
    shade_program.set("u_depth", static_cast<int>(kDepth));
    shade_program.set("u_shadow", static_cast<int>(kShadow));
    shade_program.set("u_floor_light", static_cast<int>(kFloorLight));
    Mat4f unit_from_clip = Mat4f::Identity() * 0.5f;
    unit_from_clip.col(3) = Vec4f(0.5f, 0.5f, 0.5f, 1.0f);
    shade_program.set("u_shadow_from_world",
                      Mat4f(unit_from_clip * light.clip_from_view * light.view_from_world));
    shade_program.set("u_shadow_texel_m", light.pixel_m);
    shade_program.set("u_samples", options.samples_per_side);
    shade_program.set("u_dim", scene.dim);
    shade_program.set("u_frame_size", Vec2f(static_cast<float>(width), static_cast<float>(height)));
    shade_program.set("u_to_light", to_key_light());
    shade_program.set("u_domain_min", scene.domain.min);
    shade_program.set("u_domain_max", scene.domain.max);
    const bool shaded = !shading.floor_visibility.empty();
    const Aabb3f& floor = shading.floor_bounds;
    shade_program.set(
        "u_floor_bounds",
        shaded ? Vec4f(floor.min.x(), floor.min.z(), floor.max.x(), floor.max.z()) : Vec4f(Vec4f::Zero()));
    shade_program.set("u_grid_m", grid_spacing(scene.domain));
    const std::vector<Vec4f> edges = scene.dim == 3 ? back_edges(scene, width, height) : std::vector<Vec4f>();
    for (size_t i = 0; i < edges.size(); ++i)
      shade_program.set(fmt::format("u_edges[{}]", i).c_str(), edges[i]);
    shade_program.set("u_n_edges", static_cast<int>(edges.size()));
    gl.DrawArrays(GL_TRIANGLES, 0, 3);
  }

  void unbind() {
    for (int unit = kTextureUnits - 1; unit >= 0; --unit) {
      bind_texture(static_cast<TextureUnit>(unit), 0);
      gl.BindTexture(GL_TEXTURE_BUFFER, 0);
    }
    gl.BindVertexArray(0);
    gl.UseProgram(0);
  }
};

ParticleRenderer::ParticleRenderer(const GlFunctions& gl, const RenderOptions& options) {
  if (options.samples_per_side < 1 || options.samples_per_side > 4 || options.shadow_size_px < 16 ||
      options.shadow_size_px > 8192) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{0} x {0} samples and a shadow map of {1} pixels: 1 to 4 and 16 to 8192 are possible",
                    options.samples_per_side, options.shadow_size_px));
  }
  impl_ = std::make_unique<Impl>(gl, options);
}

ParticleRenderer::~ParticleRenderer() = default;

void ParticleRenderer::draw(const RenderScene& scene, GLuint framebuffer, int width, int height) {
  scene.validate();
  Impl& r = *impl_;
  const ParticleShading shading = compute_particle_shading(scene);
  const Aabb3f bounds = drawn_bounds(scene, shading.bounds);
  const int n = r.options.samples_per_side;
  const View eye(scene.camera, bounds, width * n, height * n);
  const View light(light_camera(bounds), bounds, r.options.shadow_size_px, r.options.shadow_size_px);

  r.make_sample_target(width * n, height * n);
  r.upload(scene, shading);
  r.gl.BindVertexArray(r.no_attributes.id());
  r.particles.bind(kParticles);
  r.surfaces.bind(kSurfaces);
  r.colliders.bind(kColliders);
  if (scene.dim == 3) r.draw_geometry(light, scene, shading.particles.size(), r.shadow_target.id());
  r.draw_geometry(eye, scene, shading.particles.size(), r.sample_target->id());
  r.shade(eye, light, scene, shading, framebuffer, width, height);
  r.unbind();
  check_gl(r.gl, "drawing a frame");
}

}  // namespace coppice::render
