// The renderer's host side: cameras, colour maps, pictures as PNG, movies. Needs no OpenGL.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "apps/render/camera.h"
#include "apps/render/color_map.h"
#include "apps/render/image.h"
#include "apps/render/movie.h"
#include "apps/render/particle_shading.h"
#include "core/error.h"
#include "core/log.h"

namespace coppice::render {
namespace {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "coppice_render_XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& file) const { return (path_ / file).string(); }
  const std::filesystem::path& path() const { return path_; }
  long file_count() const {
    return std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator());
  }

 private:
  std::filesystem::path path_;
};

Image gradient(int width, int height, uint8_t alpha) {
  Image image(width, height);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      image.set_pixel(
          x, y,
          {static_cast<uint8_t>(7 * x), static_cast<uint8_t>(11 * y), static_cast<uint8_t>(x ^ y), alpha});
    }
  }
  return image;
}

TEST(Image, PngRoundTripIsExactWithAndWithoutAlpha) {
  const TemporaryFolder folder;
  for (const int alpha : {255, 128}) {
    const Image image = gradient(37, 19, static_cast<uint8_t>(alpha));
    write_png(image, folder / "a.png");
    const Image back = read_png(folder / "a.png");
    ASSERT_EQ(back.width(), 37);
    ASSERT_EQ(back.height(), 19);
    EXPECT_TRUE(std::equal(image.bytes().begin(), image.bytes().end(), back.bytes().begin())) << alpha;
  }
  EXPECT_EQ(folder.file_count(), 1);
}

TEST(Image, FlipRowsSwapsTopAndBottom) {
  Image image = gradient(5, 3, 255);
  const Rgba8 top = image.pixel(2, 0);
  const Rgba8 middle = image.pixel(2, 1);
  image.flip_rows();
  EXPECT_EQ(image.pixel(2, 2), top);
  EXPECT_EQ(image.pixel(2, 1), middle);
}

