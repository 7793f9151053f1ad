// This function answers whoever draws a frame: is the frame still wanted?
#pragma once
#include <functional>

namespace coppice::render {

// The thread that draws calls it between two passes, and between parts of long ones.
using GoesOn = std::function<bool()>;

}  // namespace coppice::render
