// Drafts, tiles, and what the shaders are told.
#include "apps/render/volume_renderer.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "apps/render/brick_index.h"
#include "apps/render/color_scale.h"
#include "apps/render/scene_geometry.h"
#include "apps/render/volume_target.h"
#include "core/error.h"

namespace coppice::render {
namespace {

// Returns how many pixels of the frame are one of a draft, each way. Fog has no edges that would show it.
int draft_scale(VolumeMode mode) { return mode == VolumeMode::kFog ? 4 : 3; }
constexpr float kDraftFogStep = 2;  // cells
constexpr float kInfinity = std::numeric_limits<float>::infinity();
const Vec2i kTilePx(160, 90);

enum TextureUnit { kAtlas, kIndex, kAll, kColorTable, kOpaque, kTextureUnits };

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

struct VolumeRenderer::Impl {
  const GlFunctions& gl;
  std::optional<GlProgram> programs[3];  // by mode, made when first used
  GlProgram compose_full, compose_draft;
  GlVertexArray no_attributes;
  GlTexture color_table;
  BrickIndex drawn, all;
  VolumeTarget full, draft;
  DepthCopy opaque;
  bool has_opaque = false;
  std::optional<uint64_t> key;  // of the picture that is being drawn
  PixelBox shown;               // where its volume is
  PixelBox tiles;               // which tiles these pixels are in, row by row from the lowest
  int tiles_done = 0;
  bool has_draft = false;

  explicit Impl(const GlFunctions& functions)
      : gl(functions),
        compose_full(gl, "fullscreen.vert", "volume_composite.frag"),
        compose_draft(gl, "fullscreen.vert", "volume_composite.frag", "#define DRAFT"),
        no_attributes(gl),
        color_table(gl),
        drawn(gl),
        all(gl),
        full(gl),
        draft(gl),
        opaque(gl) {}

  const GlProgram& program(VolumeMode mode) {
    static constexpr const char* kDefines[] = {"#define FOG", "#define SURFACE", "#define SLICES"};
    const auto i = static_cast<size_t>(mode);
    if (!programs[i]) programs[i].emplace(gl, "fullscreen.vert", "volume.frag", kDefines[i]);
    return *programs[i];
  }

  void bind(int unit, GLenum target, GLuint texture) {
    gl.ActiveTexture(GL_TEXTURE0 + static_cast<GLenum>(unit));
    gl.BindTexture(target, texture);
  }

  void upload_colors(const VolumeStyle& style) {
    std::vector<float> texels;
    for (int i = 0; i < kVolumeColors; ++i) {
      const float at = static_cast<float>(i) / (kVolumeColors - 1);
      const Rgb c = color_at(style.map, at);
      texels.insert(texels.end(), {c.x(), c.y(), c.z(), -std::log2(1 - style.opacity_at(at))});
    }
    bind(kColorTable, GL_TEXTURE_2D, color_table.id());
    gl.TexImage2D(GL_TEXTURE_2D, 0, GL_RGBA32F, kVolumeColors, 1, 0, GL_RGBA, GL_FLOAT, texels.data());
    for (const GLenum filter : {GL_TEXTURE_MIN_FILTER, GL_TEXTURE_MAG_FILTER})
      gl.TexParameteri(GL_TEXTURE_2D, filter, GL_NEAREST);
  }

  // The program of the mode, with all that it asks for, for a target that is `scale` times as coarse as the
  // frame.
  void use(const BrickAtlas& atlas, const VolumeView& view, int scale) {
    const GlProgram& p = program(view.style.mode);
    p.use();
    gl.BindVertexArray(no_attributes.id());
    bind(kAtlas, GL_TEXTURE_3D, atlas.texture());
    bind(kIndex, GL_TEXTURE_3D, drawn.texture());
    bind(kAll, GL_TEXTURE_3D, all.texture());
    bind(kColorTable, GL_TEXTURE_2D, color_table.id());
    bind(kOpaque, GL_TEXTURE_2D, opaque.texture());
    p.set("u_atlas", static_cast<int>(kAtlas));
    p.set("u_index", static_cast<int>(kIndex));
    p.set("u_all", static_cast<int>(kAll));
    p.set("u_colors", static_cast<int>(kColorTable));
    p.set("u_opaque", static_cast<int>(kOpaque));
    p.set("u_has_opaque", has_opaque ? 1 : 0);
    set_camera(p, view, scale);
    set_volume(p, atlas, view, scale);
  }

