// Drafts, accumulation and the final pass of particles.
#include "apps/render/point_renderer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "apps/render/draw_cost.h"
#include "apps/render/gl_objects.h"
#include "apps/render/id_target.h"
#include "apps/render/staged_points.h"
#include "core/error.h"

namespace coppice::render {
namespace {

enum TextureUnit { kParticles, kColors, kIds, kDepth, kTextureUnits };

enum class PointStyle { kFlat, kSprite, kSphere };

constexpr float kFlatBelowPx = 1.5f;    // no light on a sphere can be seen
constexpr float kSpriteBelowPx = 8.0f;  // its outline in perspective is a circle within a pixel
// Larger ones would hide what a body looks like: of one of these limits, the wider.
constexpr float kMaxDraftScale = 2.5f;
constexpr float kMaxDraftRadiusPx = 7.0f;
// Enlarged spheres cover many more pixels; in half of the rows and columns that costs a fourth.
constexpr int kDraftShrinkBits = 1;
constexpr int kDraftShrink = 1 << kDraftShrinkBits;
// A guess for a software rasterizer on a slow machine, until there is a measurement.
constexpr double kFirstPointMs = 1e-3;
constexpr double kFirstPixelMs = 2e-5;

class Stopwatch {
 public:
  double ms() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Distances from the camera along its axis at two percentiles of the points that are before it, m.
struct Distances {
  float near_m = 0.0f;
  float far_m = 0.0f;
};

Distances common_distances(std::span<const Vec3f> sample, const View& view) {
  std::vector<float> distances;
  distances.reserve(sample.size());
  for (const Vec3f& p : sample) {
    const float distance = -(view.view_from_world.block<1, 3>(2, 0).dot(p) + view.view_from_world(2, 3));
    if (distance > 0.0f) distances.push_back(distance);
  }
  if (distances.empty()) return {};
  const auto at_rank = [&](size_t rank) {
    const auto nth = distances.begin() + static_cast<std::ptrdiff_t>(rank);
    std::nth_element(distances.begin(), nth, distances.end());
    return *nth;
  };
  const size_t last = distances.size() - 1;
  return {at_rank(last / 20), at_rank(last - last / 20)};
}

PointStyle style_of(float radius_px) {
  if (radius_px < kFlatBelowPx) return PointStyle::kFlat;
  return radius_px < kSpriteBelowPx ? PointStyle::kSprite : PointStyle::kSphere;
}

// The view of a picture with fewer pixels.
View shrunk(View view, int shrink) {
  const float factor = static_cast<float>(shrink);
  view.size_px = (view.size_px / factor).array().ceil();
  view.pixel_m *= factor;
  return view;
}

}  // namespace

struct PointRenderer::Impl {
  const GlFunctions& gl;
  GLint max_points = 0;
  GlProgram flat_program;
  GlProgram sprite_program;
  GlProgram sphere_program;
  GlProgram shade_program;
  GlVertexArray no_attributes;
  GlBufferTexture point_buffer;
  GlBufferTexture color_buffer;
  StagedPoints staged;

  std::optional<View> view;  // of the last draw
  Distances distances;       // of the points in this view
  float radius_px = 0.0f;    // of the nearer points
  PointStyle style = PointStyle::kFlat;
  std::optional<IdTarget> full;   // points at their own size
  std::optional<IdTarget> draft;  // kDraftShrink times smaller
  float draft_scale = 0.0f;       // of radii; 0: there is no draft
  size_t next_chunk = 0;          // chunks before it are in `full`
  DrawCost full_cost{kFirstPointMs};
  DrawCost draft_cost{kFirstPointMs};
  DrawCost shade_cost{kFirstPixelMs};

  explicit Impl(const GlFunctions& functions)
      : gl(functions),
        flat_program(gl, "point.vert", "point_flat.frag"),
        sprite_program(gl, "point.vert", "point_sprite.frag"),
        sphere_program(gl, "particle.vert", "particle.frag"),
        shade_program(gl, "fullscreen.vert", "point_shade.frag"),
        no_attributes(gl),
        point_buffer(gl, GL_RGBA32UI),
        color_buffer(gl, GL_RGBA8) {
    gl.GetIntegerv(GL_MAX_TEXTURE_BUFFER_SIZE, &max_points);
  }

  bool is_complete() const { return next_chunk == staged.order.n_chunks() || staged.points.empty(); }

  void begin_anew() {
    next_chunk = 0;
    draft_scale = 0.0f;
  }

  void take_view(const View& new_view) {
    const bool same_size = full && view && view->size_px == new_view.size_px;
    if (!same_size) {
      view.reset();
      full.reset();
      draft.reset();
      full.emplace(gl, new_view.width_px(), new_view.height_px());
      const View small = shrunk(new_view, kDraftShrink);
      draft.emplace(gl, small.width_px(), small.height_px());
    }
    if (!view || *view != new_view) begin_anew();
    view = new_view;
    if (next_chunk != 0 || draft_scale != 0.0f) return;
    distances = common_distances(staged.sample, *view);
    radius_px = staged.radius_m / (view->orthographic ? view->pixel_m : view->pixel_m * distances.near_m);
    style = style_of(radius_px);
  }

