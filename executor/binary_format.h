// Numbers that the two directions of the binary form (binary.h) share.
#pragma once
#include <cstddef>
#include <string_view>

namespace coppice::executor::binary {

inline constexpr std::string_view kMagic = "CPEX";
inline constexpr size_t kVersionOffset = 4, kSizeOffset = 8, kHashOffset = 16;
inline constexpr size_t kLongestShared = 32;  // bytes of a string in the table

enum Kind : unsigned char {
  kFalse,
  kTrue,
  kInteger,
  kReal,
  kString,
  kFunction,
  kIntegers,
  kReals,
  kStrings,
  kBinding
};

}  // namespace coppice::executor::binary
