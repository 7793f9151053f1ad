// The forms of modules must keep to this for any input at all: for the fuzz targets (fuzz/) and the stress
// test.
#pragma once
#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/hash.h"
#include "executor/binary.h"
#include "executor/text.h"

namespace coppice::executor {

struct Outcome {
  size_t n_operations = 0;  // of the module, when it is one
  std::string broken;       // what does not hold; empty: all does
};

inline bool has_nan(const Module& module) {
  for (const Function& function : module.functions) {
    for (const Operation& operation : function.operations) {
      for (const Attribute& attribute : operation.attributes)
        if (attribute != attribute) return true;
    }
  }
  return false;
}

inline size_t count_operations(const Module& module) {
  size_t n = 0;
  for (const Function& function : module.functions) n += function.operations.size();
  return n;
}

// Both forms of a module give it back.
inline std::string broken_round_trip(const Module& module, const std::vector<std::byte>& encoded) {
  const std::string text = print(module);
  if (print(parse(text)) != text) return "print(parse(print(m))) differs from print(m)";
  const Module decoded = decode(encoded, "");
  if (encode(decoded) != encoded) return "encode(decode(encode(m))) differs from encode(m)";
  if (decoded != module && !has_nan(module)) return "decode(encode(m)) differs from m";
  return {};
}

// A text is a module, or is refused with kInvalidArgument.
inline Outcome try_text(std::string_view text) {
  Module module;
  try {
    module = parse(text);
  } catch (const Error& e) {
    return {0, e.code() == ErrorCode::kInvalidArgument ? "" : e.what()};
  } catch (const std::exception& e) {
    return {0, std::string("no coppice::Error: ") + e.what()};
  }
  try {
    return {count_operations(module), broken_round_trip(module, encode(module))};
  } catch (const std::exception& e) {
    return {0, std::string("refused on the way back: ") + e.what()};
  }
}

// Bytes are the encoding of a module, or are refused with kDataLoss.
inline Outcome try_binary(std::span<const std::byte> bytes) {
  Module module;
  try {
    module = decode(bytes, "");
  } catch (const Error& e) {
    return {0, e.code() == ErrorCode::kDataLoss ? "" : e.what()};
  } catch (const std::exception& e) {
    return {0, std::string("no coppice::Error: ") + e.what()};
  }
  try {
    const auto encoded = encode(module);
    if (!std::equal(encoded.begin(), encoded.end(), bytes.begin(), bytes.end()))
      return {0, "encode(decode(bytes)) differs from the bytes"};
    return {count_operations(module), broken_round_trip(module, encoded)};
  } catch (const std::exception& e) {
    return {0, std::string("refused on the way back: ") + e.what()};
  }
}

// Gives a file the header that its payload demands, so that changed bytes get past the checksum.
inline void repair_header(std::span<std::byte> file) {
  if (file.size() < kBinaryHeaderBytes) return;
  const auto payload = file.subspan(kBinaryHeaderBytes);
  const uint64_t words[] = {payload.size(), hash64(payload)};
  std::memcpy(file.data(), "CPEX", 4);
  std::memcpy(file.data() + 4, &kBinaryVersion, 4);
  std::memcpy(file.data() + 8, words, sizeof(words));
}

}  // namespace coppice::executor
