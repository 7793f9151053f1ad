// This draws and writes numbers and graphs as all panels have them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace coppice::viewer {

std::string ms_text(double ms);          // "1.25 ms", "310 µs", "2.00 s"
std::string bytes_text(double bytes);    // "12.3 MiB"
std::string count_text(uint64_t count);  // "1 234 567"

// Draws a graph from 0 up to the largest value, as wide as there is room.
void draw_graph(const std::string& id, const std::vector<float>& history, float height);
// Draws a text in the next column, to the right.
void draw_number_cell(const std::string& text);

}  // namespace coppice::viewer