  void set_camera(const GlProgram& p, const VolumeView& view, int scale) {
    const float aspect = static_cast<float>(view.width) / static_cast<float>(view.height);
    p.set("u_pixel_scale", static_cast<float>(scale));
    p.set("u_target_size", Vec2f(Vec2f(static_cast<float>(view.width), static_cast<float>(view.height)) /
                                 static_cast<float>(scale)));
    p.set("u_half_extent", view.camera.half_extent(aspect));
    p.set("u_orthographic", view.camera.projection == Projection::kOrthographic ? 1 : 0);
    p.set("u_clip_from_view", view.camera.clip_from_view(aspect, view.planes));
    p.set("u_to_light", to_key_light());
  }

  void set_volume(const GlProgram& p, const BrickAtlas& atlas, const VolumeView& view, int scale) {
    // Values stand at the centres of cells; on axes that the tree does not have they do not vary.
    Vec3d half = Vec3d::Constant(0.5), is_flat = Vec3d::Zero();
    for (int axis = atlas.dim(); axis < 3; ++axis) half[axis] = 0, is_flat[axis] = 1;
    const Vec3d to_sample = -half - all.origin().cast<double>();  // from cells of the tree
    Mat<double, 4> cell_from_world = Mat<double, 4>::Identity() / double(view.placement.cell_m);
    cell_from_world.block<3, 1>(0, 3) =
        to_sample - view.placement.origin_m.cast<double>() / double(view.placement.cell_m);
    cell_from_world(3, 3) = 1;
    const Mat<double, 4> world_from_view = view.camera.view_from_world().cast<double>().inverse();
    p.set("u_cell_from_view", Mat4f((cell_from_world * world_from_view).cast<float>()));
    p.set("u_bricks", all.size());
    Vec3f low = Vec3f::Zero(), high = all.size().cast<float>() * float(kBrickCells);
    for (int axis = atlas.dim(); axis < 3; ++axis) high[axis] = 1;
    // Sides where a body that reaches them has a face.
    Vec3f cut_low = is_flat.cast<float>(), cut_high = cut_low;
    for (int axis = 0; axis < atlas.dim() && view.style.bounds_m; ++axis) {
      const auto cell_of = [&](const Vec3f& world) {
        return static_cast<float>((double(world[axis]) - double(view.placement.origin_m[axis])) /
                                      double(view.placement.cell_m) +
                                  to_sample[axis]);
      };
      const float first = cell_of(view.style.bounds_m->min), last = cell_of(view.style.bounds_m->max);
      if (first > low[axis]) low[axis] = first, cut_low[axis] = 1;
      if (last < high[axis]) high[axis] = last, cut_high[axis] = 1;
    }
    p.set("u_cut_low", cut_low);
    p.set("u_cut_high", cut_high);
    p.set("u_low", low);
    p.set("u_high", high);
    p.set("u_is_flat", Vec3f(is_flat.cast<float>()));
    p.set("u_texel", Vec3f((atlas.slots().cast<float>() * float(kBrickSide)).cwiseInverse()));
    const VolumeStyle& s = view.style;
    const ScalarRange even = ColorScale(s.range, s.is_logarithmic).even_range();
    p.set("u_range", Vec2f(even.min, even.max));
    p.set("u_is_logarithmic", s.is_logarithmic ? 1 : 0);
    const bool is_coarse = scale > 1 && s.mode == VolumeMode::kFog;
    p.set("u_step", is_coarse ? kDraftFogStep : 1.0f);
    p.set("u_samples_exits", is_coarse ? 0 : 1);
    p.set("u_threshold", s.threshold);
    p.set("u_surface_color", Vec3f(s.surface_color.array().pow(2.2f)));
    p.set("u_is_clear", s.absorption ? 1 : 0);
    p.set("u_absorption", s.absorption.value_or(Vec3f::Zero()));
    Vec3f slice = Vec3f::Zero(), has_slice = Vec3f::Zero();
    for (int axis = 0; axis < 3; ++axis) {
      if (!s.slices[static_cast<size_t>(axis)]) continue;
      slice[axis] = *s.slices[static_cast<size_t>(axis)] + static_cast<float>(to_sample[axis]);
      has_slice[axis] = 1;
    }
    p.set("u_slice", slice);
    p.set("u_has_slice", has_slice);
    p.set("u_nearest", s.interpolates_slices ? 0 : 1);
    p.set("u_hides_zero", s.hides_zero ? 1 : 0);
  }

