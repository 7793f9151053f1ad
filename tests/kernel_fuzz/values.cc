// Values that kernels stumble over (see values.h).
#include "tests/kernel_fuzz/values.h"

#include <fmt/format.h>

#include "core/error.h"
#include "tests/kernel_fuzz/forest.h"

namespace coppice::kernel_fuzz {
namespace {

template <class Visit>
auto with_type(std::string_view type, Visit&& visit) {
  if (type == "u8") return visit(uint8_t{});
  if (type == "i16") return visit(int16_t{});
  if (type == "i32" || type == "flag") return visit(int32_t{});
  if (type == "i64") return visit(int64_t{});
  if (type == "f32") return visit(float{});
  if (type == "f64") return visit(double{});
  throw Error(ErrorCode::kUsage, fmt::format("no type '{}'", type));
}

template <class T>
T load(const unsigned char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace

std::vector<unsigned char> fuzz_values(std::string_view type, uint64_t n, uint64_t seed) {
  return with_type(type, [&]<class T>(T) {
    std::vector<unsigned char> bytes(n * sizeof(T));
    for (uint64_t i = 0; i < n; ++i) {
      const T value = fuzz_value<T>(mix(seed, i));
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof value);
    }
    return bytes;
  });
}

std::vector<unsigned char> whole_values(std::string_view type, uint64_t n, uint64_t seed) {
  return with_type(type, [&]<class T>(T) {
    std::vector<unsigned char> bytes(n * sizeof(T));
    for (uint64_t i = 0; i < n; ++i) {
      const T value = static_cast<T>(static_cast<int64_t>(mix(seed, i) % 17) - 8);
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof value);
    }
    return bytes;
  });
}

uint32_t bytes_of(std::string_view type) {
  return with_type(type, []<class T>(T) { return static_cast<uint32_t>(sizeof(T)); });
}

bool same_value(std::string_view type, const unsigned char* a, const unsigned char* b, bool either_zero) {
  return with_type(type, [&]<class T>(T) {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(load<T>(a)) && std::isnan(load<T>(b))) return true;
      if (either_zero && load<T>(a) == 0 && load<T>(b) == 0) return true;
    }
    return std::memcmp(a, b, sizeof(T)) == 0;
  });
}

std::string value_text(std::string_view type, const unsigned char* value) {
  return with_type(type, [&]<class T>(T) {
    if constexpr (std::is_floating_point_v<T>)
      return fmt::format("{:a} ({})", load<T>(value), load<T>(value));
    else
      return fmt::format("{}", load<T>(value));
  });
}

}  // namespace coppice::kernel_fuzz
