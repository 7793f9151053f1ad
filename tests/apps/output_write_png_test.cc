// Pictures of a program's planes: which pixel goes where, in which colour, and what is refused.
#include <cmath>
#include <limits>

#include "apps/output/write_png.h"
#include "render_volumes.kernels.h"
#include "sparse/read_back.h"
#include "tests/apps/geometry_test_files.h"
#include "tests/apps/output_file_size_limit.h"
#include "tests/sparse/test_devices.h"

namespace coppice::output {
namespace {

using render::Image;
using render::read_png;
using render::Rgb;
using render::Rgba8;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Rgba8 color_of(render::ColorMap map, float t) {
  const uint32_t c = render::pack_color(render::color_at(map, t));
  return {static_cast<uint8_t>(c), static_cast<uint8_t>(c >> 8), static_cast<uint8_t>(c >> 16), 255};
}

TEST(WritePng, PutsACellAtItsPlaceWithTheSecondAxisUpwards) {
  const IntrusivePtr<Device> device = cpu_or_test_device(1);
  Program program(device);
  Tree tree(device);
  const Field<float> field = tree.root().dense({4, 4}).place<float>("field");
  const std::vector<int> coords{0, 0, 0, 2, 1, 0};
  const std::vector<float> values{1, 2};
  run_on(program, set_volume_cells_2, range(2), field, coords, values);
  const TemporaryFolder folder;
  write_png(folder / "p.png", 3, 2, wait_read(field, {0, 0}, {3, 2}), {.map = render::ColorMap::kInferno});
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"p.png"});
  const Image image = read_png(folder / "p.png");
  ASSERT_EQ(image.width(), 3);
  ASSERT_EQ(image.height(), 2);
  for (int x = 0; x < 3; ++x) {
    for (int y = 0; y < 2; ++y) {
      const float expected = x == 0 && y == 0 ? 0.5f : x == 2 && y == 1 ? 1.0f : 0.0f;
      EXPECT_EQ(image.pixel(x, 1 - y), color_of(render::ColorMap::kInferno, expected)) << x << ", " << y;
    }
  }
}

TEST(WritePng, TakesPixelsRowByRow) {
  const TemporaryFolder folder;
  const std::vector<Rgba8> pixels{{1, 2, 3, 4},     {5, 6, 7, 8},     {9, 10, 11, 12},
                                  {13, 14, 15, 16}, {17, 18, 19, 20}, {21, 22, 23, 24}};
  write_png(folder / "rows.png", 2, 3, pixels, PixelOrder::kRows);
  write_png(folder / "cells.png", 2, 3, pixels);
  const Image rows = read_png(folder / "rows.png"), cells = read_png(folder / "cells.png");
  for (int x = 0; x < 2; ++x) {
    for (int y = 0; y < 3; ++y) {
      EXPECT_EQ(rows.pixel(x, y), pixels[2 * y + x]) << x << ", " << y;
      EXPECT_EQ(cells.pixel(x, 2 - y), pixels[3 * x + y]) << x << ", " << y;
    }
  }
}

TEST(WritePng, ClampsColoursOfFloats) {
  const TemporaryFolder folder;
  const std::vector<Vec3f> pixels{{0, 0.5f, 1}, {-1, 2, 0.25f}};
  write_png(folder / "p.png", 2, 1, pixels);
  const Image image = read_png(folder / "p.png");
  EXPECT_EQ(image.pixel(0, 0), (Rgba8{0, 128, 255, 255}));
  EXPECT_EQ(image.pixel(1, 0), (Rgba8{0, 255, 64, 255}));
}

