// The passes of a frame.
#include "apps/render/particle_renderer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "apps/render/gl_objects.h"
#include "apps/render/id_target.h"
#include "apps/render/particle_shading.h"
#include "apps/render/scene_geometry.h"
#include "apps/render/shadow_map.h"
#include "apps/render/surface_layer.h"
#include "apps/render/view.h"
#include "core/error.h"

namespace coppice::render {
namespace {

enum TextureUnit {
  kParticles,
  kSurfaces,
  kColliders,
  kIds,
  kDepth,
  kShadow,
  kWaterShadow = kShadow + 1,  // of the pass that lights the floor; else the depth of water
  kWaterDepth = kWaterShadow,
  kFloorLight,
  kFloorSun,
  kDensity,
  kBodies,  // and those behind it, SurfaceLayer's
  kTextureUnits = kBodies + SurfaceLayer::kTextureUnits
};
static_assert(kTextureUnits <= 16, "OpenGL 3.3 promises 16 to a fragment shader");

constexpr int kFloorSunSize = 512;  // texels along each side

// Parts of a pass that somebody may end: a tenth of a second or so of a software driver on two cores.
constexpr size_t kPartSamples = 1 << 18, kPartParticles = 1 << 18;
constexpr int kPartRows = 16;  // a part has a multiple of them, for drivers that draw in tiles

View view_of(const Camera& camera, const Aabb3f& bounds, int width_px, int height_px) {
  return View(camera, camera.planes_around(bounds), width_px, height_px);
}

// Maps the world to the unit cube of a map that the view fills.
Mat4f unit_from_world(const View& view) {
  Mat4f unit_from_clip = Mat4f::Identity() * 0.5f;
  unit_from_clip.col(3) = Vec4f(0.5f, 0.5f, 0.5f, 1.0f);
  return unit_from_clip * view.clip_from_view * view.view_from_world;
}

}  // namespace

struct ParticleRenderer::Impl {
  const GlFunctions& gl;
  RenderOptions options;
  GLint max_particles = 0;

  GlProgram particle_program;
  GlProgram collider_program;
  GlProgram floor_program;
  std::optional<GlProgram> surface_program;
  std::optional<GlProgram>
      shade_programs[4];  // without bodies, with water, with jelly, with both; made when needed
  GlVertexArray no_attributes;
  GlBufferTexture particles;
  GlBufferTexture surfaces;
  GlBufferTexture colliders;
  GlTexture floor_light;
  GlTexture floor_sun;
  GlFramebuffer floor_sun_target;
  GlTexture density;
  SurfaceLayer bodies;
  ShadowMap shadow;
  ShadowMap water_shadow;
  std::optional<IdTarget> samples;        // of the last frame's size
  std::optional<IdTarget> water_samples;  // of the last frame with water
  const GoesOn* goes_on = nullptr;        // of the frame that is drawn; null: nobody may end it
  bool is_ended = false;                  // it was, and draws nothing more

  Impl(const GlFunctions& functions, const RenderOptions& wanted)
      : gl(functions),
        options(wanted),
        particle_program(gl, "particle.vert", "particle.frag", "#define GRAINS"),
        collider_program(gl, "collider.vert", "collider.frag"),
        floor_program(gl, "fullscreen.vert", "floor_light.frag"),
        no_attributes(gl),
        particles(gl, GL_RGBA32UI),
        surfaces(gl, GL_RGBA8),
        colliders(gl, GL_RGBA32F),
        floor_light(gl),
        floor_sun(gl),
        floor_sun_target(gl),
        density(gl),
        bodies(gl),
        shadow(gl, options.shadow_size_px),
        water_shadow(gl, options.shadow_size_px) {
    gl.GetIntegerv(GL_MAX_TEXTURE_BUFFER_SIZE, &max_particles);
    allocate_texture(gl, floor_sun, GL_RGBA8, kFloorSunSize, kFloorSunSize, GL_LINEAR);
    gl.BindFramebuffer(GL_FRAMEBUFFER, floor_sun_target.id());
    gl.FramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, floor_sun.id(), 0);
    require_complete_framebuffer(gl, "the light on the floor");
    gl.BindFramebuffer(GL_FRAMEBUFFER, 0);
  }

  // Asks whether the frame goes on. What was drawn so far is done by then, so that whoever
  // ends it waits for a part at most.
  bool is_going_on() {
    if (goes_on == nullptr || is_ended) return !is_ended;
    gl.Finish();
    is_ended = !(*goes_on)();
    return !is_ended;
  }

