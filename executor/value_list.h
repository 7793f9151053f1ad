// A short array of async values on the stack: arguments or results of one operation. Not owning.
#pragma once
#include <span>
#include <vector>

#include "core/async_value_base.h"
#include "core/intrusive_ptr.h"

namespace coppice::executor {

// The values are null at first. Up to eight need no allocation.
class ValueList {
 public:
  explicit ValueList(size_t n) : n_(n), values_(n <= kInline ? inline_ : new AsyncValue*[n]()) {}
  ValueList(const ValueList&) = delete;
  ValueList& operator=(const ValueList&) = delete;
  ~ValueList() {
    if (n_ > kInline) delete[] values_;
  }
  std::span<AsyncValue*> span() { return {values_, n_}; }
  AsyncValue*& operator[](size_t i) { return values_[i]; }

 private:
  static constexpr size_t kInline = 8;
  size_t n_;
  AsyncValue** values_;
  // All eight are cleared: that is a constant number of stores, where clearing n of them would be a call.
  AsyncValue* inline_[kInline] = {};
};

// Takes references over.
inline std::vector<RCReference<AsyncValue>> owned(std::span<AsyncValue* const> values) {
  std::vector<RCReference<AsyncValue>> references;
  for (AsyncValue* const value : values) references.push_back(RCReference<AsyncValue>::reclaim(value));
  return references;
}

}  // namespace coppice::executor
