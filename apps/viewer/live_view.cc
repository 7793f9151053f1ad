// Snapshots on the screen (see live_view.h).
#include "apps/viewer/live_view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "apps/render/color_scale.h"
#include "apps/render/line_renderer.h"
#include "apps/render/point_renderer.h"
#include "apps/render/solid_renderer.h"
#include "apps/render/volume_renderer.h"

namespace coppice::viewer {
namespace {

const render::Rgb kBackground(0.26f, 0.28f, 0.31f), kDomain(0.52f, 0.55f, 0.60f),
    kCollider(0.85f, 0.72f, 0.45f), kCell(1.0f, 1.0f, 1.0f);
constexpr int kCircleSegments = 48;

// Returns the point at an angle on a circle about `axis`.
Vec3f on_circle(const render::RenderCollider& c, int axis, float angle) {
  Vec3f p = Vec3f::Zero();
  p[(axis + 1) % 3] = c.radius_m * std::cos(angle), p[(axis + 2) % 3] = c.radius_m * std::sin(angle);
  return c.center + c.world_from_local * p;
}

void add_sphere(render::LineRenderer& lines, const render::RenderCollider& c, int dim) {
  for (int axis = dim == 2 ? 2 : 0; axis < 3; ++axis) {
    for (int i = 0; i < kCircleSegments; ++i) {
      const auto angle = [](int k) {
        return static_cast<float>(2 * M_PI) * static_cast<float>(k) / kCircleSegments;
      };
      lines.add_segment(on_circle(c, axis, angle(i)), on_circle(c, axis, angle(i + 1)), kCollider);
    }
  }
}

void add_turned_box(render::LineRenderer& lines, const render::RenderCollider& c, int dim) {
  const auto corner = [&](int bits) {
    Vec3f p;
    for (int k = 0; k < 3; ++k) p[k] = (bits >> k & 1) != 0 ? c.half_size[k] : -c.half_size[k];
    if (dim == 2) p.z() = 0;
    return Vec3f(c.center + c.world_from_local * p);
  };
  for (int bits = 0; bits < (dim == 2 ? 4 : 8); ++bits) {
    for (int k = 0; k < dim; ++k)
      if ((bits >> k & 1) == 0) lines.add_segment(corner(bits), corner(bits | 1 << k), kCollider);
  }
}

// The circles of its ends, and lines between them.
void add_capsule(render::LineRenderer& lines, const render::RenderCollider& c, int dim) {
  const float half_height = c.half_size.y() - c.radius_m;
  for (const float end : {-half_height, half_height}) {
    render::RenderCollider ball = c;
    ball.center += c.world_from_local * Vec3f(0, end, 0);
    add_sphere(lines, ball, dim);
  }
  for (int k = 0; k < 3; k += dim == 2 ? 3 : 2) {
    for (const float side : {-c.radius_m, c.radius_m}) {
      Vec3f from = side * Vec3f::Unit(k), to = from;
      from.y() = -half_height, to.y() = half_height;
      lines.add_segment(c.center + c.world_from_local * from, c.center + c.world_from_local * to, kCollider);
    }
  }
}

// Where a plane cuts the sides of the domain.
void add_plane(render::LineRenderer& lines, const render::RenderCollider& c, int dim) {
  const auto corner = [&](int bits) {
    Vec3f p;
    for (int k = 0; k < 3; ++k) p[k] = (bits >> k & 1) != 0 ? c.half_size[k] : -c.half_size[k];
    return p;
  };
  for (int axis = 0; axis < 3; ++axis) {
    for (int side = 0; side < 2; ++side) {
      if (dim == 2 && (axis != 2 || side == 1)) continue;  // the one side of the world that is seen
      std::vector<Vec3f> cuts;
      const int u = (axis + 1) % 3, v = (axis + 2) % 3;
      const std::array<int, 5> around{0, 1 << u, 1 << u | 1 << v, 1 << v, 0};
      for (size_t e = 0; e < 4; ++e) {
        const Vec3f from = corner(side << axis | around[e]), to = corner(side << axis | around[e + 1]);
        const float before = c.normal.dot(from) - c.offset_m, after = c.normal.dot(to) - c.offset_m;
        if ((before < 0) != (after < 0)) cuts.push_back(from + before / (before - after) * (to - from));
      }
      if (cuts.size() == 2) lines.add_segment(c.center + cuts[0], c.center + cuts[1], kCollider);
    }
  }
}

void add_collider(render::LineRenderer& lines, const render::RenderCollider& c, int dim) {
  switch (c.shape) {
    case render::RenderColliderShape::kSphere:
      return add_sphere(lines, c, dim);
    case render::RenderColliderShape::kCapsule:
      return add_capsule(lines, c, dim);
    case render::RenderColliderShape::kPlane:
      return add_plane(lines, c, dim);
    case render::RenderColliderShape::kBox:
    case render::RenderColliderShape::kMesh:  // the box around it
      return add_turned_box(lines, c, dim);
  }
}

Aabb3f bounds_of(const Snapshot& s) {
  Aabb3f bounds = s.domain;
  for (const render::RenderCollider& c : s.colliders) {
    const Vec3f reach = Vec3f::Constant(std::max(c.radius_m, c.half_size.norm()));
    bounds.extend(Vec3f(c.center - reach)), bounds.extend(Vec3f(c.center + reach));
  }
  // One stray particle must not spoil the depth range, but those near the domain are seen.
  const Vec3f around = 0.5f * (s.domain.max - s.domain.min);
  return {bounds.min - around, bounds.max + around};
}

// A set of points on the graphics device.
struct LivePoints {
  explicit LivePoints(const render::GlFunctions& gl) : renderer(gl) {}
  render::PointRenderer renderer;
  ColorChoice choice;  // that its points were coloured with
  ShownRange shown;
};

// A volume on the graphics device. Each has a renderer of its own, which keeps how far its picture has come.
struct LiveVolume {
  explicit LiveVolume(const render::GlFunctions& gl) : atlas(gl), renderer(gl) {}
  render::BrickAtlas atlas;
  render::VolumeRenderer renderer;
  ColorChoice choice;
  ShownRange shown;
  bool is_complete = false;
  uint64_t version_before = 0;  // counts up while the volumes that are drawn before it change
};

const ColorChoice& choice_of(const ViewOptions& options, const std::string& key) {
  static const ColorChoice none;
  const auto found = options.colors.find(key);
  return found == options.colors.end() ? none : found->second;
}

// Returns whether the surfaces of all bodies are seen, so that what they enclose need not be.
bool shows_bodies(const Snapshot& s, const ViewOptions& options) {
  return options.shows_volumes && std::ranges::all_of(s.volumes, [&](const VolumeSet& v) {
           return !v.is_body || mode_of(v, options) == render::VolumeMode::kSurface;
         });
}

void stage(const PointSet& set, const ColorChoice& choice, bool hides_enclosed, LivePoints& to) {
  render::PointLayer layer{
      .points = set.points,
      .is_hidden = hides_enclosed ? std::span<const uint8_t>(set.is_enclosed) : std::span<const uint8_t>(),
      .radius_m = set.radius_m,
      .is_categorical = set.is_categorical,
      .n_categories = set.categories.size(),
      .map = choice.map.value_or(set.map),
      .percentiles = choice.percentiles,
      .is_logarithmic = choice.is_logarithmic.value_or(false)};
  if (choice.range == RangeChoice::kGiven) layer.range = set.range, layer.percentiles = {};
  if (choice.range == RangeChoice::kFixed) layer.range = choice.fixed;
  if (!set.palette.empty()) layer.palette = set.palette;
  to.renderer.set_points(layer);
  to.choice = choice;
  to.shown = {.range = to.renderer.range(),
              .n_bad_positions = to.renderer.n_bad_positions(),
              .n_bad_values = to.renderer.n_bad_values(),
              .map = layer.map,
              .is_logarithmic = layer.is_logarithmic};
}

void stage(const VolumeSet& set, const ColorChoice& choice, LiveVolume& to) {
  to.choice = choice;
  ShownRange& shown = to.shown;
  shown.map = choice.map.value_or(set.style.map);
  shown.is_logarithmic = choice.is_logarithmic.value_or(set.style.is_logarithmic);
  shown.threshold = choice.threshold.value_or(set.style.threshold);
  shown.n_bad_values = count_not_finite(set.bricks);
  render::ScalarRange range = set.has_range ? set.style.range : whole_range(set.bricks);
  if (choice.range == RangeChoice::kFixed) range = choice.fixed;
  if (choice.range == RangeChoice::kPercentiles)
    range = percentile_range(set.bricks, choice.percentiles, shown.is_logarithmic);
  shown.range = render::ColorScale(range, shown.is_logarithmic).range();
  // Volumes need a range that is not empty.
  if (!(shown.range.min < shown.range.max))
    shown.range.max = shown.range.min + std::max(1e-6f * std::abs(shown.range.min), 1e-30f);
  // A threshold that nobody has chosen for a field that is no surface by itself may be none of its values.
  const bool is_chosen = choice.threshold || set.style.mode == render::VolumeMode::kSurface;
  if (!is_chosen && !(shown.threshold > shown.range.min && shown.threshold < shown.range.max))
    shown.threshold = 0.5f * (shown.range.min + shown.range.max);
}

class LiveViewOf final : public LiveView {
 public:
  explicit LiveViewOf(const render::GlFunctions& gl) : gl_(gl), lines_(gl), boxes_(gl), solids_(gl) {}

