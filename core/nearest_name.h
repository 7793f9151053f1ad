// Finds the known name that a mistyped one was probably meant to be.
//
// The distance is the restricted Damerau-Levenshtein one: insertions, deletions, substitutions and swaps of
// two neighbouring letters cost 1 each. Letters' case is ignored.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace coppice {

// Cost: O(a.size() * b.size()).
std::size_t edit_distance(std::string_view a, std::string_view b);

// Returns the closest of `names`, or nothing when even that takes more edits than a third of the letters
// (1 for up to four, 2 for five to seven, ...). The earlier name wins a tie.
std::optional<std::string> nearest_name(std::string_view typed, std::span<const std::string> names);

}  // namespace coppice
