// Finds the known name that a mistyped one was probably meant to be: Damerau-Levenshtein over three rows.
#include "core/nearest_name.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <vector>

namespace coppice {
namespace {

bool same_letter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

std::size_t largest_distance(std::string_view typed) {
  const std::size_t part = std::max<std::size_t>(1, (typed.size() + 1) / 3);
  return typed.empty() ? 0 : std::min(part, typed.size() - 1);  // one letter replaced by another says nothing
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = same_letter(a[i - 1], b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      const bool swapped =
          i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::optional<std::string> nearest_name(std::string_view typed, std::span<const std::string> names) {
  const auto distance = [typed](const std::string& name) { return edit_distance(typed, name); };
  const auto best = std::ranges::min_element(names, {}, distance);
  if (best == names.end() || distance(*best) > largest_distance(typed)) return std::nullopt;
  return *best;
}

}  // namespace coppice
