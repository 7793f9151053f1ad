// Pictures of volumes against rays that are followed on the host. Needs EGL.
#include "apps/render/brick_pack.h"
#include "apps/render/scene_geometry.h"
#include "render_volumes.kernels.h"
#include "tests/apps/render_volume_fixture.h"

namespace coppice::render {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

float distance_to_origin(int x, int y, int z) {
  return std::sqrt((x + 0.5f) * (x + 0.5f) + (y + 0.5f) * (y + 0.5f) + (z + 0.5f) * (z + 0.5f));
}
// A ball about the origin whose values pass 4 at `radius`.
CellFunction ball(float radius) {
  return [radius](int x, int y, int z) {
    return std::clamp(radius + 4 - distance_to_origin(x, y, z), 0.0f, 8.0f);
  };
}
// Smooth, with values from 0 to 1, and zero in much of the box.
float smoke(int x, int y, int z) {
  const float r = distance_to_origin(x, y, z);
  const float v =
      std::exp(-(r - 12) * (r - 12) / 18) * (0.6f + 0.4f * std::sin(0.4f * x) * std::cos(0.3f * z));
  return v > 0.01f ? v : 0;
}

// Interpolates between the centres of cells.
float interpolate(const CellFunction& f, const Vec3f& p) {
  const Vec3f q = p - Vec3f::Constant(0.5f);
  const Vec3i i = q.array().floor().cast<int>();
  const Vec3f u = q - i.cast<float>();
  float sum = 0;
  for (int corner = 0; corner < 8; ++corner) {
    float w = 1;
    Vec3i at = i;
    for (int axis = 0; axis < 3; ++axis) {
      const bool high = ((corner >> axis) & 1) != 0;
      at[axis] += high;
      w *= high ? u[axis] : 1 - u[axis];
    }
    sum += w * f(at.x(), at.y(), at.z());
  }
  return sum;
}

// Every value of the fog's colours and opacities is a line from 0 to 1 here, so that an integral in steps of
// a 20th of a cell is as good as exact.
Vec4f fog_along(const CellFunction& f, const Vec3f& origin, const Vec3f& d, float t, float t_end,
                float per_cell, ColorMap map) {
  Vec4f sum = Vec4f::Zero();
  const float dt = 0.05f;
  for (t += dt / 2; t < t_end; t += dt) {
    const float v = std::clamp(interpolate(f, origin + t * d), 0.0f, 1.0f);
    const float alpha = 1 - std::pow(1 - per_cell * v, dt);
    const Rgb c = color_at(map, v);
    sum += (1 - sum.w()) * alpha * Vec4f(c.x(), c.y(), c.z(), 1);
  }
  return sum;
}

class Volume : public VolumeTest {
 protected:
  void look_from(const Vec3f& direction, float distance = 80) {
    view_.camera.position = distance * direction.normalized();
  }
  // One sample per cell, 256 colours and 8 bits: a few of these.
  void expect_fog(const Picture& picture, const CellFunction& f, const char* what) {
    double total = 0;
    int worst = 0, n = 0;
    for (int y = 2; y < picture.height; y += 7) {
      for (int x = 3; x < picture.width; x += 7) {
        const CpuRay ray = ray_of(x, y);
        const Vec4f expected = fog_along(f, ray.origin, ray.direction, 0, 140,
                                         view_.style.opacity.back().per_cell, view_.style.map);
        for (int c = 0; c < 4; ++c) {
          const int error = std::abs(static_cast<int>(std::lround(255 * expected[c])) - picture.at(x, y)[c]);
          worst = std::max(worst, error);
          total += error, ++n;
        }
      }
    }
    EXPECT_LE(worst, 8) << what;
    EXPECT_LE(total / n, 0.6) << what;
    EXPECT_GT(picture.num_drawn(), 500) << what;
  }
};

// The rays that meet a slab, made a cell smaller, must meet its surface before that: from everywhere, also
// along faces of bricks, and where the surface lies a little before the face of a brick behind which nothing
// is drawn.
TEST_F(Volume, ASurfaceHasNoHoles) {
  view_.style.mode = VolumeMode::kSurface;
  int inside = 0, holes = 0;
  for (const int half : {6, 24}) {
    atlas_->update(volume_of([](int, int, int) { return 1.0f; }, {-24, -half, -24}, {24, half, 24}));
    const Vec3f high(23, static_cast<float>(half - 1), 23), low = -high;
    for (int i = 0; i < 48; ++i) {
      const float turn = 0.13f * static_cast<float>(i);
      const Vec3f around(std::cos(turn), 0.9f * std::sin(1.7f * turn), std::sin(turn));
      const Vec3f along(i == 0 || i == 3, i == 1 || i > 3, i == 2 || i >= 3);  // axes and diagonals
      look_from(i < 6 ? along : around, 110);
      view_.camera.up = i == 1 ? Vec3f(Vec3f::UnitZ()) : Vec3f(Vec3f::UnitY());
      view_.camera.projection = i % 4 == 3 ? Projection::kOrthographic : Projection::kPerspective;
      view_.camera.height_m = 79;  // no ray lies in a face of the slab
      const Vec3f forward = -view_.camera.position.normalized();
      const Picture picture = draw();
      for (int y = 0; y < picture.height; ++y) {
        for (int x = 0; x < picture.width; ++x) {
          const CpuRay ray = ray_of(x, y);
          const Vec3f a = (low - ray.origin).cwiseQuotient(ray.direction);
          const Vec3f b = (high - ray.origin).cwiseQuotient(ray.direction);
          const float enters = a.cwiseMin(b).maxCoeff();
          if (enters >= a.cwiseMax(b).minCoeff()) continue;
          ++inside;
          const bool is_in_front =
              distance_of(picture.depth_at(x, y)) <= enters * ray.direction.dot(forward) + 0.1f;
          holes += picture.at(x, y)[3] != 255 || !is_in_front;
        }
      }
    }
  }
  EXPECT_GT(inside, 96 * 1000);
  EXPECT_EQ(holes, 0);
}

TEST_F(Volume, ASurfaceStandsWhereTheFieldPassesTheThreshold) {
  view_.style.mode = VolumeMode::kSurface;
  view_.style.threshold = 4;
  atlas_->update(volume_of(ball(17), {-32, -32, -32}, {32, 32, 32}));
  for (const Projection projection : {Projection::kPerspective, Projection::kOrthographic}) {
    view_.camera.projection = projection;
    view_.camera.height_m = 50;
    look_from(Vec3f(0.3f, 0.5f, 1));
    const Picture picture = draw();
    int checked = 0;
    for (int y = 0; y < picture.height; y += 3) {
      for (int x = 0; x < picture.width; x += 3) {
        const CpuRay ray = ray_of(x, y);
        const float along = -ray.origin.dot(ray.direction);
        const float across = (ray.origin + along * ray.direction).norm();
        if (across > 17.15f) {
          EXPECT_EQ(picture.at(x, y)[3], 0);
        }
        if (across > 15) continue;
        const float t = along - std::sqrt(17.0f * 17.0f - across * across);
        const Vec3f forward = -view_.camera.position.normalized();
        EXPECT_NEAR(distance_of(picture.depth_at(x, y)), t * ray.direction.dot(forward), 0.1f);
        ++checked;
      }
    }
    EXPECT_GT(checked, 200);
  }
}

// As much of what is behind is seen as Fresnel's law and the way through the ball leave.
TEST_F(Volume, AClearBodyIsAsOpaqueAsItIsThick) {
  view_.style.mode = VolumeMode::kSurface;
  view_.style.threshold = 4;
  view_.style.absorption = Vec3f::Constant(0.03f);
  atlas_->update(volume_of(ball(17), {-32, -32, -32}, {32, 32, 32}));
  look_from(Vec3f(0.3f, 0.5f, 1));
  const Picture picture = draw();
  const Vec3f to_light = to_key_light();
  int checked = 0;
  for (int y = 0; y < picture.height; y += 3) {
    for (int x = 0; x < picture.width; x += 3) {
      const CpuRay ray = ray_of(x, y);
      const float along = -ray.origin.dot(ray.direction);
      const float across = (ray.origin + along * ray.direction).norm();
      if (across > 16) continue;
      const float half = std::sqrt(17.0f * 17.0f - across * across);
      const Vec3f normal = (ray.origin + (along - half) * ray.direction).normalized();
      const float cosine = -normal.dot(ray.direction);
      const Vec3f mirrored = ray.direction + 2 * cosine * normal;
      if (mirrored.dot(to_light) > 0.95f) continue;  // the lamp is mirrored there
      const float fresnel = 0.02f + 0.98f * std::pow(1 - cosine, 5.0f);
      const float seen = (1 - fresnel) * std::exp(-0.03f * 2 * half);
      EXPECT_NEAR(picture.at(x, y)[3] / 255.0f, 1 - seen, 0.025f) << x << ' ' << y;
      ++checked;
    }
  }
  EXPECT_GT(checked, 200);
}

// The thing that ends the ray ends the way through the body.
TEST_F(Volume, AClearBodyIsThinBeforeOpaqueThings) {
  view_.style.mode = VolumeMode::kSurface;
  view_.style.threshold = 4;
  view_.style.absorption = Vec3f::Constant(0.03f);
  atlas_->update(volume_of(ball(17), {-32, -32, -32}, {32, 32, 32}));
  const int whole = draw().at(80, 60)[3];
  begin_frame();
  // A wall through its middle, 80 m away.
  const auto [n, f] = view_.planes;
  const GLfloat depth = f / (f - n) * (1 - n / 80.0f);
  gl().ClearBufferfv(GL_DEPTH, 0, &depth);
  ++view_.opaque_version;
  EXPECT_TRUE(renderer_->draw(*atlas_, view_, kNoLimit));
  const float seen = 0.98f * std::exp(-0.03f * 17);
  EXPECT_NEAR(read().at(80, 60)[3] / 255.0f, 1 - seen, 0.02f);
  EXPECT_GT(whole, read().at(80, 60)[3] + 40);
}

TEST_F(Volume, ABodyHasAFaceWhereBoundsCutItOff) {
  view_.style.mode = VolumeMode::kSurface;
  view_.style.threshold = 4;
  view_.style.bounds_m = Aabb3f{Vec3f::Constant(-40), Vec3f(40, 40, 3)};
  atlas_->update(volume_of(ball(17), {-32, -32, -32}, {32, 32, 32}));
  const Picture cut = draw();
  EXPECT_EQ(cut.at(80, 60)[3], 255);
  EXPECT_NEAR(distance_of(cut.depth_at(80, 60)), 77, 0.1f) << "the camera is 80 m before its middle";
  // Beside the face, which is a disc of 16.7, the ball goes on behind it.
  EXPECT_GT(cut.num_drawn(), 1000);
  view_.style.bounds_m = Aabb3f{Vec3f::Constant(-40), Vec3f(40, 40, -18)};
  EXPECT_EQ(draw().num_drawn(), 0) << "all of it is outside";
}

TEST_F(Volume, FogIsWhatItsIntegralSays) {
  view_.style.opacity = {{0, 0}, {1, 0.2f}};
  atlas_->update(volume_of(smoke, {-24, -24, -24}, {24, 24, 24}));
  for (const Vec3f& from : {Vec3f(0, 0, 1), Vec3f(1, 0.4f, 0.6f), Vec3f(-0.2f, -1, 0.1f)}) {
    look_from(from);
    expect_fog(draw(), smoke, "from outside");
  }
  view_.camera.position = Vec3f(3, 2, 1);  // inside
  view_.camera.look_at = Vec3f(20, 5, -3);
  expect_fog(draw(), smoke, "from inside");
  view_.camera.look_at = Vec3f::Zero();
  look_from(Vec3f(1, 1, 1));
  view_.camera.projection = Projection::kOrthographic;
  view_.camera.height_m = 45;
  expect_fog(draw(), smoke, "orthographic");
}

TEST_F(Volume, ATreeIsDrawnAsItsCellsAre) {
  const auto device = Device::cpu(2);
  Program program(device);
  Tree tree(device, {.origin = {-64, -64, -64}});
  const Node leaf = tree.root().pointer({16, 16, 16}).dense({8, 8, 8});
  const Field<float> field = leaf.place<float>("density");
  program.launch(set_shell, over_box(leaf, {-24, -24, -24}, {24, 24, 24}), field, 0.0f, 15.0f, 5.0f);
  BrickVolume volume;
  BrickPacker(device).wait_pack(field, BrickFormat::kHalf, volume);
  const std::vector<float> cells = wait_read(field, {-24, -24, -24}, {24, 24, 24});
  const CellFunction f = [&](int x, int y, int z) {
    if (std::max({x, y, z}) >= 24 || std::min({x, y, z}) < -24) return 0.0f;
    return cells[static_cast<size_t>(((x + 24) * 48 + y + 24) * 48 + z + 24)];
  };
  look_from(Vec3f(1, 0.4f, 0.6f));
  expect_fog(draw(volume), f, "a packed tree");
}

TEST_F(Volume, EmptyBricksLeftOutChangeNothing) {
  look_from(Vec3f(1, 0.4f, 0.6f));
  for (const VolumeMode mode : {VolumeMode::kFog, VolumeMode::kSurface}) {
    view_.style.mode = mode;
    view_.style.threshold = 0.4f;
    const Picture sparse = draw(volume_of(smoke, {-40, -40, -40}, {40, 40, 40}));
    const size_t bricks = atlas_->bricks().size();
    const Picture dense = draw(volume_of(smoke, {-40, -40, -40}, {40, 40, 40}, true));
    EXPECT_GT(atlas_->bricks().size(), 2 * bricks);
    int different = 0;
    for (size_t i = 0; i < sparse.rgba.size(); ++i) different += std::abs(sparse.rgba[i] - dense.rgba[i]) > 3;
    EXPECT_LE(different, static_cast<int>(sparse.rgba.size()) / 1000);
    EXPECT_GT(sparse.num_drawn(), 1000);
  }
}

TEST_F(Volume, CoordinatesFarFromTheOriginAreAsGood) {
  const int at = 1 << 20;
  const CellFunction f = [at](int x, int y, int z) { return smoke(x + at, y - at, z); };
  look_from(Vec3f(1, 0.4f, 0.6f));
  const Picture here = draw(volume_of(smoke, {-24, -24, -24}, {24, 24, 24}));
  view_.placement.origin_m = Vec3f(static_cast<float>(at), static_cast<float>(-at), 0);
  const Picture there = draw(volume_of(f, {-24 - at, -24 + at, -24}, {24 - at, 24 + at, 24}));
  int worst = 0;
  for (size_t i = 0; i < here.rgba.size(); ++i)
    worst = std::max(worst, std::abs(here.rgba[i] - there.rgba[i]));
  EXPECT_LE(worst, 2);
}

TEST_F(Volume, NothingIsDrawnOfAnEmptyTree) {
  for (const VolumeMode mode : {VolumeMode::kFog, VolumeMode::kSurface, VolumeMode::kSlices}) {
    view_.style.mode = mode;
    view_.style.slices = {0.5f, 0.5f, 0.5f};
    EXPECT_EQ(draw(BrickVolume{}).num_drawn(), 0);
  }
}

TEST_F(Volume, OneCellIsSeenWhereItIs) {
  for (const VolumeMode mode : {VolumeMode::kFog, VolumeMode::kSurface}) {
    view_.style.mode = mode;
    view_.style.opacity = {{0, 0}, {1, 0.9f}};
    view_.camera.position = Vec3f(0, 0, 12);
    const Picture picture = draw(volume_of([](int, int, int) { return 1.0f; }, {0, 0, 0}, {1, 1, 1}));
    const Vec2f middle = view_.camera.pixel_from_world(Vec3f(0.5f, 0.5f, 0.5f), view_.width, view_.height);
    Vec2f sum = Vec2f::Zero();
    float n = 0;
    for (int y = 0; y < picture.height; ++y) {
      for (int x = 0; x < picture.width; ++x) {
        const auto a = static_cast<float>(picture.at(x, y)[3]);
        sum += a * Vec2f(x + 0.5f, static_cast<float>(picture.height - y) - 0.5f), n += a;
      }
    }
    ASSERT_GT(n, 255 * 10);
    EXPECT_NEAR(sum.x() / n, middle.x(), 0.6f);
    EXPECT_NEAR(sum.y() / n, middle.y(), 0.6f);
  }
}

TEST_F(Volume, ValuesThatAreNotFiniteAreMagenta) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const CellFunction f = [bad](int x, int y, int z) { return x == 4 && y == 4 && z == 4 ? bad : 0.001f; };
    const BrickVolume volume = volume_of(f, {-16, -16, -16}, {16, 16, 16});
    for (const VolumeMode mode : {VolumeMode::kFog, VolumeMode::kSurface, VolumeMode::kSlices}) {
      view_.style.mode = mode;
      view_.style.slices = {std::nullopt, std::nullopt, 4.5f};
      const Picture picture = draw(volume);
      const Vec2f at = view_.camera.pixel_from_world(Vec3f(4.5f, 4.5f, 4.5f), view_.width, view_.height);
      EXPECT_TRUE(
          picture.is_magenta(static_cast<int>(at.x()), picture.height - 1 - static_cast<int>(at.y())));
      int magenta = 0;
      for (int y = 0; y < picture.height; ++y)
        for (int x = 0; x < picture.width; ++x) magenta += picture.is_magenta(x, y);
      EXPECT_LT(magenta, 200);
    }
  }
}