  void show(std::shared_ptr<const Snapshot> snapshot) override {
    snapshot_.reset();  // when copying it fails, what is there is of no moment
    while (points_.size() < snapshot->points.size()) points_.push_back(std::make_unique<LivePoints>(gl_));
    points_.resize(snapshot->points.size());
    hides_enclosed_ = shows_bodies(*snapshot, options_);
    for (size_t i = 0; i < points_.size(); ++i) {
      const PointSet& set = snapshot->points[i];
      stage(set, choice_of(options_, color_key(set)), hides_enclosed_, *points_[i]);
    }
    while (volumes_.size() < snapshot->volumes.size()) volumes_.push_back(std::make_unique<LiveVolume>(gl_));
    volumes_.resize(snapshot->volumes.size());
    for (size_t i = 0; i < volumes_.size(); ++i) {
      const VolumeSet& set = snapshot->volumes[i];
      volumes_[i]->atlas.update(set.bricks);
      stage(set, choice_of(options_, color_key(set)), *volumes_[i]);
    }
    snapshot_ = std::move(snapshot);
    has_lines_ = has_boxes_ = has_solids_ = false;
    ++opaque_version_;
  }

  bool draw(const render::Camera& camera, const ViewOptions& options, GLuint framebuffer, int width,
            int height) override {
    if (width <= 0 || height <= 0) return true;  // a window that is rolled up
    gl_.BindFramebuffer(GL_FRAMEBUFFER, framebuffer);
    gl_.Viewport(0, 0, width, height);
    gl_.DepthMask(GL_TRUE);
    const GLfloat color[4] = {kBackground.x(), kBackground.y(), kBackground.z(), 1}, farthest = 1;
    gl_.ClearBufferfv(GL_COLOR, 0, color);
    gl_.ClearBufferfv(GL_DEPTH, 0, &farthest);
    if (snapshot_ == nullptr) return true;
    const render::View view(camera, camera.planes_around(bounds_of(*snapshot_)), width, height);
    view_ = view, framebuffer_ = framebuffer;
    const size_t parts =
        (options.shows_points ? points_.size() : 0) + (options.shows_volumes ? volumes_.size() : 0);
    const double share_ms = options.most_ms / static_cast<double>(std::max<size_t>(parts, 1));
    bool is_complete = true;
    restage(options);
    if (options.shows_points) {
      for (const auto& set : points_) {
        set->renderer.draw(view, framebuffer, share_ms);
        is_complete &= set->renderer.is_complete();
      }
    }
    prepare_lines(options);
    lines_.draw(view, framebuffer);
    prepare_solids(options);
    solids_.draw(view, framebuffer);
    prepare_boxes(options);
    boxes_.draw(view, framebuffer);
    // Volumes are drawn over what is opaque: while that changes, they begin anew. The call that completes the
    // points changes them, too.
    const bool were_complete = std::exchange(are_points_complete_, is_complete);
    const bool is_opaque_new = !is_complete || !were_complete || !(options == options_);
    opaque_version_ += is_opaque_new, options_ = options;
    return draw_volumes(camera, view, framebuffer, share_ms) && is_complete;
  }

