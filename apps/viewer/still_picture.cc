// Snapshots for the headless renderer (see still_picture.h).
#include "apps/viewer/still_picture.h"

#include <algorithm>

#include "apps/render/gl_context.h"
#include "apps/render/offscreen_target.h"
#include "apps/render/point_layer.h"
#include "apps/viewer/live_view.h"

namespace coppice::viewer {

bool has_still_scene(const Snapshot& snapshot, const ViewOptions& options) {
  // Files have the surfaces of bodies, too.
  const auto is_in_files = [&](const VolumeSet& v) {
    return v.is_body && mode_of(v, options) == render::VolumeMode::kSurface;
  };
  const bool has_volumes = options.shows_volumes && !std::ranges::all_of(snapshot.volumes, is_in_files);
  const bool has_trees = options.shows_trees && !snapshot.trees.empty();
  return options.shows_points && !has_volumes && !has_trees && options.colors.empty();
}

void make_still_scene(const Snapshot& snapshot, const render::Camera& camera, const ViewOptions& options,
                      StillScene& still) {
  render::RenderScene& r = still.scene;
  r = {};
  r.dim = snapshot.dim;
  r.domain = snapshot.domain;
  r.camera = camera;
  if (options.shows_colliders) r.colliders = snapshot.colliders;
  still.positions.clear(), still.colors.clear(), still.scalar.clear(), still.looks.clear();
  if (!snapshot.points.empty()) {
    const PointSet& look = snapshot.points.front();
    r.radius_m = look.radius_m, r.body_spacing_m = look.body_spacing_m;
    r.color_mode = look.is_categorical ? render::ColorMode::kMaterial : render::ColorMode::kScalar;
    r.color_map = look.map;
    r.range = look.range;
    const auto palette = render::default_palette();
    still.palette.assign(look.palette.begin(), look.palette.end());
    if (still.palette.empty()) still.palette.assign(palette.begin(), palette.end());
  }
  // The colour behind the palette is that of values that are no category, as in a window.
  const size_t bad = std::min<size_t>(still.palette.size(), 255);
  const auto color_of = [&](const PointSet& set, float value) -> size_t {
    const size_t named = set.categories.size();
    if (!(value >= 0 && value < 16777216.0f)) return bad;
    const auto index = static_cast<size_t>(value);
    return named > 0 && index >= named ? bad : index % bad;
  };
  for (const PointSet& set : snapshot.points) {
    for (const render::PackedPoint& p : set.points) {
      still.positions.push_back(p.position);
      if (r.color_mode == render::ColorMode::kScalar)
        still.scalar.push_back(p.value);
      else
        still.colors.push_back(static_cast<uint8_t>(color_of(set, p.value)));
    }
  }
  for (const PointSet& set : snapshot.points) {
    if (set.looks.empty())
      still.looks.insert(still.looks.end(), set.points.size(), render::Look::kSpheres);
    else
      still.looks.insert(still.looks.end(), set.looks.begin(), set.looks.end());
  }
  r.looks = still.looks;
  r.positions = still.positions, r.materials = still.colors, r.scalar = still.scalar;
  if (still.palette.empty()) return;
  still.palette.resize(bad), still.palette.push_back(render::kBadValueColor);
  r.palette = still.palette;
}

// A context of its own, with what a window would draw in.
struct StillRenderer::Live {
  Live(int width, int height) {
    const render::GlContext::Current current(context);
    target = std::make_unique<render::OffscreenTarget>(context.gl(), width, height, true);
    try {
      view = make_live_view(context.gl());
    } catch (...) {
      target.reset();  // while the context is current
      throw;
    }
  }
  ~Live() {
    try {
      const render::GlContext::Current current(context);
      view.reset(), target.reset();
    } catch (const Error&) {
      // A window's context may be current here; the deleters would act on what is in that one.
      static_cast<void>(view.release());
      static_cast<void>(target.release());
    }
  }
  render::Image render(const Snapshot& snapshot, const render::Camera& camera, const ViewOptions& options) {
    const render::GlContext::Current current(context);
    // The view lets go of it before this returns.
    view->show({&snapshot, [](const Snapshot*) {}});
    ViewOptions whole = options;
    whole.most_ms = 1000;
    while (!view->draw(camera, whole, target->framebuffer(), target->width(), target->height())) {
    }
    render::Image image = target->wait_and_read();
    view->show(std::make_shared<const Snapshot>());
    return image;
  }

  render::GlContext context;
  std::unique_ptr<render::OffscreenTarget> target;
  std::unique_ptr<LiveView> view;
};

StillRenderer::StillRenderer() = default;
StillRenderer::~StillRenderer() = default;

render::Image StillRenderer::render(const Snapshot& snapshot, const render::Camera& camera, int width,
                                    int height, const ViewOptions& options) {
  if (width != width_ || height != height_) renderer_.reset(), live_.reset();
  width_ = width, height_ = height;
  if (!has_still_scene(snapshot, options)) {
    if (!live_) live_ = std::make_unique<Live>(width, height);
    return live_->render(snapshot, camera, options);
  }
  if (!renderer_) renderer_.emplace(width, height);
  make_still_scene(snapshot, camera, options, still_);
  return renderer_->render(still_.scene);
}

}  // namespace coppice::viewer
