// Counts the memory that reading hostile bytes takes, for a libFuzzer target: included once by each.
#pragma once
#include <sanitizer/allocator_interface.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/error.h"

namespace coppice::fuzz {

// Decoders promise the first bound; the second one is room for an exception.
constexpr size_t kMostPerByte = 100, kMostBesides = 4096;

inline bool is_counting = false;
inline size_t live_bytes = 0, most_live_bytes = 0;

inline void on_malloc(const volatile void*, size_t size) {
  if (!is_counting) return;
  live_bytes += size;
  most_live_bytes = std::max(most_live_bytes, live_bytes);
}

inline void on_free(const volatile void* block) {
  if (is_counting && block != nullptr)
    live_bytes -= __sanitizer_get_allocated_size(const_cast<const void*>(block));
}

// Says what is broken, if anything, and ends the program.
inline void must_hold(const std::string& broken) {
  if (broken.empty()) return;
  std::fprintf(stderr, "%s\n", broken.c_str());
  std::abort();
}

// Ends the program when decode(), which may refuse the bytes, holds too much memory at once for so many.
template <class Decode>
void must_decode_within_bounds(size_t size, const Decode& decode) {
  live_bytes = most_live_bytes = 0;
  is_counting = true;
  try {
    decode();
  } catch (const Error&) {
  }
  is_counting = false;
  if (most_live_bytes > kMostPerByte * size + kMostBesides)
    must_hold(std::to_string(most_live_bytes) + " bytes of memory for " + std::to_string(size) + " bytes");
}

}  // namespace coppice::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  return __sanitizer_install_malloc_and_free_hooks(coppice::fuzz::on_malloc, coppice::fuzz::on_free) > 0 ? 0
                                                                                                         : 1;
}
