// Finds where the rounds of a loop go in a circle, because they only pass errors on.
//
// A body whose operations all need an argument makes of the same errors always the same: its round is a
// function of the errors alone. Their paths grow from round to round, but not for ever (Error::with_step()),
// and a body may exchange them. So the rounds come to a state that was there before, from which on as many of
// them as the circle has change nothing. It is found by Brent's algorithm ("An improved Monte Carlo
// factorization algorithm", 1980): each state is compared with one before, which moves on at distances that
// double.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/async_value.h"
#include "core/error.h"

namespace coppice::executor {

class ErrorRounds {
 public:
  // A round, of `count`, begins with `values`. Returns the number of the round that a loop goes on with to
  // have in the end what all rounds would have given: `round`, or a later one where all values are errors
  // that were there before.
  int64_t skip(std::span<const RCReference<AsyncValue>> values, int64_t round, int64_t count);
  void clear() { *this = ErrorRounds(); }

 private:
  std::vector<Error> marked_;  // empty: none
  int64_t marked_at_ = 0, distance_ = 1;
};

}  // namespace coppice::executor