  // A triangle over all pixels of the viewport, which have so many samples each, from the lowest rows up.
  void draw_rows(int width, int height, int samples_per_pixel) {
    if (goes_on == nullptr) return gl.DrawArrays(GL_TRIANGLES, 0, 3);
    const int samples_per_row = std::max(width * samples_per_pixel, 1);
    const int rows = std::max(static_cast<int>(kPartSamples) / samples_per_row / kPartRows, 1) * kPartRows;
    gl.Enable(GL_SCISSOR_TEST);
    for (int low = 0; low < height && is_going_on(); low += rows) {
      gl.Scissor(0, low, width, std::min(rows, height - low));
      gl.DrawArrays(GL_TRIANGLES, 0, 3);
    }
    gl.Disable(GL_SCISSOR_TEST);
  }

  void make_sample_target(std::optional<IdTarget>& target, int width, int height) {
    if (target && width == target->width() && height == target->height()) return;
    target.reset();
    target.emplace(gl, width, height);
  }

  void upload(const RenderScene& scene, const ParticleSurfaces& surfaces_of_bodies,
              const ParticleShading& shading) {
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
    const bool is_dense = !shading.density.empty();
    allocate_texture_3d(gl, density, GL_R8, is_dense ? shading.density_size : Vec3i(Vec3i::Ones()),
                        is_dense ? std::span<const uint8_t>(shading.density) : std::span(&kOpen, 1));
    bodies.update(surfaces_of_bodies);
    check_gl(gl, "copying particles to the graphics device");
  }

  void bind_texture(TextureUnit unit, GLuint texture) {
    gl.ActiveTexture(GL_TEXTURE0 + static_cast<GLenum>(unit));
    gl.BindTexture(GL_TEXTURE_2D, texture);
  }

  void use(const GlProgram& program, const View& view, const RenderScene& scene) {
    program.use();
    set_view(program, view);
    program.set("u_world_from_view", Mat4f(view.view_from_world.inverse()));
    program.set("u_radius_m", scene.radius_m);
    program.set("u_particles", static_cast<int>(kParticles));
    program.set("u_surfaces", static_cast<int>(kSurfaces));
    program.set("u_colliders", static_cast<int>(kColliders));
  }

  // Clears the framebuffer's depth, and ids where it has them, and makes ready to draw these.
  void begin_depth(const View& view, GLuint target, bool has_ids) {
    gl.BindFramebuffer(GL_FRAMEBUFFER, target);
    gl.Viewport(0, 0, static_cast<GLsizei>(view.size_px.x()), static_cast<GLsizei>(view.size_px.y()));
    gl.Enable(GL_DEPTH_TEST);
    gl.DepthFunc(GL_LESS);
    gl.DepthMask(GL_TRUE);
    const GLfloat farthest = 1.0f;
    const GLuint nothing[4] = {0, 0, 0, 0};
    gl.ClearBufferfv(GL_DEPTH, 0, &farthest);
    if (has_ids) gl.ClearBufferuiv(GL_COLOR, 0, nothing);
  }

  // Depth, and ids where the framebuffer has them, of all but water.
  void draw_geometry(const View& view, const RenderScene& scene, size_t n_particles) {
    if (!scene.colliders.empty()) {
      use(collider_program, view, scene);
      const auto [low, high] = shown_rectangle(scene.domain, scene.dim);
      collider_program.set("u_shown_low", low);
      collider_program.set("u_shown_high", high);
      gl.Enable(GL_CULL_FACE);
      gl.CullFace(GL_FRONT);
      gl.DrawArrays(GL_TRIANGLES, 0, static_cast<GLsizei>(36 * scene.colliders.size()));
      gl.Disable(GL_CULL_FACE);
    }
    if (n_particles != 0) {
      use(particle_program, view, scene);
      const size_t part = goes_on == nullptr ? n_particles : kPartParticles;
      for (size_t first = 0; first < n_particles && is_going_on(); first += part) {
        gl.DrawArrays(GL_TRIANGLES, static_cast<GLint>(3 * first),
                      static_cast<GLsizei>(3 * std::min(part, n_particles - first)));
      }
    }
    draw_surface(view, scene, ParticleSurfaces::kJelly);
  }

