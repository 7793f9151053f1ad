// Numbers and graphs as all panels have them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace coppice::viewer {

std::string ms_text(double ms);          // "1.25 ms", "310 µs", "2.00 s"
std::string bytes_text(double bytes);    // "12.3 MiB"
std::string count_text(uint64_t count);  // "1 234 567"

// From 0 up to the largest value, as wide as there is room.
void draw_graph(const std::string& id, const std::vector<float>& history, float height);
// The next column, to the right.
void draw_number_cell(const std::string& text);

}  // namespace coppice::viewer
