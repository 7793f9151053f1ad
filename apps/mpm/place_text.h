// Places as messages show them: with as many numbers as the scene has dimensions.
#pragma once

#include <fmt/format.h>

#include <string>

namespace coppice::mpm {

// Returns "(0.25, 1.5)" or "(0.25, 1.5, 3)".
template <class V>
std::string place_text(const V& v, int dim) {
  return dim == 2 ? fmt::format("({:.4g}, {:.4g})", v.x(), v.y())
                  : fmt::format("({:.4g}, {:.4g}, {:.4g})", v.x(), v.y(), v.z());
}

}  // namespace coppice::mpm
