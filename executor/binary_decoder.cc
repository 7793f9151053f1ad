// decode(): bytes as modules. Trusts nothing: a checksum keeps out accidents, not intent.
#include <fmt/format.h>

#include <bit>
#include <limits>
#include <unordered_set>

#include "core/error.h"
#include "core/hash.h"
#include "executor/binary.h"
#include "executor/binary_format.h"

namespace coppice::executor {
namespace {

using namespace binary;

[[noreturn]] void fail(std::string_view name, std::string message) {
  throw Error(ErrorCode::kDataLoss, std::move(message), {std::string(name)});
}

uint64_t read_fixed(std::span<const std::byte> bytes, size_t offset, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) value |= static_cast<uint64_t>(bytes[offset + i]) << 8 * i;
  return value;
}

// The payload of a file whose header is right.
std::span<const std::byte> open(std::span<const std::byte> bytes, std::string_view name) {
  const auto magic = std::as_bytes(std::span(kMagic));
  if (bytes.size() < magic.size() || !std::equal(magic.begin(), magic.end(), bytes.begin()))
    fail(name, fmt::format("no module in binary form: expected '{}' at its start", kMagic));
  if (bytes.size() < kBinaryHeaderBytes)
    fail(name, fmt::format("truncated: {} bytes, and the header has {}", bytes.size(), kBinaryHeaderBytes));
  const uint64_t version = read_fixed(bytes, kVersionOffset, 4);
  if (version != kBinaryVersion)
    fail(name, fmt::format("version {} of the binary form, and this program reads version {}: make it anew",
                           version, kBinaryVersion));
  const auto payload = bytes.subspan(kBinaryHeaderBytes);
  const uint64_t size = read_fixed(bytes, kSizeOffset, 8);
  if (payload.size() != size)
    fail(name, fmt::format("{}: {} bytes behind the header, which says {}",
                           payload.size() < size ? "truncated" : "too long", payload.size(), size));
  if (hash64(payload) != read_fixed(bytes, kHashOffset, 8))
    fail(name, "altered: its bytes do not have its checksum");
  return payload;
}

class Decoder {
 public:
  Decoder(std::span<const std::byte> payload, std::string_view name) : bytes_(payload), name_(name) {}

  Module module();

 private:
  // These are the least sizes in bytes of an encoded string, register, operation, function: they bound
  // what a length may claim.
  static constexpr size_t kStringBytes = 1, kRegisterBytes = 3, kOperationBytes = 6, kFunctionBytes = 10;
  static constexpr size_t kRealBytes = 8;

  size_t left() const { return bytes_.size() - next_; }
  uint8_t byte();
  uint64_t number();
  uint32_t number32();
  size_t length(size_t least_bytes_each);
  std::string_view text(size_t size);

  void read_strings();
  std::string string();
  int64_t integer();
  double real();
  Attribute attribute();
  Position position();
  Register one_register();
  Operation operation(uint32_t& n_set);
  Function function();
  template <class Read>
  auto list(size_t least_bytes_each, Read read) {
    std::vector<decltype(read())> items;
    const size_t n = length(least_bytes_each);
    items.reserve(n);
    for (size_t i = 0; i < n; ++i) items.push_back(read());
    return items;
  }
  std::vector<std::string> strings() {
    return list(kStringBytes, [this] { return string(); });
  }
  std::vector<uint32_t> numbers() {
    return list(1, [this] { return number32(); });
  }
  [[noreturn]] void malformed(std::string_view what) const {
    fail(name_, fmt::format("malformed at byte {}: {}", kBinaryHeaderBytes + next_, what));
  }

  std::span<const std::byte> bytes_;
  std::string_view name_;
  size_t next_ = 0;
  std::vector<std::string_view> strings_;
  size_t n_strings_used_ = 0;
  size_t n_registers_ = 0;  // of the current function
};

uint8_t Decoder::byte() {
  if (left() == 0) malformed("the payload ends here, and something must follow");
  return static_cast<uint8_t>(bytes_[next_++]);
}

uint64_t Decoder::number() {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const uint8_t b = byte();
    if (shift == 63 && b > 1) malformed("a number of more than 64 bits");
    value |= static_cast<uint64_t>(b & 0x7f) << shift;
    if (b >= 0x80) continue;
    if (b == 0 && shift > 0) malformed("a number with needless zeros");
    return value;
  }
}