TEST_F(Volume, SlicesShowTheValuesOfTheirCells) {
  const CellFunction f = [](int x, int y, int z) {
    return 0.02f * static_cast<float>(x + 17) + 0.01f * static_cast<float>(y + z + 34);
  };
  atlas_->update(volume_of(f, {-16, -16, -16}, {16, 16, 16}));
  view_.style.mode = VolumeMode::kSlices;
  view_.style.map = ColorMap::kGray;
  view_.style.range = {0, 1.5f};
  for (int axis = 0; axis < 3; ++axis) {
    view_.style.slices = {};
    view_.style.slices[static_cast<size_t>(axis)] = 3.5f;
    look_from(Vec3f(axis == 0, axis == 1, axis == 2));
    view_.camera.up = axis == 1 ? Vec3f(Vec3f::UnitZ()) : Vec3f(Vec3f::UnitY());
    for (const bool interpolates : {false, true}) {
      view_.style.interpolates_slices = interpolates;
      const Picture picture = draw();
      int checked = 0;
      for (int y = 5; y < picture.height; y += 6) {
        for (int x = 5; x < picture.width; x += 6) {
          const CpuRay ray = ray_of(x, y);
          const Vec3f p = ray.origin + (3.5f - ray.origin[axis]) / ray.direction[axis] * ray.direction;
          if (p.cwiseAbs().maxCoeff() > 15.4f) continue;
          const float v = interpolates
                              ? interpolate(f, p)
                              : f(static_cast<int>(std::floor(p.x())), static_cast<int>(std::floor(p.y())),
                                  static_cast<int>(std::floor(p.z())));
          const float expected = 255 * color_at(ColorMap::kGray, v / 1.5f).x();
          EXPECT_NEAR(picture.at(x, y)[0], expected, 3) << axis << " " << p.transpose();
          const float distance = 80 - 3.5f;
          EXPECT_NEAR(distance_of(picture.depth_at(x, y)), distance, 0.05f);
          ++checked;
        }
      }
      EXPECT_GT(checked, 100);
    }
  }
}