  void use(const GlProgram& program, const View& drawn_view, float radius_m) {
    program.use();
    set_view(program, drawn_view);
    program.set("u_radius_m", radius_m);
    program.set("u_particles", static_cast<int>(kParticles));
  }

  const GlProgram& program_of(PointStyle drawn_as) const {
    if (drawn_as == PointStyle::kSphere) return sphere_program;
    return drawn_as == PointStyle::kFlat ? flat_program : sprite_program;
  }

  // Draws chunks [begin, end) into the target that is bound.
  void draw_chunks(size_t begin, size_t end, const View& drawn_view, float radius_m, PointStyle drawn_as) {
    const auto first = static_cast<GLint>(staged.order.chunk_begin(begin));
    const auto last = static_cast<GLint>(staged.order.chunk_begin(end));
    use(program_of(drawn_as), drawn_view, radius_m);
    if (drawn_as == PointStyle::kSphere) {
      gl.DrawArrays(GL_TRIANGLES, 3 * first, 3 * (last - first));
      return;
    }
    gl.Enable(GL_PROGRAM_POINT_SIZE);
    gl.DrawArrays(GL_POINTS, first, last - first);
    gl.Disable(GL_PROGRAM_POINT_SIZE);
  }

  void draw_draft(double most_ms) {
    const size_t n_chunks = staged.order.n_chunks();
    const size_t points = draft_cost.affordable(most_ms, staged.points.size());
    const size_t chunks = std::clamp<size_t>(points * n_chunks / staged.points.size(), 1, n_chunks);
    const float thinning = static_cast<float>(n_chunks) / static_cast<float>(chunks);
    draft_scale = std::min(std::cbrt(thinning), std::max(kMaxDraftScale, kMaxDraftRadiusPx / radius_px));
    draft->bind();
    draft->clear();
    const Stopwatch watch;
    // Enlarged points need their outline, and sprites of any size will do for a draft.
    draw_chunks(0, chunks, shrunk(*view, kDraftShrink), staged.radius_m * draft_scale,
                style == PointStyle::kSphere ? style : PointStyle::kSprite);
    gl.Finish();
    draft_cost.learn(staged.order.chunk_begin(chunks), watch.ms());
  }

  void accumulate(double most_ms) {
    const PointOrder& order = staged.order;
    const Stopwatch all;
    full->bind();
    if (next_chunk == 0) full->clear();
    do {
      const size_t points = full_cost.affordable(most_ms - all.ms(), staged.points.size());
      const size_t chunks = std::clamp<size_t>(points * order.n_chunks() / staged.points.size(), 1,
                                               order.n_chunks() - next_chunk);
      const size_t begin = std::exchange(next_chunk, next_chunk + chunks);
      const Stopwatch watch;
      draw_chunks(begin, next_chunk, *view, staged.radius_m, style);
      gl.Finish();
      full_cost.learn(order.chunk_begin(next_chunk) - order.chunk_begin(begin), watch.ms());
    } while (!is_complete() && all.ms() + full_cost.ms(staged.points.size() / order.n_chunks()) <= most_ms);
  }

  void draw_some(double most_ms) {
    // Commands from before are not what is measured here.
    gl.Finish();
    const size_t pixels = static_cast<size_t>(view->width_px()) * static_cast<size_t>(view->height_px());
    const double left_ms = std::max(most_ms - shade_cost.ms(pixels), 0.5 * most_ms);
    const bool fits = full_cost.affordable(left_ms, staged.points.size()) == staged.points.size();
    const bool is_new = next_chunk == 0 && draft_scale == 0.0f;
    if (is_new && !fits && staged.order.n_chunks() > 1) {
      draw_draft(left_ms);
    } else {
      accumulate(left_ms);
    }
  }

  void bind_texture(TextureUnit unit, GLuint texture) {
    gl.ActiveTexture(GL_TEXTURE0 + static_cast<GLenum>(unit));
    gl.BindTexture(GL_TEXTURE_2D, texture);
  }

  // Lights what pixels of a target see.
  void shade(const IdTarget& target, float radius_m, bool is_flat) {
    const bool is_draft = &target == &*draft;
    use(shade_program, *view, radius_m);
    bind_texture(kIds, target.ids());
    bind_texture(kDepth, target.depth());
    shade_program.set("u_colors", static_cast<int>(kColors));
    shade_program.set("u_ids", static_cast<int>(kIds));
    shade_program.set("u_depth", static_cast<int>(kDepth));
    shade_program.set("u_shrink_bits", is_draft ? kDraftShrinkBits : 0);
    // Points near a body's surface come before the draft, those within the body do not.
    shade_program.set("u_recede_m", is_draft && next_chunk != 0 ? 2.0f * radius_m : 0.0f);
    shade_program.set("u_is_flat", is_flat ? 1 : 0);
    shade_program.set("u_near_m", distances.near_m);
    shade_program.set("u_far_m", std::max(distances.far_m, distances.near_m + staged.radius_m));
    gl.DrawArrays(GL_TRIANGLES, 0, 3);
  }

