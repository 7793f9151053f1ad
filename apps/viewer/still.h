// A picture in the quality of files, for a window.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace coppice::viewer {

struct Still {
  uint64_t number = 0;
  int width = 0, height = 0;
  std::vector<uint8_t> rgba;  // u8[height][width][4], rows from the bottom
  std::string error;          // why there is none; one line
};

}  // namespace coppice::viewer