// Cells of a ball beside cells that are zero, as inactive ones are, in the same bricks: only
// the ball's hide what is behind.
TEST_F(Volume, SlicesAreClearWhereValuesAreZero) {
  const CellFunction ball = [](int x, int y, int z) { return x * x + y * y + z * z < 60 ? 1.0f : 0.0f; };
  atlas_->update(volume_of(ball, {-16, -16, -16}, {16, 16, 16}));
  view_.style.mode = VolumeMode::kSlices;
  view_.style.slices[2] = 0.5f;
  view_.camera.position.z() = 60;
  for (const bool interpolates : {false, true}) {
    for (const bool hides_zero : {true, false}) {
      view_.style.interpolates_slices = interpolates, view_.style.hides_zero = hides_zero;
      const Picture picture = draw();
      int inside = 0, outside = 0;
      for (int y = 2; y < picture.height; y += 3) {
        for (int x = 2; x < picture.width; x += 3) {
          const CpuRay ray = ray_of(x, y);
          const Vec3f p = ray.origin + (0.5f - ray.origin.z()) / ray.direction.z() * ray.direction;
          const Vec3f in_cell = p.array() - p.array().floor();
          if (p.cwiseAbs().maxCoeff() > 7 || in_cell.minCoeff() < 0.02f || in_cell.maxCoeff() > 0.98f)
            continue;
          const bool is_in =
              ball(static_cast<int>(std::floor(p.x())), static_cast<int>(std::floor(p.y())), 0) > 0;
          (is_in ? inside : outside)++;
          EXPECT_EQ(picture.at(x, y)[3] != 0, is_in || !hides_zero) << p.transpose();
          EXPECT_EQ(picture.depth_at(x, y) < 1, is_in || !hides_zero);
        }
      }
      EXPECT_GT(inside, 50);
      EXPECT_GT(outside, 10);
    }
  }
}