  std::optional<Picked> pick(int x, int y) override {
    std::optional<Picked> nearest;
    float depth = 2;
    for (size_t i = 0; options_.shows_points && i < points_.size(); ++i) {
      const std::optional<render::PointHit> hit = points_[i]->renderer.wait_and_pick(x, y);
      if (!hit || hit->depth >= depth) continue;
      depth = hit->depth;
      nearest = Picked{i, hit->index};
    }
    return nearest;
  }

  std::optional<Vec3f> position_at(int x, int y) override {
    if (!view_ || x < 0 || y < 0 || x >= view_->width_px() || y >= view_->height_px()) return std::nullopt;
    GLfloat depth = 1;
    gl_.BindFramebuffer(GL_FRAMEBUFFER, framebuffer_);
    gl_.ReadPixels(x, view_->height_px() - 1 - y, 1, 1, GL_DEPTH_COMPONENT, GL_FLOAT, &depth);
    if (!(depth < 1)) return std::nullopt;
    const Vec2f at(static_cast<float>(x) + 0.5f, static_cast<float>(view_->height_px() - y) - 0.5f);
    const Vec2f ndc = 2 * at.cwiseQuotient(view_->size_px) - Vec2f::Ones();
    const Mat4f clip_from_world = view_->clip_from_view * view_->view_from_world;
    const Vec4f world = clip_from_world.inverse() * Vec4f(ndc.x(), ndc.y(), 2 * depth - 1, 1);
    return Vec3f(world.head<3>() / world.w());
  }

