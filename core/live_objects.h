// Counts, in debug builds, which of the counted objects exist, and which have been left behind.
//
//   const LeakCheck check;
//   { ... }
//   EXPECT_EQ(check.report(), "");        // or "1 async value, 1 block"
//
// Counted are async values (core/async_value_base.h), other reference-counted objects (core/ref_counted.h)
// and blocks of the pool (core/block_pool.h: values, continuations, frames). Without COPPICE_DEBUG nothing
// is counted and reports are empty. Thread-safe, but only numbers of objects that no thread is at work on
// mean something.
#pragma once

#include <cstdint>
#include <string>

namespace coppice {

struct LiveObjects {
  int64_t async_values = 0;
  int64_t ref_counted = 0;  // others than async values
  int64_t blocks = 0;

  static LiveObjects now();
};

// Returns "2 async values, 1 other reference-counted object, 3 blocks", without what there is none of;
// empty for none at all.
std::string describe(const LiveObjects& objects);

// Reports on its own scope: what was made since and is still there. It also reports what is gone that was
// there before, as "-1 block".
class LeakCheck {
 public:
  LeakCheck() : before_(LiveObjects::now()) {}
  std::string report() const;

 private:
  const LiveObjects before_;
};

}  // namespace coppice