TEST_F(Volume, TwoDimensionsAreASlabOfOneCell) {
  atlas_->update(
      volume_of([](int x, int, int) { return x < 4 ? 1.0f : 0.5f; }, {-12, -12, 0}, {12, 12, 1}, false, 2));
  view_.style.opacity = {{0, 0}, {1, 0.5f}};
  view_.camera.projection = Projection::kOrthographic;
  view_.camera.height_m = 30;
  const auto pixel = [&](const Picture& picture, float x, float y) {
    const Vec2f at = view_.camera.pixel_from_world(Vec3f(x, y, 0), view_.width, view_.height);
    return picture.at(static_cast<int>(at.x()), picture.height - 1 - static_cast<int>(at.y()));
  };
  const Picture fog = draw();
  EXPECT_NEAR(pixel(fog, -5, 3)[3], 255 * 0.5, 2);
  EXPECT_NEAR(pixel(fog, 8, 3)[3], 255 * 0.25, 2);
  EXPECT_EQ(pixel(fog, 14, 3)[3], 0);
  view_.style.mode = VolumeMode::kSurface;
  view_.style.threshold = 0.7f;
  const Picture surface = draw();
  EXPECT_EQ(pixel(surface, -5, 3)[3], 255);
  EXPECT_EQ(pixel(surface, 8, 3)[3], 0);
  EXPECT_NEAR(distance_of(surface.depth_at(80, 60)), 79, 0.01);
  view_.style.mode = VolumeMode::kSlices;
  view_.style.slices = {std::nullopt, std::nullopt, 0.5f};
  EXPECT_EQ(pixel(draw(), 8, 3)[3], 255);
}