uint32_t Decoder::number32() {
  const uint64_t value = number();
  if (value > std::numeric_limits<uint32_t>::max()) malformed("a number of more than 32 bits");
  return static_cast<uint32_t>(value);
}

size_t Decoder::length(size_t least_bytes_each) {
  const uint64_t n = number();
  if (n > left() / least_bytes_each) malformed("a list that is longer than the payload");
  return n;
}

std::string_view Decoder::text(size_t size) {
  const auto* begin = reinterpret_cast<const char*>(bytes_.data()) + next_;
  next_ += size;
  return {begin, size};
}

void Decoder::read_strings() {
  strings_ = list(kStringBytes, [this] { return text(length(1)); });
  const std::unordered_set<std::string_view> distinct(strings_.begin(), strings_.end());
  if (distinct.size() != strings_.size()) malformed("the table has a string twice");
  for (const std::string_view s : strings_)
    if (s.size() > kLongestShared) malformed("the table has a string that is too long for it");
}

std::string Decoder::string() {
  const uint64_t reference = number();
  const uint64_t value = reference >> 1;
  if ((reference & 1) != 0) {
    if (value > left()) malformed("a string that is longer than the payload");
    if (value <= kLongestShared) malformed("a short string outside of the table");
    return std::string(text(value));
  }
  if (value > n_strings_used_ || value >= strings_.size()) malformed("a string out of the table's order");
  if (value == n_strings_used_) ++n_strings_used_;
  return std::string(strings_[value]);
}

int64_t Decoder::integer() {
  const uint64_t zigzag = number();
  return static_cast<int64_t>(zigzag >> 1 ^ (0 - (zigzag & 1)));
}

double Decoder::real() {
  if (left() < kRealBytes) malformed("a real needs 8 bytes");
  next_ += kRealBytes;
  return std::bit_cast<double>(read_fixed(bytes_, next_ - kRealBytes, kRealBytes));
}

Attribute Decoder::attribute() {
  switch (const uint8_t kind = byte(); kind) {
    case kFalse:
      return false;
    case kTrue:
      return true;
    case kInteger:
      return integer();
    case kReal:
      return real();
    case kString:
      return string();
    case kFunction:
      return FunctionRef{string()};
    case kIntegers:
      return list(1, [this] { return integer(); });
    case kReals:
      return list(kRealBytes, [this] { return real(); });
    case kStrings:
      return strings();
    case kBinding:
      return BindingRef{string()};
    default:
      malformed(fmt::format("there is no attribute of kind {}", kind));
  }
}

Position Decoder::position() {
  const uint32_t line = number32();
  return {line, number32()};
}

Register Decoder::one_register() {
  Register r;
  r.name = string();
  r.use_count = number32();
  r.used_by = numbers();
  return r;
}

Operation Decoder::operation(uint32_t& n_set) {
  Operation operation;
  operation.name = string();
  operation.attributes = list(1, [this] { return attribute(); });
  operation.arguments = numbers();
  // There are at most as many as there are registers: this bounds what the length allocates.
  const uint64_t n_results = number();
  if (n_results > n_registers_ - n_set) malformed("an operation sets more registers than there are");
  operation.results.resize(n_results);
  for (uint32_t& r : operation.results) r = n_set++;
  operation.position = position();
  return operation;
}

Function Decoder::function() {
  Function f;
  f.name = string();
  f.argument_types = strings();
  f.result_types = strings();
  f.registers = list(kRegisterBytes, [this] { return one_register(); });
  auto n_set = static_cast<uint32_t>(f.argument_types.size());
  if (n_set > f.registers.size()) malformed("a function has more arguments than registers");
  n_registers_ = f.registers.size();
  f.operations = list(kOperationBytes, [&] { return operation(n_set); });
  f.returns = numbers();
  f.position = position();
  f.return_position = position();
  return f;
}

Module Decoder::module() {
  read_strings();
  Module m;
  m.file = string();
  m.functions = list(kFunctionBytes, [this] { return function(); });
  if (left() != 0) malformed("more follows behind the last function");
  if (n_strings_used_ != strings_.size()) malformed("the table has a string that is not used");
  return m;
}

}  // namespace

Module decode(std::span<const std::byte> bytes, std::string_view name) {
  Module module = Decoder(open(bytes, name), name).module();
  try {
    check(module);
  } catch (const Error& e) {
    fail(name, fmt::format("malformed: {}", e.message()));
  }
  return module;
}

}  // namespace coppice::executor