  void draw_surface(const View& view, const RenderScene& scene, int field) {
    if (!bodies.has(field)) return;
    if (!surface_program) surface_program.emplace(gl, "fullscreen.vert", "surface.frag");
    use(*surface_program, view, scene);
    bodies.set_uniforms(*surface_program, kBodies);
    surface_program->set("u_field", field);
    draw_rows(static_cast<int>(view.size_px.x()), static_cast<int>(view.size_px.y()), 1);
  }

  // The key light that reaches the floor, from the shadow maps.
  void draw_floor_sun(const View& light, const RenderScene& scene, float map_depth_m) {
    gl.BindFramebuffer(GL_FRAMEBUFFER, floor_sun_target.id());
    gl.Viewport(0, 0, kFloorSunSize, kFloorSunSize);
    floor_program.use();
    bind_texture(kWaterShadow, water_shadow.texture());
    water_shadow.set_compares(false);
    bind_texture(kShadow, shadow.texture());
    shadow.set_compares(false);
    floor_program.set("u_solid", static_cast<int>(kShadow));
    floor_program.set("u_water", static_cast<int>(kWaterShadow));
    floor_program.set("u_target_size", Vec2f(kFloorSunSize, kFloorSunSize));
    floor_program.set("u_shadow_from_world", unit_from_world(light));
    floor_program.set("u_floor_bounds", floor_sun_bounds(scene));
    floor_program.set("u_floor_y", scene.domain.min.y());
    floor_program.set("u_map_side_m", light.pixel_m * light.size_px.x());
    floor_program.set("u_map_depth_m", map_depth_m);
    floor_program.set("u_radius_m", scene.radius_m);
    floor_program.set("u_absorption", water_absorption(scene.domain));
    gl.DrawArrays(GL_TRIANGLES, 0, 3);
    shadow.set_compares(true);
  }

  const GlProgram& shade_program() {
    static constexpr const char* kDefines[] = {"", "#define WATER", "#define JELLY",
                                               "#define WATER\n#define JELLY"};
    const size_t i =
        (bodies.has(ParticleSurfaces::kWater) ? 1u : 0u) + (bodies.has(ParticleSurfaces::kJelly) ? 2u : 0u);
    if (!shade_programs[i]) shade_programs[i].emplace(gl, "fullscreen.vert", "shade.frag", kDefines[i]);
    return *shade_programs[i];
  }

  void shade(const View& view, const View& light, const RenderScene& scene, const ParticleShading& shading,
             GLuint framebuffer, int width, int height) {
    const GlProgram& p = shade_program();
    gl.BindFramebuffer(GL_FRAMEBUFFER, framebuffer);
    gl.Viewport(0, 0, width, height);
    use(p, view, scene);
    bind_texture(kIds, samples->ids());
    bind_texture(kDepth, samples->depth());
    bind_texture(kShadow, shadow.texture());
    if (water_samples) bind_texture(kWaterDepth, water_samples->depth());
    bind_texture(kFloorLight, floor_light.id());
    bind_texture(kFloorSun, floor_sun.id());
    gl.ActiveTexture(GL_TEXTURE0 + static_cast<GLenum>(kDensity));
    gl.BindTexture(GL_TEXTURE_3D, density.id());
    bodies.set_uniforms(p, kBodies);
    p.set("u_ids", static_cast<int>(kIds));
    p.set("u_depth", static_cast<int>(kDepth));
    p.set("u_shadow", static_cast<int>(kShadow));
    p.set("u_floor_light", static_cast<int>(kFloorLight));
    p.set("u_floor_sun", static_cast<int>(kFloorSun));
    p.set("u_water_depth", static_cast<int>(kWaterDepth));
    p.set("u_density", static_cast<int>(kDensity));
    p.set("u_density_origin", shading.density_origin);
    p.set("u_density_size", Vec3f(shading.density_size.cast<float>() * shading.density_cell_m));
    p.set("u_density_cell_m", shading.density_cell_m);
    p.set("u_absorption", water_absorption(scene.domain));
    p.set("u_floor_sun_bounds", floor_sun_bounds(scene));
    p.set("u_shadow_from_world", unit_from_world(light));
    p.set("u_shadow_texel_m", light.pixel_m);
    p.set("u_samples", options.samples_per_side);
    p.set("u_dim", scene.dim);
    p.set("u_frame_size", Vec2f(static_cast<float>(width), static_cast<float>(height)));
    p.set("u_to_light", to_key_light());
    p.set("u_domain_min", scene.domain.min);
    p.set("u_domain_max", scene.domain.max);
    const bool shaded = !shading.floor_visibility.empty();
    const Aabb3f& floor = shading.floor_bounds;
    p.set("u_floor_bounds",
          shaded ? Vec4f(floor.min.x(), floor.min.z(), floor.max.x(), floor.max.z()) : Vec4f(Vec4f::Zero()));
    p.set("u_grid_m", grid_spacing(scene.domain));
    const std::vector<Vec4f> edges = scene.dim == 3 ? back_edges(scene, width, height) : std::vector<Vec4f>();
    for (size_t i = 0; i < edges.size(); ++i) p.set(fmt::format("u_edges[{}]", i).c_str(), edges[i]);
    p.set("u_n_edges", static_cast<int>(edges.size()));
    draw_rows(width, height, options.samples_per_side * options.samples_per_side);
  }