TEST(WritePng, ShowsARangeEvenlyOrByLogarithms) {
  const TemporaryFolder folder;
  const std::vector<float> values{-5, 1, 10, 100, 1000};
  const auto drawn = [&](const ScalarColors& colors) {
    write_png(folder / "p.png", 5, 1, values, colors);
    return read_png(folder / "p.png");
  };
  constexpr render::ColorMap kMap = render::ColorMap::kViridis;
  const Image even = drawn({.range = render::ScalarRange{0, 100}}),
              logarithmic = drawn({.range = render::ScalarRange{1, 100}, .is_logarithmic = true});
  for (const auto& [x, at] : {std::pair{0, 0.0f}, {1, 0.01f}, {2, 0.1f}, {3, 1.0f}, {4, 1.0f}})
    EXPECT_EQ(even.pixel(x, 0), color_of(kMap, at)) << x;
  for (const auto& [x, at] : {std::pair{0, 0.0f}, {1, 0.0f}, {2, 0.5f}, {3, 1.0f}, {4, 1.0f}})
    EXPECT_EQ(logarithmic.pixel(x, 0), color_of(kMap, at)) << x;
  write_png(folder / "p.png", 2, 1, std::vector<float>{7, 7});  // all are the same: the middle of the map
  EXPECT_EQ(read_png(folder / "p.png").pixel(0, 0), color_of(kMap, 0.5f));
}

TEST(WritePng, RefusesWhatIsNoPicture) {
  const TemporaryFolder folder;
  const std::string path = folder / "p.png";
  const auto refuses = [&](ErrorCode code, const std::string& part, const std::function<void()>& body) {
    expect_error(code, {"p.png: ", part}, body);
  };
  const std::vector<float> six(6), none;
  for (const auto& [width, height] : {std::pair{0, 0}, {0, 6}, {6, 0}, {-2, -3}, {1000001, 1}}) {
    refuses(ErrorCode::kInvalidArgument, "expected 1 to 1000000 on each side",
            [&, w = width, h = height] { write_png(path, w, h, w == 0 ? none : six); });
  }
  refuses(ErrorCode::kInvalidArgument, "6 values for a picture of 2 x 2 pixels, expected 4",
          [&] { write_png(path, 2, 2, six); });
  refuses(ErrorCode::kInvalidArgument, "1 values for a picture of 65536 x 65536 pixels, expected 4294967296",
          [&] { write_png(path, 65536, 65536, std::vector<Rgba8>(1)); });
  refuses(ErrorCode::kInvalidArgument, "a range of colours from nan to 1", [&] {
    write_png(path, 2, 3, six, {.range = render::ScalarRange{kNan, 1}});
  });
  const std::vector<float> odd{0, 1, 2, kNan, 4, INFINITY};
  refuses(ErrorCode::kNumeric, "the pixel (1, 0) has the value nan, expected finite numbers",
          [&] { write_png(path, 2, 3, odd); });
  refuses(ErrorCode::kNumeric, "the pixel (1, 1), rows downwards, has the value nan",
          [&] { write_png(path, 2, 3, odd, {.order = PixelOrder::kRows}); });
  refuses(ErrorCode::kNumeric, "the pixel (0, 1) has the value inf", [&] {
    write_png(path, 1, 2, std::vector<Vec3f>{{0, 0, 0}, {0, 0, INFINITY}});
  });
  EXPECT_TRUE(names_in(folder.path()).empty());
}

TEST(WritePng, LeavesNothingBehindWithoutAFolderOrRoom) {
  const TemporaryFolder folder;
  std::vector<Rgba8> noise(10000);
  for (size_t i = 0; i < noise.size(); ++i)
    for (size_t c = 0; c < 4; ++c) noise[i][c] = static_cast<uint8_t>((4 * i + c) * 7919 % 104729 % 251);
  expect_error(ErrorCode::kIo, {"none/p.png"}, [&] { write_png(folder / "none/p.png", 100, 100, noise); });
  expect_error(ErrorCode::kIo, {"p.png"}, [&] {
    const FileSizeLimit limit(1000);
    write_png(folder / "p.png", 100, 100, noise);
  });
  EXPECT_TRUE(names_in(folder.path()).empty());
}

}  // namespace
}  // namespace coppice::output