TEST(Image, SaysWhichPngIsMissingBrokenOrCannotBeWritten) {
  const TemporaryFolder folder;
  const auto code_of = [](auto action) {
    try {
      action();
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kInternal;
  };
  EXPECT_EQ(code_of([&] { read_png(folder / "none.png"); }), ErrorCode::kNotFound);
  std::ofstream(folder / "bad.png") << "not a picture";
  EXPECT_EQ(code_of([&] { read_png(folder / "bad.png"); }), ErrorCode::kDataLoss);
  EXPECT_EQ(code_of([&] { write_png(gradient(4, 4, 255), folder / "no/such/folder.png"); }), ErrorCode::kIo);
}

TEST(Camera, PixelsFollowTheMatrices) {
  Camera camera;
  camera.position = Vec3f(1.0f, 2.0f, 5.0f);
  camera.look_at = Vec3f(0.2f, 0.1f, -0.3f);
  for (const Projection projection : {Projection::kPerspective, Projection::kOrthographic}) {
    camera.projection = projection;
    camera.height_m = 3.0f;
    const Vec2f middle = camera.pixel_from_world(camera.look_at, 640, 360);
    EXPECT_NEAR(middle.x(), 320.0f, 1e-2f);
    EXPECT_NEAR(middle.y(), 180.0f, 1e-2f);
    const Vec3f point(0.7f, 0.9f, 0.4f);
    const Vec4f world(point.x(), point.y(), point.z(), 1.0f);
    const Vec4f clip =
        camera.clip_from_view(640.0f / 360.0f, {1.0f, 20.0f}) * camera.view_from_world() * world;
    const Vec2f pixel = camera.pixel_from_world(point, 640, 360);
    EXPECT_NEAR(pixel.x(), 320.0f * (1.0f + clip.x() / clip.w()), 1e-2f);
    EXPECT_NEAR(pixel.y(), 180.0f * (1.0f - clip.y() / clip.w()), 1e-2f);
  }
}

TEST(Camera, DepthRunsFromMinusOneToOneBetweenThePlanes) {
  for (const Projection projection : {Projection::kPerspective, Projection::kOrthographic}) {
    Camera camera;
    camera.projection = projection;
    const Mat4f clip_from_view = camera.clip_from_view(1.0f, {0.5f, 8.0f});
    const Vec4f near = clip_from_view * Vec4f(0.0f, 0.0f, -0.5f, 1.0f);
    const Vec4f far = clip_from_view * Vec4f(0.0f, 0.0f, -8.0f, 1.0f);
    EXPECT_NEAR(near.z() / near.w(), -1.0f, 1e-5f);
    EXPECT_NEAR(far.z() / far.w(), 1.0f, 1e-5f);
  }
}

TEST(Camera, FramesShowTheWholeDomain) {
  Aabb3f domain;
  domain.min = Vec3f(-1.0f, 0.0f, 2.0f);
  domain.max = Vec3f(3.0f, 1.5f, 2.7f);
  for (const bool flat : {false, true}) {
    for (const int width : {360, 640, 1600}) {
      const float aspect = static_cast<float>(width) / 360.0f;
      const Camera camera = flat ? frame_domain_2d(domain, aspect) : frame_domain_3d(domain, aspect);
      float widest = 0.0f;
      for (int i = 0; i < 8; ++i) {
        const Vec3f corner((i & 1) != 0 ? domain.max.x() : domain.min.x(),
                           (i & 2) != 0 ? domain.max.y() : domain.min.y(),
                           (i & 4) != 0 ? domain.max.z() : domain.min.z());
        const Vec2f pixel = camera.pixel_from_world(corner, width, 360);
        EXPECT_GT(pixel.minCoeff(), 0.0f);
        EXPECT_LT(pixel.x(), static_cast<float>(width));
        EXPECT_LT(pixel.y(), 360.0f);
        widest = std::max({widest, std::abs(pixel.x() * 2.0f / static_cast<float>(width) - 1.0f),
                           std::abs(pixel.y() / 180.0f - 1.0f)});
      }
      EXPECT_GT(widest, 0.85f) << "the domain is small in the frame";
    }
  }
}

TEST(ColorMap, StaysInRangeIsSmoothAndEndsWhereItShould) {
  for (const ColorMap map : {ColorMap::kViridis, ColorMap::kInferno, ColorMap::kMagma, ColorMap::kTurbo,
                             ColorMap::kCoolwarm, ColorMap::kGray}) {
    for (int i = 0; i < 1000; ++i) {
      const Rgb a = color_at(map, static_cast<float>(i) / 1000.0f);
      const Rgb b = color_at(map, static_cast<float>(i + 1) / 1000.0f);
      EXPECT_GE(a.minCoeff(), 0.0f);
      EXPECT_LE(a.maxCoeff(), 1.0f);
      EXPECT_LT((a - b).cwiseAbs().maxCoeff(), 0.012f) << name_of(map) << " at " << i;
    }
    EXPECT_EQ(color_at(map, -3.0f), color_at(map, 0.0f));
    EXPECT_EQ(color_at(map, std::numeric_limits<float>::infinity()), color_at(map, 1.0f));
    EXPECT_EQ(color_at(map, std::nanf("")), Rgb(Rgb::Constant(0.5f)));
  }
}

TEST(ColorMap, SequentialMapsGrowLighter) {
  const Vec3f luma(0.2126f, 0.7152f, 0.0722f);
  for (const ColorMap map : {ColorMap::kViridis, ColorMap::kInferno, ColorMap::kMagma, ColorMap::kGray}) {
    for (int i = 0; i < 64; ++i) {
      EXPECT_LT(luma.dot(color_at(map, static_cast<float>(i) / 64.0f)),
                luma.dot(color_at(map, static_cast<float>(i + 1) / 64.0f)))
          << name_of(map) << " at " << i;
    }
  }
}

TEST(ParticleShading, InsideOfAHeapIsDarkerThanItsTopAndNormalsPointOut) {
  RenderScene scene;
  scene.domain.min = Vec3f::Zero();
  scene.domain.max = Vec3f::Ones();
  scene.radius_m = 0.01f;
  std::vector<Vec3f> positions;
  for (int k = 0; k < 25; ++k) {
    for (int j = 0; j < 25; ++j) {
      for (int i = 0; i < 25; ++i)
        positions.push_back(Vec3f(0.25f, 0.0f, 0.25f) + 0.02f * Vec3i(i, j, k).cast<float>());
    }
  }
  scene.positions = positions;
  const ParticleShading shading = compute_particle_shading(scene, compute_particle_colors(scene));
  ASSERT_EQ(shading.particles.size(), positions.size());
  const auto at = [&](int i, int j, int k) {
    return shading.surfaces[static_cast<size_t>((k * 25 + j) * 25 + i)];
  };
  EXPECT_GT(at(12, 24, 12).visibility, 2 * at(12, 12, 12).visibility);
  EXPECT_GT(at(12, 24, 12).normal[1], 200);
  EXPECT_LT(at(0, 12, 12).normal[0], 60);
  EXPECT_GT(at(24, 12, 12).normal[0], 200);
  // The floor is darkest under the heap.
  const auto floor_at = [&](float x, float z) {
    const Vec3f size = shading.floor_bounds.size();
    const int i = static_cast<int>((x - shading.floor_bounds.min.x()) / size.x() *
                                   static_cast<float>(shading.floor_size.x()));
    const int k = static_cast<int>((z - shading.floor_bounds.min.z()) / size.z() *
                                   static_cast<float>(shading.floor_size.y()));
    return shading.floor_visibility[static_cast<size_t>(k * shading.floor_size.x() + i)];
  };
  EXPECT_LT(floor_at(0.5f, 0.5f), floor_at(0.22f, 0.5f));
  EXPECT_LT(floor_at(0.22f, 0.5f), 250);
}

std::vector<std::string> log_lines_of(const std::function<void()>& action) {
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel, std::string_view line) { lines.emplace_back(line); });
  action();
  set_log_sink({});
  return lines;
}

