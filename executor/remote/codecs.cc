// The codecs that are always there, and values with their types' names.
#include "executor/remote/codecs.h"

#include <fmt/format.h>

#include <bit>
#include <limits>

#include "core/check.h"
#include "executor/host_bytes.h"

namespace coppice::executor::remote {
namespace {

template <class T>
void add_integer(Codecs& codecs, std::string_view name) {
  // Zigzag: small numbers of either sign are short.
  codecs.add<T>(
      name,
      [](T value, Writer& out) {
        const auto wide = static_cast<int64_t>(value);
        out.number(static_cast<uint64_t>(wide) << 1 ^ static_cast<uint64_t>(wide >> 63));
      },
      [](Reader& in) {
        const uint64_t bits = in.number();
        const auto value = static_cast<int64_t>(bits >> 1 ^ (~(bits & 1) + 1));
        if (value < std::numeric_limits<T>::min() || value > std::numeric_limits<T>::max())
          in.fail(fmt::format("{} is out of its type's range", value));
        return static_cast<T>(value);
      });
}

}  // namespace

Codecs::Codecs() {
  add_integer<int32_t>(*this, "i32");
  add_integer<int64_t>(*this, "i64");
  add<Chain>(
      "chain", [](Chain, Writer&) {}, [](Reader&) { return Chain(); });
  add<bool>(
      "bool", [](bool value, Writer& out) { out.byte(value); },
      [](Reader& in) { return in.number_to(1, "a bool") == 1; });
  add<float>(
      "f32", [](float value, Writer& out) { out.fixed64(std::bit_cast<uint32_t>(value)); },
      [](Reader& in) {
        const uint64_t bits = in.fixed64();
        if (bits >> 32 != 0) in.fail("a float of more than 32 bits");
        return std::bit_cast<float>(static_cast<uint32_t>(bits));
      });
  add<double>(
      "f64", [](double value, Writer& out) { out.fixed64(std::bit_cast<uint64_t>(value)); },
      [](Reader& in) { return std::bit_cast<double>(in.fixed64()); });
  add<std::string>(
      "string", [](const std::string& value, Writer& out) { out.text(value); },
      [](Reader& in) { return in.text(); });
  add<HostBytes>(
      "bytes",
      [](const HostBytes& value, Writer& out) {
        out.bytes({value.data(), value.size_bytes()});
      },
      [](Reader& in) {
        const auto bytes = in.bytes();
        HostBytes value(bytes.size(), *std::pmr::new_delete_resource());
        std::copy(bytes.begin(), bytes.end(), value.data());
        return value;
      });
}

void Codecs::add(std::type_index type, Codec codec) {
  const auto [place, is_new] = tables_->by_type.emplace(type, std::move(codec));
  COPPICE_CHECK(is_new, "the type has a codec, {}", place->second.name);
  const bool is_free = tables_->by_name.emplace(place->second.name, &place->second).second;
  COPPICE_CHECK(is_free, "another type's codec has the name {}", place->second.name);
}

const Codec* Codecs::find(std::type_index type) const {
  const auto found = tables_->by_type.find(type);
  return found == tables_->by_type.end() ? nullptr : &found->second;
}

const Codec* Codecs::find(std::string_view name) const {
  const auto found = tables_->by_name.find(name);
  return found == tables_->by_name.end() ? nullptr : found->second;
}

const Codec& Codecs::of(std::type_index type) const {
  const Codec* codec = find(type);
  if (codec == nullptr)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("values of C++ type {} cannot be sent: register a codec for it", type.name()));
  return *codec;
}

Error wrong_type(const Codecs& codecs, const AsyncValue& value, std::type_index wanted) {
  const std::type_info* type = value.payload_type();
  const Codec* is = type == nullptr ? nullptr : codecs.find(*type);
  return {ErrorCode::kInvalidArgument,
          fmt::format("a value of type {} was to come, and {} has", codecs.of(wanted).name,
                      is != nullptr ? is->name : "another")};
}

void encode_value(const Codecs& codecs, const AsyncValue& value, Encoder& to) {
  const std::type_info* type = value.payload_type();
  COPPICE_CHECK(type != nullptr && value.is_concrete(), "a value that is not there is not sent");
  const Codec& codec = codecs.of(*type);
  to.out.text(codec.name);
  Encoder body;
  std::swap(body.references, to.references);
  codec.encode(value, body);
  std::swap(body.references, to.references);
  to.out.bytes(body.out.take());
}

RCReference<AsyncValue> decode_value(const Codecs& codecs, Decoder& from) {
  const std::string name = from.in.text();
  const Codec* codec = codecs.find(name);
  if (codec == nullptr)
    throw Error(ErrorCode::kNotFound,
                fmt::format("a value of type '{}' has come, which has no codec here", name));
  Decoder body{Reader(from.in.bytes()), from.references};
  RCReference<AsyncValue> value = codec->decode(body);
  body.in.expect_end();
  return value;
}

}  // namespace coppice::executor::remote
