// The compact form of modules: what a build step writes and a program loads without parsing.
//
//   offset 0   magic "CPEX", u32 version, u64 size of the payload in bytes, u64 XXH3 of the payload
//         24   payload: string table, then functions; all numbers LEB128, references to strings by index.
//              Per register its use count and used-by records, per operation its position in the text.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "executor/module.h"

namespace coppice::executor {

inline constexpr uint32_t kBinaryVersion = 1;

std::vector<std::byte> encode(const Module& module);

// decode(encode(m)) == m. Errors: kDataLoss for what is truncated, altered, of another version or no module at all;
// never reads beyond `bytes`, never allocates more than a small multiple of their number. `name` is for messages.
Module decode(std::span<const std::byte> bytes, std::string_view name);

}  // namespace coppice::executor
