// A question that whoever draws a frame asks meanwhile: is it still wanted?
#pragma once
#include <functional>

namespace coppice::render {

// Asked between two passes, and between parts of long ones, by the thread that draws.
using GoesOn = std::function<bool()>;

}  // namespace coppice::render
