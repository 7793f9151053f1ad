// Rounds that only pass errors on (see error_rounds.h).
#include "executor/error_rounds.h"

#include <algorithm>
#include <utility>

namespace coppice::executor {
namespace {

// Returns whether nothing tells the errors apart.
bool are_same(const Error& a, const Error& b) {
  const InputLocation &at_a = a.location(), &at_b = b.location();
  return a.code() == b.code() && a.message() == b.message() && a.path() == b.path() &&
         at_a.file == at_b.file && at_a.line == at_b.line && at_a.column == at_b.column;
}

}  // namespace

int64_t ErrorRounds::skip(std::span<const RCReference<AsyncValue>> values, int64_t round, int64_t count) {
  if (values.empty()) return round;
  std::vector<Error> errors;
  for (const auto& value : values) {
    if (!value->is_error()) return round;
    errors.push_back(value->error());
  }
  if (!marked_.empty()) {
    if (round == marked_at_) return round;  // a loop that had to wait looks again
    if (std::equal(errors.begin(), errors.end(), marked_.begin(), marked_.end(), are_same))
      return count - (count - round) % (round - marked_at_);
    if (round - marked_at_ < distance_) return round;
    distance_ *= 2;
  }
  marked_ = std::move(errors);
  marked_at_ = round;
  return round;
}

}  // namespace coppice::executor
