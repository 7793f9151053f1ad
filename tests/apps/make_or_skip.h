// Makes what fixtures draw with, or skips the test.
#pragma once
#include <gtest/gtest.h>

#include <memory>

#include "core/error.h"

namespace coppice {

// Makes a context or a renderer. A machine that cannot draw skips the test, and `made` stays null.
template <class T, class... Arguments>
void make_or_skip(std::unique_ptr<T>& made, const Arguments&... arguments) {
  try {
    made = std::make_unique<T>(arguments...);
  } catch (const Error& error) {
    ASSERT_EQ(error.code(), ErrorCode::kUnavailable) << error.what();
    GTEST_SKIP() << error.what();
  }
}

}  // namespace coppice
