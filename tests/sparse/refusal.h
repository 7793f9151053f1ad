// Tests say with this how a call is refused.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>

#include "core/error.h"

namespace coppice {

// Returns the text of the Error that `f` throws, whose code must be one of these; "accepted" if none.
template <class F>
std::string refusal(const F& f, std::initializer_list<ErrorCode> codes = {ErrorCode::kInvalidArgument}) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_TRUE(std::find(codes.begin(), codes.end(), error.code()) != codes.end()) << error.what();
    return error.what();
  }
  return "accepted";
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace coppice
