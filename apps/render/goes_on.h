// Whether a frame that is being drawn is still wanted.
#pragma once
#include <functional>

namespace coppice::render {

// Asked between two passes, and between parts of long ones, by the thread that draws.
using GoesOn = std::function<bool()>;

}  // namespace coppice::render