  // Depth and ids from the camera.
  void draw_samples(const View& eye, const RenderScene& scene, size_t n_particles) {
    begin_depth(eye, samples->framebuffer(), true);
    draw_geometry(eye, scene, n_particles);
    if (!bodies.has(ParticleSurfaces::kWater) || !is_going_on()) return;
    begin_depth(eye, water_samples->framebuffer(), true);
    draw_surface(eye, scene, ParticleSurfaces::kWater);
  }

  // Depth from the key light.
  void draw_shadows(const View& light, const RenderScene& scene, size_t n_particles) {
    begin_depth(light, shadow.framebuffer(), false);
    draw_geometry(light, scene, n_particles);
    if (!is_going_on()) return;
    begin_depth(light, water_shadow.framebuffer(), false);
    draw_surface(light, scene, ParticleSurfaces::kWater);
  }

  void draw_frame(const RenderScene& scene, GLuint framebuffer, int width, int height);

  void unbind() {
    for (int unit = kTextureUnits - 1; unit >= 0; --unit) {
      bind_texture(static_cast<TextureUnit>(unit), 0);
      gl.BindTexture(GL_TEXTURE_BUFFER, 0);
      gl.BindTexture(GL_TEXTURE_3D, 0);
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

void ParticleRenderer::Impl::draw_frame(const RenderScene& scene, GLuint framebuffer, int width, int height) {
  if (!is_going_on()) return;
  const std::vector<uint32_t> colors = compute_particle_colors(scene);
  const GoesOn asks = goes_on == nullptr ? GoesOn() : [this] { return is_going_on(); };
  const ParticleSurfaces surfaces_of_bodies = make_particle_surfaces(scene, colors, asks);
  if (!is_going_on()) return;
  const ParticleShading shading = compute_particle_shading(scene, colors, surfaces_of_bodies.is_enclosed);
  if (!is_going_on()) return;
  const Aabb3f bounds = drawn_bounds(scene, shading.bounds);
  const int n = options.samples_per_side;
  const View eye = view_of(scene.camera, bounds, width * n, height * n);
  const Camera light_eye = light_camera(bounds);
  const ClipPlanes light_planes = light_eye.planes_around(shadow_bounds(scene, bounds));
  const View light(light_eye, light_planes, options.shadow_size_px, options.shadow_size_px);

  make_sample_target(samples, width * n, height * n);
  upload(scene, surfaces_of_bodies, shading);
  if (bodies.has(ParticleSurfaces::kWater)) make_sample_target(water_samples, width * n, height * n);
  gl.BindVertexArray(no_attributes.id());
  particles.bind(kParticles);
  surfaces.bind(kSurfaces);
  colliders.bind(kColliders);
  bodies.bind(kBodies);
  if (scene.dim == 3) draw_shadows(light, scene, shading.particles.size());
  if (is_going_on()) draw_samples(eye, scene, shading.particles.size());
  gl.Disable(GL_DEPTH_TEST);
  if (!is_going_on()) return;
  if (scene.dim == 3) draw_floor_sun(light, scene, light_planes.far_m - light_planes.near_m);
  if (is_going_on()) shade(eye, light, scene, shading, framebuffer, width, height);
}

bool ParticleRenderer::draw(const RenderScene& scene, GLuint framebuffer, int width, int height,
                            const GoesOn& goes_on) {
  scene.validate();
  Impl& r = *impl_;
  r.goes_on = goes_on ? &goes_on : nullptr;
  r.is_ended = false;
  r.draw_frame(scene, framebuffer, width, height);
  r.unbind();
  check_gl(r.gl, "drawing a frame");
  return !r.is_ended;
}

}  // namespace coppice::render
