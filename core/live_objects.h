// What exists of the objects that are counted in debug builds, and what has been left behind.
//
//   const LeakCheck check;
//   { ... }
//   EXPECT_EQ(check.report(), "");        // or "1 async value, 1 block"
//
// Async values (core/async_value_base.h), other reference-counted objects (core/ref_counted.h), blocks of the
// pool (core/block_pool.h: values, continuations, frames). Without COPPICE_DEBUG nothing is counted and
// reports are empty. Thread-safe, but only what no thread is at work on gives numbers that mean something.
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

// "2 async values, 1 other reference-counted object, 3 blocks", without what there is
// none of; empty for none at all.
std::string describe(const LiveObjects& objects);

// Of its own scope: what was made since and is still there. Also what is gone that
// was there before, as "-1 block".
class LeakCheck {
 public:
  LeakCheck() : before_(LiveObjects::now()) {}
  std::string report() const;

 private:
  const LiveObjects before_;
};

}  // namespace coppice