  // The draft closes gaps between points; once half of them are there it would only blur outlines.
  bool shows_draft() const { return draft_scale != 0.0f && 2 * next_chunk < staged.order.n_chunks(); }

  void shade_all(GLuint framebuffer) {
    gl.BindFramebuffer(GL_FRAMEBUFFER, framebuffer);
    gl.Viewport(0, 0, view->width_px(), view->height_px());
    gl.Enable(GL_DEPTH_TEST);
    gl.DepthFunc(GL_LESS);
    gl.DepthMask(GL_TRUE);
    if (next_chunk != 0) shade(*full, staged.radius_m, style == PointStyle::kFlat);
    if (shows_draft()) shade(*draft, staged.radius_m * draft_scale, false);
  }

  void unbind() {
    for (int unit = kTextureUnits - 1; unit >= 0; --unit) {
      bind_texture(static_cast<TextureUnit>(unit), 0);
      gl.BindTexture(GL_TEXTURE_BUFFER, 0);
    }
    gl.BindVertexArray(0);
    gl.UseProgram(0);
    gl.Disable(GL_DEPTH_TEST);
  }
};

PointRenderer::PointRenderer(const GlFunctions& gl) : impl_(std::make_unique<Impl>(gl)) {}
PointRenderer::~PointRenderer() = default;

void PointRenderer::set_points(const PointLayer& layer) {
  Impl& r = *impl_;
  // A large sphere has three vertices, which are counted by a GLint.
  const size_t limit = std::min<size_t>(static_cast<size_t>(r.max_points), 0x7fffffff / 3);
  if (layer.points.size() > limit) {
    throw Error(ErrorCode::kUnavailable, fmt::format("this OpenGL driver draws at most {} particles, not {}",
                                                     limit, layer.points.size()));
  }
  stage_points(layer, &r.staged);
  r.begin_anew();
  r.point_buffer.upload(std::as_bytes(std::span(r.staged.points)));
  r.color_buffer.upload(std::as_bytes(std::span(r.staged.colors)));
  check_gl(r.gl, "copying particles to the graphics device");
}

void PointRenderer::draw(const View& view, GLuint framebuffer, double most_ms) {
  Impl& r = *impl_;
  r.take_view(view);
  if (r.staged.points.empty()) return;
  r.gl.BindVertexArray(r.no_attributes.id());
  r.point_buffer.bind(kParticles);
  r.color_buffer.bind(kColors);
  const bool was_complete = r.is_complete();
  if (!was_complete) r.draw_some(most_ms);
  const Stopwatch watch;
  r.shade_all(framebuffer);
  if (!was_complete) {
    r.gl.Finish();
    r.shade_cost.learn(static_cast<size_t>(view.width_px()) * static_cast<size_t>(view.height_px()),
                       watch.ms());
  }
  r.unbind();
  check_gl(r.gl, "drawing particles");
}

bool PointRenderer::is_complete() const { return impl_->is_complete(); }

std::optional<PointHit> PointRenderer::wait_and_pick(int x, int y) const {
  const Impl& r = *impl_;
  if (!r.view || r.staged.points.empty()) return std::nullopt;
  if (x < 0 || y < 0 || x >= r.view->width_px() || y >= r.view->height_px()) return std::nullopt;
  const auto pick_in = [&](const IdTarget& target) -> std::optional<PointHit> {
    GLuint id = 0;
    PointHit hit{};
    // Rows are counted from the bottom.
    const int shrink = &target == &*r.draft ? kDraftShrink : 1;
    const int column = x / shrink;
    const int row = (r.view->height_px() - 1 - y) / shrink;
    r.gl.BindFramebuffer(GL_FRAMEBUFFER, target.framebuffer());
    r.gl.ReadBuffer(GL_COLOR_ATTACHMENT0);
    r.gl.ReadPixels(column, row, 1, 1, GL_RED_INTEGER, GL_UNSIGNED_INT, &id);
    r.gl.ReadPixels(column, row, 1, 1, GL_DEPTH_COMPONENT, GL_FLOAT, &hit.depth);
    r.gl.BindFramebuffer(GL_FRAMEBUFFER, 0);
    check_gl(r.gl, "reading a particle's id");
    if (id == 0) return std::nullopt;
    hit.index = static_cast<uint32_t>(r.staged.order.point_from_stored(id - 1));
    return hit;
  };
  std::optional<PointHit> hit;
  if (r.next_chunk != 0) hit = pick_in(*r.full);
  if (!hit && r.shows_draft()) hit = pick_in(*r.draft);
  return hit;
}

ScalarRange PointRenderer::range() const { return impl_->staged.range; }
size_t PointRenderer::n_bad_positions() const { return impl_->staged.n_bad_positions; }
size_t PointRenderer::n_bad_values() const { return impl_->staged.n_bad_values; }

}  // namespace coppice::render
