// encode(): modules as bytes.
#include <bit>
#include <unordered_map>

#include "core/hash.h"
#include "executor/binary.h"
#include "executor/binary_format.h"

namespace coppice::executor {
namespace {

using namespace binary;
using Bytes = std::vector<std::byte>;

void put_fixed(Bytes& out, uint64_t value, int size) {
  for (int i = 0; i < size; ++i) out.push_back(static_cast<std::byte>(value >> 8 * i));
}

void put_number(Bytes& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<std::byte>(value | 0x80));
  out.push_back(static_cast<std::byte>(value));
}

void put_bytes(Bytes& out, std::string_view text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  out.insert(out.end(), begin, begin + text.size());
}

class Encoder {
 public:
  Bytes payload(const Module& module) {
    put(module.file);
    put_list(module.functions);
    Bytes out;
    put_number(out, strings_.size());
    for (const std::string_view string : strings_) {
      put_number(out, string.size());
      put_bytes(out, string);
    }
    out.insert(out.end(), body_.begin(), body_.end());
    return out;
  }

 private:
  void put(uint32_t value) { put_number(body_, value); }
  void put(const std::string& value);
  void put(int64_t value) {
    put_number(body_, static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
  }
  void put(double value) { put_fixed(body_, std::bit_cast<uint64_t>(value), 8); }
  void put(const Attribute& value);
  void put(const Position& value) { put(value.line), put(value.column); }
  void put(const Register& value) { put(value.name), put(value.use_count), put_list(value.used_by); }
  void put(const Operation& value);
  void put(const Function& value);
  template <class T>
  void put_list(const std::vector<T>& list) {
    put_number(body_, list.size());
    for (const T& item : list) put(item);
  }

  Bytes body_;
  std::vector<std::string_view> strings_;
  std::unordered_map<std::string_view, size_t> indices_;  // in strings_
};

void Encoder::put(const std::string& value) {
  if (value.size() > kLongestShared) {
    put_number(body_, 2 * value.size() + 1);
    put_bytes(body_, value);
    return;
  }
  const auto [entry, is_new] = indices_.try_emplace(value, strings_.size());
  if (is_new) strings_.push_back(value);
  put_number(body_, 2 * entry->second);
}

void Encoder::put(const Attribute& value) {
  const auto put_kind = [this](Kind kind) { put_fixed(body_, kind, 1); };
  if (const auto* truth = std::get_if<bool>(&value)) {
    put_kind(*truth ? kTrue : kFalse);
  } else if (const auto* integer = std::get_if<int64_t>(&value)) {
    put_kind(kInteger), put(*integer);
  } else if (const auto* real = std::get_if<double>(&value)) {
    put_kind(kReal), put(*real);
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    put_kind(kString), put(*text);
  } else if (const auto* function = std::get_if<FunctionRef>(&value)) {
    put_kind(kFunction), put(function->name);
  } else if (const auto* integers = std::get_if<std::vector<int64_t>>(&value)) {
    put_kind(kIntegers), put_list(*integers);
  } else if (const auto* reals = std::get_if<std::vector<double>>(&value)) {
    put_kind(kReals), put_list(*reals);
  } else if (const auto* binding = std::get_if<BindingRef>(&value)) {
    put_kind(kBinding), put(binding->name);
  } else {
    put_kind(kStrings), put_list(std::get<std::vector<std::string>>(value));
  }
}

void Encoder::put(const Operation& value) {
  put(value.name);
  put_list(value.attributes);
  put_list(value.arguments);
  put_number(body_, value.results.size());
  put(value.position);
}

void Encoder::put(const Function& value) {
  put(value.name);
  put_list(value.argument_types);
  put_list(value.result_types);
  put_list(value.registers);
  put_list(value.operations);
  put_list(value.returns);
  put(value.position);
  put(value.return_position);
}

}  // namespace

std::vector<std::byte> encode(const Module& module) {
  check(module);
  const Bytes payload = Encoder().payload(module);
  Bytes out;
  out.reserve(kBinaryHeaderBytes + payload.size());
  put_bytes(out, kMagic);
  put_fixed(out, kBinaryVersion, 4);
  put_fixed(out, payload.size(), 8);
  put_fixed(out, hash64(payload), 8);
  out.insert(out.end(), payload.begin(), payload.end());
  return out;
}

}  // namespace coppice::executor
