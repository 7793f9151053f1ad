// A short array of async values on the stack: arguments or results of one operation. Not owning.
#pragma once
#include <algorithm>
#include <span>
#include <vector>

#include "core/async_value_base.h"

namespace coppice::executor {

// Null at first. Up to eight without an allocation.
class ValueList {
 public:
  explicit ValueList(size_t n) : n_(n) {
    if (n <= kInline) {
      std::fill_n(inline_, n, nullptr);
    } else {
      more_.assign(n, nullptr);
    }
  }
  ValueList(const ValueList&) = delete;
  ValueList& operator=(const ValueList&) = delete;
  std::span<AsyncValue*> span() { return {n_ <= kInline ? inline_ : more_.data(), n_}; }
  AsyncValue*& operator[](size_t i) { return span()[i]; }

 private:
  static constexpr size_t kInline = 8;
  size_t n_;
  AsyncValue* inline_[kInline];
  std::vector<AsyncValue*> more_;
};

}  // namespace coppice::executor
