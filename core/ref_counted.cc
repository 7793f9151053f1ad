// The debug builds' count of live reference-counted objects.
#include "core/ref_counted.h"

namespace coppice {
namespace {
// This is a global only so that a leak test is one line; release builds never touch it.
constinit std::atomic<int64_t> live_objects{0};
}  // namespace

int64_t live_ref_counted_objects() { return live_objects.load(std::memory_order_relaxed); }

void detail::count_live_ref_counted(int delta) { live_objects.fetch_add(delta, std::memory_order_relaxed); }

}  // namespace coppice