  std::vector<ShownRange> ranges() const override {
    std::vector<ShownRange> all;
    for (const auto& set : points_) all.push_back(set->shown);
    return all;
  }
  std::vector<ShownRange> volume_ranges() const override {
    std::vector<ShownRange> all;
    for (const auto& volume : volumes_) all.push_back(volume->shown);
    return all;
  }

 private:
  void restage(const ViewOptions& options) {
    const bool hides_enclosed = shows_bodies(*snapshot_, options);
    const bool is_other = std::exchange(hides_enclosed_, hides_enclosed) != hides_enclosed;
    if (!is_other && options.colors == options_.colors) return;
    for (size_t i = 0; i < points_.size(); ++i) {
      const ColorChoice& choice = choice_of(options, color_key(snapshot_->points[i]));
      if (is_other || !(choice == points_[i]->choice))
        stage(snapshot_->points[i], choice, hides_enclosed, *points_[i]);
    }
    for (size_t i = 0; i < volumes_.size(); ++i) {
      const ColorChoice& choice = choice_of(options, color_key(snapshot_->volumes[i]));
      if (!(choice == volumes_[i]->choice)) stage(snapshot_->volumes[i], choice, *volumes_[i]);
    }
  }
  // The user's choices take precedence over the simulation's.
  render::VolumeStyle style_of(size_t volume, const ViewOptions& options) const {
    const VolumeSet& set = snapshot_->volumes[volume];
    const ShownRange& shown = volumes_[volume]->shown;
    render::VolumeStyle style = set.style;
    style.map = shown.map, style.range = shown.range, style.is_logarithmic = shown.is_logarithmic;
    style.threshold = shown.threshold;
    style.mode = mode_of(set, options);
    style.interpolates_slices &= options.interpolates_slices;
    const auto is_set = [](const auto& slices) {
      return std::ranges::any_of(slices, [](const auto& slice) { return slice.has_value(); });
    };
    std::array<std::optional<float>, 3> slices_m = options.slices_m;
    if (!is_set(slices_m)) {
      if (is_set(style.slices)) return style;
      slices_m[2] = snapshot_->domain.center().z();
    }
    for (size_t axis = 0; axis < 3; ++axis) {
      style.slices[axis].reset();
      if (slices_m[axis])
        style.slices[axis] =
            (*slices_m[axis] - set.placement.origin_m[static_cast<int>(axis)]) / set.placement.cell_m;
    }
    return style;
  }
  bool draw_volumes(const render::Camera& camera, const render::View& view, GLuint framebuffer,
                    double share_ms) {
    bool is_complete = true, is_new_before = false;
    for (size_t i = 0; options_.shows_volumes && i < volumes_.size(); ++i) {
      LiveVolume& volume = *volumes_[i];
      volume.version_before += is_new_before;
      const bool was_complete =
          std::exchange(volume.is_complete, draw_volume(i, camera, view, framebuffer, share_ms));
      // Surfaces and slices have depth, which rays through the next volumes end at.
      if (style_of(i, options_).mode != render::VolumeMode::kFog)
        is_new_before |= !was_complete || !volume.is_complete;
      is_complete &= volume.is_complete;
    }
    return is_complete;
  }
  bool draw_volume(size_t i, const render::Camera& camera, const render::View& view, GLuint framebuffer,
                   double most_ms) {
    const VolumeSet& set = snapshot_->volumes[i];
    render::VolumeView v{.style = style_of(i, options_), .placement = set.placement, .camera = camera};
    v.planes = camera.planes_around(bounds_of(*snapshot_));
    v.framebuffer = framebuffer, v.width = view.width_px(), v.height = view.height_px();
    v.opaque_version = opaque_version_ + volumes_[i]->version_before;
    return volumes_[i]->renderer.draw(volumes_[i]->atlas, v, most_ms);
  }
  void prepare_lines(const ViewOptions& options) {
    if (has_lines_ && options.cell_m == options_.cell_m && options.shows_domain == options_.shows_domain &&
        options.shows_colliders == options_.shows_colliders && options.is_solid == options_.is_solid)
      return;
    lines_.clear();
    if (options.shows_domain) lines_.add_box(snapshot_->domain, kDomain);
    if (snapshot_->wanted.cell_m == options.cell_m)
      for (const CellReading& cell : snapshot_->cells) lines_.add_box(cell.bounds, kCell);
    for (const render::RenderCollider& c : snapshot_->colliders) {
      if (!options.shows_colliders || options.is_solid) break;
      add_collider(lines_, c, snapshot_->dim);
    }
    has_lines_ = true;
  }
  void prepare_solids(const ViewOptions& options) {
    if (has_solids_ && options.shows_domain == options_.shows_domain &&
        options.shows_colliders == options_.shows_colliders && options.is_solid == options_.is_solid)
      return;
    const bool has_floor = options.is_solid && options.shows_domain;
    std::vector<render::RenderCollider> colliders;
    if (options.is_solid && options.shows_colliders) colliders = snapshot_->colliders;
    solids_.set_scene(colliders, has_floor ? snapshot_->domain : Aabb3f(), snapshot_->dim);
    has_solids_ = true;
  }
  // Coarse levels first: where edges lie in each other theirs are seen.
  void prepare_boxes(const ViewOptions& options) {
    if (has_boxes_ && options.shows_trees == options_.shows_trees &&
        options.tree_levels == options_.tree_levels && options.colors_by_fill == options_.colors_by_fill)
      return;
    boxes_.clear();
    has_boxes_ = true;
    if (!options.shows_trees) return;
    for (size_t level = 0; level < kMostTreeLevels; ++level) {
      if (!options.tree_levels[level]) continue;
      for (const TreeSet& tree : snapshot_->trees) {
        if (level >= tree.boxes.levels.size()) continue;
        const render::TreeLevel& of = tree.boxes.levels[level];
        for (const render::TreeBox& box : of.boxes) {
          boxes_.add_box(of.bounds_of(box), options.colors_by_fill ? color_at(kFillMap, of.fill_of(box))
                                                                   : tree_level_color(level));
        }
      }
    }
  }

  const render::GlFunctions& gl_;
  render::LineRenderer lines_, boxes_;
  render::SolidRenderer solids_;
  std::vector<std::unique_ptr<LivePoints>> points_;   // as Snapshot::points
  std::vector<std::unique_ptr<LiveVolume>> volumes_;  // as Snapshot::volumes
  std::shared_ptr<const Snapshot> snapshot_;
  uint64_t opaque_version_ = 0;
  bool are_points_complete_ = false;
  bool hides_enclosed_ = false;  // points that bodies enclose
  ViewOptions options_;          // of the last draw
  std::optional<render::View> view_;
  GLuint framebuffer_ = 0;
  bool has_lines_ = false, has_boxes_ = false, has_solids_ = false;
};

}  // namespace

std::unique_ptr<LiveView> make_live_view(const render::GlFunctions& gl) {
  return std::make_unique<LiveViewOf>(gl);
}

}  // namespace coppice::viewer
