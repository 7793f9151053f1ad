// How values of registered types travel: each type has a name that is the same on all workers, and two
// functions.
//
//   Codecs codecs;                                     // numbers, bool, chain, string and bytes are there
//   codecs.add<Mesh>("mesh", [](const Mesh& m, Writer& out) { ... }, [](Reader& in) { return Mesh(...); });
//   codecs.add_remote<Mesh>();                         // RemoteRef<Mesh>, named "remote.mesh"
//
// Names are those that the functions' registry has for the types (executor/registry.h). A decoder reads
// hostile bytes: Reader believes no length, and a decoder throws kDataLoss for what is no value. It reads
// all of its bytes, or they are refused.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <typeindex>

#include "core/async_value.h"
#include "executor/remote/lease.h"
#include "executor/remote/wire.h"

namespace coppice::executor::remote {

template <class T>
class RemoteRef;

// Encodes a value, and collects the references in it.
struct Encoder {
  Writer out;
  Leases references;
};
struct Decoder {
  Reader in;
  const Leases& references;
};

struct Codec {
  std::string name;
  std::function<void(const AsyncValue&, Encoder&)> encode;
  std::function<RCReference<AsyncValue>(Decoder&)> decode;
};

// A handle: copies share what is registered. Registering is for one thread at a time, before others read.
class Codecs {
 public:
  Codecs();

  // A name or type that is taken is a failed check.
  template <class T, class Encode, class Decode>
  void add(std::string_view name, Encode encode, Decode decode) {
    add(typeid(T),
        {std::string(name), [encode](const AsyncValue& value, Encoder& e) { encode(value.get<T>(), e.out); },
         [decode](Decoder& d) -> RCReference<AsyncValue> {
           return make_available_async_value<T>(decode(d.in));
         }});
  }
  template <class T>
  void add_remote();

  // Null: there is none.
  const Codec* find(std::type_index type) const;
  const Codec* find(std::string_view name) const;
  // Errors: kInvalidArgument.
  const Codec& of(std::type_index type) const;

 private:
  void add(std::type_index type, Codec codec);
  struct Tables {
    std::map<std::type_index, Codec> by_type;
    std::map<std::string, const Codec*, std::less<>> by_name;
  };
  std::shared_ptr<Tables> tables_ = std::make_shared<Tables>();
};

// Writes the name of the value's type and its bytes. Errors: kInvalidArgument for a type without a codec.
void encode_value(const Codecs& codecs, const AsyncValue& value, Encoder& to);
// Returns an available value. Errors: kDataLoss; kNotFound for a name that has no codec here.
RCReference<AsyncValue> decode_value(const Codecs& codecs, Decoder& from);

// Returns the error of a value that has another type than `wanted`.
Error wrong_type(const Codecs& codecs, const AsyncValue& value, std::type_index wanted);

}  // namespace coppice::executor::remote
