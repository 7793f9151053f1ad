// Helpers of the scene tests: the text of the error that a piece of code throws, and where the source tree
// is.
#pragma once

#include <filesystem>
#include <string>

#include "core/error.h"

namespace coppice::scene {

inline std::filesystem::path source_folder() {
#ifdef COPPICE_SOURCE_DIR
  return COPPICE_SOURCE_DIR;
#else
  return std::filesystem::path(__FILE__).parent_path().parent_path().parent_path();
#endif
}

// "usage: file:1:2: message", or "no error".
template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return std::string(name_of(error.code())) + ": " + error.what();
  }
  return "no error";
}

}  // namespace coppice::scene