// The right half of the frame has something opaque through the middle of the volume.
TEST_F(Volume, OpaqueThingsHideWhatIsBehindThem) {
  view_.camera.projection = Projection::kOrthographic;
  view_.camera.height_m = 60;
  view_.style.opacity = {{0, 0}, {1, 0.05f}};
  const auto draw_behind = [&](float distance) {
    begin_frame();
    const float depth = (distance - view_.planes.near_m) / (view_.planes.far_m - view_.planes.near_m);
    gl().Enable(GL_SCISSOR_TEST);
    gl().Scissor(view_.width / 2, 0, view_.width, view_.height);
    gl().ClearBufferfv(GL_DEPTH, 0, &depth);
    gl().Disable(GL_SCISSOR_TEST);
    ++view_.opaque_version;
    EXPECT_TRUE(renderer_->draw(*atlas_, view_, kNoLimit));
    return read();
  };
  atlas_->update(volume_of([](int, int, int) { return 1.0f; }, {-16, -16, -16}, {16, 16, 16}));
  const int left = view_.width / 2 - 20, right = view_.width / 2 + 20, y = view_.height / 2;
  const Picture fog = draw_behind(80);
  EXPECT_NEAR(fog.at(left, y)[3], 255 * (1 - std::pow(0.95, 32)), 3);
  EXPECT_NEAR(fog.at(right, y)[3], 255 * (1 - std::pow(0.95, 16)), 3);
  view_.style.mode = VolumeMode::kSurface;
  const Picture behind = draw_behind(50);
  EXPECT_EQ(behind.at(left, y)[3], 255);
  EXPECT_NEAR(distance_of(behind.depth_at(left, y)), 64, 0.05);
  EXPECT_EQ(behind.at(right, y)[3], 0);
  EXPECT_NEAR(distance_of(behind.depth_at(right, y)), 50, 0.05);
  EXPECT_EQ(draw_behind(80).at(right, y)[3], 255);
}

