// A picture in memory, eight bits per channel, and PNG files.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace coppice::render {

using Rgba8 = std::array<uint8_t, 4>;  // sRGB, alpha not premultiplied

class Image {
 public:
  Image() = default;
  Image(int width, int height);  // transparent black

  int width() const { return width_; }
  int height() const { return height_; }
  // x goes to the right, y down from the top row.
  Rgba8 pixel(int x, int y) const;
  void set_pixel(int x, int y, Rgba8 color);

  // u8[height][width][4]
  std::span<uint8_t> bytes() { return bytes_; }
  std::span<const uint8_t> bytes() const { return bytes_; }
  void flip_rows();

 private:
  size_t offset(int x, int y) const;

  int width_ = 0;
  int height_ = 0;
  std::vector<uint8_t> bytes_;
};

// The file appears whole or not at all. Alpha is left out when every pixel is opaque. Throws Error(kIo).
void write_png(const Image& image, const std::string& path);
// Errors: kNotFound, kDataLoss when it is not a whole PNG.
Image read_png(const std::string& path);

}  // namespace coppice::render