TEST(Movie, WithoutFfmpegSaysSoOnceAndLeavesNothing) {
  const TemporaryFolder folder;
  MovieOptions options;
  options.frames_folder = folder.path().string();
  options.ffmpeg = folder / "no_such_ffmpeg";
  bool made = true;
  const auto lines = log_lines_of([&] { made = wait_and_write_movie(options, folder / "m.mp4"); });
  EXPECT_FALSE(made);
  EXPECT_EQ(lines.size(), 1u);
  EXPECT_EQ(folder.file_count(), 0);
}

// Returns the warning of a film whose encoder is this script, and which is not made.
std::string warning_of_encoder(const std::string& script) {
  const TemporaryFolder folder;
  std::ofstream(folder / "encoder") << "#!/bin/sh\n" << script << "\n";
  std::filesystem::permissions(folder / "encoder", std::filesystem::perms::owner_all);
  MovieOptions options;
  options.frames_folder = folder.path().string();
  options.ffmpeg = folder / "encoder";
  bool made = true;
  const auto lines = log_lines_of([&] { made = wait_and_write_movie(options, folder / "m.mp4"); });
  EXPECT_FALSE(made);
  EXPECT_EQ(lines.size(), 1u);
  EXPECT_EQ(folder.file_count(), 1);  // the encoder itself
  return lines.empty() ? "" : lines[0];
}

TEST(Movie, EncoderThatFailsIsAWarningWithItsLastLine) {
  const std::string line = warning_of_encoder("echo first >&2\necho 'it broke' >&2\nexit 3");
  EXPECT_NE(line.find("encoder ended with exit status 3: it broke; "), std::string::npos) << line;
}

// Seen to fail: how an encoder without a word had ended was not said, and an empty film was kept.
TEST(Movie, SaysHowAnEncoderEndedThatWroteNoLine) {
  const std::map<std::string, std::string> encoders{{"exit 7", "ended with exit status 7; "},
                                                    {"kill -9 $$", "was ended by signal 9; "},
                                                    {"exit 0", "wrote nothing; "}};
  for (const auto& [script, what] : encoders) {
    const std::string line = warning_of_encoder(script);
    EXPECT_NE(line.find("encoder " + what), std::string::npos) << line;
  }
}

TEST(Movie, FramesBecomeAnMp4WhereFfmpegIs) {
  if (std::system("command -v ffmpeg > /dev/null 2>&1") != 0) GTEST_SKIP() << "ffmpeg is not installed";
  const TemporaryFolder folder;
  const std::filesystem::path frames = folder.path() / "100% frames";
  std::filesystem::create_directory(frames);
  for (int i = 0; i < 3; ++i)
    write_png(gradient(33, 21, 255), (frames / ("000" + std::to_string(i) + ".png")).string());
  MovieOptions options;
  options.frames_folder = frames.string();
  ASSERT_TRUE(wait_and_write_movie(options, folder / "m.mp4"));
  std::ifstream file(folder / "m.mp4", std::ios::binary);
  std::string head(12, '\0');
  file.read(head.data(), 12);
  EXPECT_EQ(head.substr(4, 4), "ftyp");
  EXPECT_EQ(folder.file_count(), 2);
}

TEST(ParticleColors, WhatIsNotFiniteIsMagenta) {
  const std::vector<Vec3f> positions(4, Vec3f::Zero());
  const std::vector<float> values{0, std::nanf(""), std::numeric_limits<float>::infinity(), 1};
  RenderScene scene;
  scene.positions = positions, scene.scalar = values;
  scene.color_mode = ColorMode::kScalar;
  const std::vector<uint32_t> colors = compute_particle_colors(scene);
  const uint32_t magenta = pack_color(Rgb(1, 0, 1));
  EXPECT_EQ(colors[1], magenta);
  EXPECT_EQ(colors[2], magenta);
  EXPECT_NE(colors[0], magenta);
  EXPECT_NE(colors[0], colors[3]);
}

// The limit of looking down from the front: x stays to the right.
TEST(Cameras, LookStraightDownWithXToTheRight) {
  Camera camera;
  camera.position = Vec3f(0.5f, 3, 0.5f), camera.look_at = Vec3f(0.5f, 0, 0.5f);
  Camera almost = camera;
  almost.position.z() += 1e-3f;
  for (const Vec3f& p : {Vec3f(1, 0, 0.5f), Vec3f(0.5f, 0, 1)})
    EXPECT_LT((camera.pixel_from_world(p, 100, 100) - almost.pixel_from_world(p, 100, 100)).norm(), 0.5f);
}

}  // namespace
}  // namespace coppice::render
