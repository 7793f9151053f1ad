// The compact form of modules: what a build step writes and a program loads without parsing.
//
//   offset 0   magic "CPEX", u32 version, u64 size of the payload in bytes, u64 XXH3 of the payload; little-endian
//         24   payload; all numbers LEB128, a list is its length and its items:
//              strings    of at most 32 bytes, each once, in the order of their first use
//              file       (string)
//              functions  name, argument types, result types (strings), registers, operations, returns (registers),
//                         position, position of `return`
//                register    name, use count, used by (operations)
//                operation   name, attributes, arguments (registers), number of results, position
//                attribute   byte 0 false, 1 true, 2 integer (zigzag), 3 real (8 bytes), 4 string, 5 @name;
//                            lists: 6 of integers, 7 of reals, 8 of strings, an empty one as 6
//                position    line, column
//              A string is 2 * its index in `strings`, or, when it is longer than those, 2 * its size + 1 and its
//              bytes here: so that no few bytes of a file make a long string many times.
//
// The numbering of registers says which of them an operation sets (module.h). Each module has exactly one
// encoding, and decode() takes no other.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "executor/module.h"

namespace coppice::executor {

inline constexpr uint32_t kBinaryVersion = 2;
inline constexpr size_t kBinaryHeaderBytes = 24;

// Errors: those of check(module).
std::vector<std::byte> encode(const Module& module);

// decode(encode(m)) == m, reals bit for bit: a module with an attribute that is a nan equals no module, nor
// itself, and yet comes back as it was. check() accepts the result. Errors: kDataLoss for bytes that
// are truncated, altered, of another version or no module at all. It takes linear time, never reads
// beyond `bytes`, and never allocates more than a small multiple of their number (at most about 100).
// `name` is for messages.
Module decode(std::span<const std::byte> bytes, std::string_view name);

}  // namespace coppice::executor