  void scissor(const PixelBox& box) {
    gl.Enable(GL_SCISSOR_TEST);
    gl.Scissor(box.low.x(), box.low.y(), box.high.x() - box.low.x(), box.high.y() - box.low.y());
  }

  // Draws into the target from here on.
  void begin_rays(const BrickAtlas& atlas, const VolumeView& view, VolumeTarget& target, int scale) {
    target.bind();
    gl.Viewport(0, 0, target.width(), target.height());
    gl.Disable(GL_BLEND);
    if (view.style.mode == VolumeMode::kFog) {
      gl.Disable(GL_DEPTH_TEST);
    } else {
      gl.Enable(GL_DEPTH_TEST);  // without it no depth is written
      gl.DepthFunc(GL_ALWAYS);
      gl.DepthMask(GL_TRUE);
    }
    use(atlas, view, scale);
  }

  void begin(const BrickAtlas& atlas, const VolumeView& view) {
    key.reset();
    tiles_done = 0;
    has_draft = false;
    drawn.update(atlas, drawn_range(view.style, atlas.dim()));
    all.update(atlas, {-kInfinity, kInfinity});
    shown = drawn.is_empty() ? PixelBox() : pixels_of(view, world_bounds(atlas, view.placement));
    tiles = shown.is_empty() ? PixelBox() : shown.coarser(kTilePx);
    if (shown.is_empty()) return;
    upload_colors(view.style);
    has_opaque = opaque.copy(view.framebuffer, view.width, view.height, shown.low, shown.high);
  }

  Aabb3f world_bounds(const BrickAtlas& atlas, const VolumePlacement& placement) const {
    Vec3f size = all.size().cast<float>() * float(kBrickCells);
    Vec3f low = all.origin().cast<float>();
    for (int axis = 0; axis < 3; ++axis) {
      if (axis < atlas.dim())
        low[axis] += 0.5f;
      else
        size[axis] = 1;
    }
    Aabb3f box;
    box.extend(Vec3f(placement.origin_m + placement.cell_m * low));
    box.extend(Vec3f(placement.origin_m + placement.cell_m * (low + size)));
    return box;
  }

  void draw_draft(const BrickAtlas& atlas, const VolumeView& view) {
    const int scale = draft_scale(view.style.mode);
    draft.begin((view.width + scale - 1) / scale, (view.height + scale - 1) / scale);
    begin_rays(atlas, view, draft, scale);
    scissor(shown.coarser(Vec2i::Constant(scale)));
    gl.DrawArrays(GL_TRIANGLES, 0, 3);
    gl.Finish();
    has_draft = true;
  }

  int num_tiles() const { return (tiles.high - tiles.low).prod(); }

  void draw_tiles(const BrickAtlas& atlas, const VolumeView& view, double until_ms, int at_least) {
    if (tiles_done == 0) full.begin(view.width, view.height);
    begin_rays(atlas, view, full, 1);
    const int across = tiles.high.x() - tiles.low.x();
    for (; tiles_done < num_tiles() && (at_least > 0 || now_ms() < until_ms); ++tiles_done, --at_least) {
      const Vec2i tile = tiles.low + Vec2i(tiles_done % across, tiles_done / across);
      scissor(tile_pixels({tile, tile + Vec2i::Ones()}));
      gl.DrawArrays(GL_TRIANGLES, 0, 3);
      gl.Finish();
    }
  }

