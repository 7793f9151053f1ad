// Looks at what a run left in its folder: whole files only, and as many as its table has rows.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "apps/output/output_folder.h"
#include "apps/output/particle_ply.h"
#include "apps/output/vdb_writer.h"
#include "apps/render/image.h"
#include "tests/apps/geometry_test_files.h"

namespace coppice {

// A scene of a few hundred particles with small pictures. `emitter` replaces the ball's keys, `more` follows.
inline std::string tiny_scene(const std::string& emitter = "", const std::string& more = "") {
  const std::string ball =
      "shape = \"sphere\"\ncenter = [0.5, 0.5, 0.5]\nradius = 0.12\nmaterial = \"snow\"\n";
  return "dim = 3\nseed = 7\n[grid]\nresolution = 16\n[time]\nframes = 3\nfps = 100\n"
         "[output]\nwidth = 160\nheight = 120\nmp4 = false\n[[emitter]]\n" +
         (emitter.empty() ? ball : emitter) + more;
}

// The rows below the header of stats.csv; every line is whole. Throws nothing: an absent table has no rows.
inline std::vector<std::vector<double>> read_rows(const std::string& folder) {
  const std::string text = read_text(stats_csv_path(folder));
  EXPECT_TRUE(text.empty() || text.back() == '\n') << "half a row in " << folder;
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  const auto n_columns = std::count(line.begin(), line.end(), ',') + 1;
  std::vector<std::vector<double>> rows;
  while (std::getline(lines, line)) {
    std::vector<double> row;
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ',');) row.push_back(std::stod(cell));
    EXPECT_EQ(static_cast<std::ptrdiff_t>(row.size()), n_columns) << line;
    rows.push_back(std::move(row));
  }
  return rows;
}

// Reads every output of the folder to its end; a temporary, a strange name or a cut file fails the test.
inline void expect_whole_files(const std::string& folder) {
  const VdbWriter volumes;
  for (const std::string& name : names_in(folder)) {
    EXPECT_TRUE(is_output_name(name)) << name;
    const std::string path = folder + "/" + name;
    try {
      if (name.ends_with(".png")) render::read_png(path);
      if (name.ends_with(".ply")) read_particles_ply(path);
      if (name.ends_with(".vdb") && volumes.is_available()) volumes.read_summary(path, "density");
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

inline int64_t count_names(const std::string& folder, const std::string& suffix) {
  const std::vector<std::string> names = names_in(folder);
  return std::count_if(names.begin(), names.end(),
                       [&](const std::string& name) { return name.ends_with(suffix); });
}

// How many different colours a picture has.
inline size_t count_colors(const render::Image& image) {
  std::vector<render::Rgba8> colors;
  for (int y = 0; y < image.height(); ++y) {
    for (int x = 0; x < image.width(); ++x) colors.push_back(image.pixel(x, y));
  }
  std::sort(colors.begin(), colors.end());
  return static_cast<size_t>(std::unique(colors.begin(), colors.end()) - colors.begin());
}

}  // namespace coppice
