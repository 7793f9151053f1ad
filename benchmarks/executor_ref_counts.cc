// Reference counts beside std::shared_ptr and boost::intrusive_ptr: objects of 8 bytes without a vtable.
#include <atomic>
#include <memory>

#include "benchmarks/executor_cases.h"
#include "core/intrusive_ptr.h"

#if __has_include(<boost/smart_ptr/intrusive_ref_counter.hpp>)
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>
#define COPPICE_HAS_BOOST 1
#endif

namespace coppice::bench {
namespace {

struct Ours final : RefCountedBase<Ours> {
  int64_t payload = 1;
};
// As Boost's: without weak references.
struct OursStrong final : RefCountedBase<OursStrong> {
  static constexpr bool kAllowsWeakReferences = false;
  int64_t payload = 1;
};
struct Standard {
  int64_t payload = 1;
};
struct Floor {
  std::atomic<uint64_t> count{1};
  int64_t payload = 1;
};
#ifdef COPPICE_HAS_BOOST
struct Boost : boost::intrusive_ref_counter<Boost, boost::thread_safe_counter> {
  int64_t payload = 1;
};
#endif

auto make_ours() { return make_intrusive<Ours>(); }
auto make_strong() { return make_intrusive<OursStrong>(); }
auto make_standard() { return std::make_shared<Standard>(); }

template <class Make>
void copy_and_drop(Make make, int n) {
  const auto original = make();
  for (int i = 0; i < n; ++i) {
    const auto copy = original;
    keep(copy);
  }
}
template <class Make>
void make_and_destroy(Make make, int n) {
  for (int i = 0; i < n; ++i) {
    const auto made = make();
    keep(made);
  }
}
constexpr int kElements = 4096;
template <class Make>
void assign_and_reset(Make make, int n) {
  const auto original = make();
  std::vector<decltype(make())> array(kElements);
  for (int i = 0; i < n; ++i) {
    for (auto& element : array) element = original;
    keep(array);
    for (auto& element : array) element.reset();
    keep(array);
  }
}
template <class Weak, class Strong>
void lock_and_drop(Strong strong, int n) {
  const Weak weak(strong);
  for (int i = 0; i < n; ++i) {
    const auto locked = weak.lock();
    keep(locked);
  }
}

void floor_of_two_updates(int n) {
  Floor floor;
  for (int i = 0; i < n; ++i) {
    floor.count.fetch_add(1, std::memory_order_relaxed);
    keep(floor);
    floor.count.fetch_sub(1, std::memory_order_acq_rel);
  }
}
void floor_of_allocation(int n) {
  for (int i = 0; i < n; ++i) {
    const auto* const made = new Floor;
    keep(*made);
    delete made;
  }
}

struct Program {
  std::string name, what;
  MicroCase::Run ours, standard, strong, boost, floor;  // strong: ours as it stands beside Boost's
  int units = 1;
  int n = 20'000;
};

std::vector<Program> programs() {
  std::vector<Program> all{{"ref_copy_drop",
                            "floor: two atomic additions",
                            [](int n) { copy_and_drop(&make_ours, n); },
                            [](int n) { copy_and_drop(&make_standard, n); },
                            [](int n) { copy_and_drop(&make_strong, n); },
                            {},
                            &floor_of_two_updates},
                           {"ref_make_destroy",
                            "floor: new and delete",
                            [](int n) { make_and_destroy(&make_ours, n); },
                            [](int n) { make_and_destroy(&make_standard, n); },
                            [](int n) { make_and_destroy(&make_strong, n); },
                            {},
                            &floor_of_allocation},
                           {"ref_array",
                            "4096 pointers assigned and reset; floor: two atomic additions",
                            [](int n) { assign_and_reset(&make_ours, n); },
                            [](int n) { assign_and_reset(&make_standard, n); },
                            [](int n) { assign_and_reset(&make_strong, n); },
                            {},
                            [](int n) { floor_of_two_updates(n * kElements); },
                            kElements,
                            10},
                           {"ref_weak_lock",
                            "floor: two atomic additions",
                            [](int n) { lock_and_drop<WeakIntrusivePtr<Ours>>(make_ours(), n); },
                            [](int n) { lock_and_drop<std::weak_ptr<Standard>>(make_standard(), n); },
                            {},
                            {},
                            &floor_of_two_updates}};
#ifdef COPPICE_HAS_BOOST
  const auto make_boost = [] { return boost::intrusive_ptr<Boost>(new Boost); };
  all[0].boost = [make_boost](int n) { copy_and_drop(make_boost, n); };
  all[1].boost = [make_boost](int n) { make_and_destroy(make_boost, n); };
  all[2].boost = [make_boost](int n) { assign_and_reset(make_boost, n); };
#endif
  return all;
}

}  // namespace

std::vector<MicroCase> ref_count_cases() {
  std::vector<MicroCase> cases;
  for (const Program& p : programs()) {
    MicroCase c;
    c.name = p.name, c.units = p.units, c.n = p.n, c.detail = p.what;
    c.unit = p.units > 1 ? "ns/element" : "ns";
    c.ours = p.ours, c.floor = p.floor;
    c.peer = p.standard, c.peer_name = "std::shared_ptr";
    c.target = ratio_at_most(1);
    cases.push_back(c);
    if (p.name == "ref_weak_lock") continue;  // Boost's has no weak pointer
    c.name += "_boost", c.ours = p.strong, c.peer = p.boost;
    c.peer_name = p.boost ? "boost::intrusive_ptr" : "no Boost (libboost-dev)";
    cases.push_back(c);
  }
  return cases;
}

}  // namespace coppice::bench