  PixelBox tile_pixels(const PixelBox& box) const {
    return PixelBox{box.low.cwiseProduct(kTilePx), box.high.cwiseProduct(kTilePx)}.within(shown);
  }

  void compose_box(const VolumeView& view, const VolumeTarget& from, const PixelBox& box) {
    const bool is_draft = &from == &draft;
    if (box.is_empty() || (is_draft && !has_draft)) return;
    const GlProgram& p = is_draft ? compose_draft : compose_full;
    p.use();
    bind(0, GL_TEXTURE_2D, from.color());
    bind(1, GL_TEXTURE_2D, from.depth());
    p.set("u_color", 0);
    p.set("u_depth", 1);
    p.set("u_scale", static_cast<float>(draft_scale(view.style.mode)));
    p.set("u_is_solid", view.style.mode == VolumeMode::kFog ? 0 : 1);
    scissor(box);
    gl.DrawArrays(GL_TRIANGLES, 0, 3);
  }

  // Tiles that are done, whole rows of them and the part of one; the draft where they are not.
  void compose(const VolumeView& view) {
    gl.BindFramebuffer(GL_FRAMEBUFFER, view.framebuffer);
    gl.Viewport(0, 0, view.width, view.height);
    gl.BindVertexArray(no_attributes.id());
    gl.Enable(GL_BLEND);
    gl.BlendFunc(GL_ONE, GL_ONE_MINUS_SRC_ALPHA);
    if (view.style.mode == VolumeMode::kFog) {
      gl.Disable(GL_DEPTH_TEST);
    } else {
      gl.Enable(GL_DEPTH_TEST);
      gl.DepthFunc(GL_LEQUAL);
      gl.DepthMask(GL_TRUE);
    }
    const int across = std::max(1, tiles.high.x() - tiles.low.x());
    const int row = tiles.low.y() + tiles_done / across, column = tiles.low.x() + tiles_done % across;
    compose_box(view, full, tile_pixels({tiles.low, {tiles.high.x(), row}}));
    compose_box(view, full, tile_pixels({{tiles.low.x(), row}, {column, row + 1}}));
    compose_box(view, draft, tile_pixels({{column, row}, {tiles.high.x(), row + 1}}));
    compose_box(view, draft, tile_pixels({{tiles.low.x(), row + 1}, tiles.high}));
  }

  void unbind() {
    gl.Disable(GL_BLEND);
    gl.Disable(GL_DEPTH_TEST);
    gl.Disable(GL_SCISSOR_TEST);
    for (int unit = kTextureUnits - 1; unit >= 0; --unit) {
      bind(unit, GL_TEXTURE_2D, 0);
      gl.BindTexture(GL_TEXTURE_3D, 0);
    }
    gl.BindVertexArray(0);
    gl.UseProgram(0);
  }
};

VolumeRenderer::VolumeRenderer(const GlFunctions& gl) : impl_(std::make_unique<Impl>(gl)) {}
VolumeRenderer::~VolumeRenderer() = default;

bool VolumeRenderer::draw(const BrickAtlas& atlas, const VolumeView& view, double most_ms) {
  view.validate();
  Impl& r = *impl_;
  const double until_ms = now_ms() + most_ms;
  const uint64_t key = key_of(view, atlas);
  if (r.key != key) {
    r.begin(atlas, view);
    r.key = key;
  }
  const auto is_complete = [&] { return r.tiles_done == r.num_tiles(); };
  if (!is_complete()) {
    // A call draws something in any case: the draft, or a tile.
    const bool begins = !r.has_draft && std::isfinite(most_ms);
    if (begins) r.draw_draft(atlas, view);
    r.draw_tiles(atlas, view, until_ms, begins ? 0 : 1);
  }
  r.compose(view);
  r.unbind();
  check_gl(r.gl, "drawing a volume");
  return is_complete();
}

}  // namespace coppice::render