TEST_F(Volume, TilesInManyCallsAreThePictureOfOne) {
  atlas_->update(volume_of(smoke, {-24, -24, -24}, {24, 24, 24}));
  view_.width = 400, view_.height = 300;
  for (const VolumeMode mode : {VolumeMode::kFog, VolumeMode::kSurface}) {
    view_.style.mode = mode;
    view_.style.threshold = 0.4f;
    const Picture whole = draw();
    int calls = 0;
    bool is_complete = false;
    Picture part;
    VolumeRenderer renderer(gl());
    for (; !is_complete && calls < 100; ++calls) {
      begin_frame();
      is_complete = renderer.draw(*atlas_, view_, calls == 0 ? 0 : 1e-3);
      part = read();
      EXPECT_GT(part.num_drawn(), whole.num_drawn() * 9 / 10) << "a draft stands in";
    }
    EXPECT_GT(calls, 3);
    EXPECT_TRUE(is_complete);
    EXPECT_EQ(whole.rgba, part.rgba);
    EXPECT_EQ(whole.depth, part.depth);
    view_.camera.position += Vec3f(1, 0, 0);
    begin_frame();
    EXPECT_FALSE(renderer.draw(*atlas_, view_, 0)) << "another camera begins anew";
  }
}

TEST_F(Volume, RefusesWhatCannotBeDrawn) {
  const auto code_of = [&](auto change) {
    const VolumeView before = view_;
    change();
    ErrorCode code = ErrorCode::kInternal;
    try {
      renderer_->draw(*atlas_, view_, kNoLimit);
    } catch (const Error& error) {
      code = error.code();
    }
    view_ = before;
    return code;
  };
  begin_frame();
  EXPECT_EQ(code_of([&] { view_.width = 0; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { view_.placement.cell_m = 0; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { view_.style.range = {1, 1}; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { view_.style.threshold = NAN; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { view_.style.opacity = {{0, 1}}; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { view_.style.opacity = {{1, 0}, {0, 0}}; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { view_.style.absorption = Vec3f(0, -1, 0); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { view_.style.bounds_m = Aabb3f(); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { view_.camera.look_at = view_.camera.position; }), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace coppice::render
