// The base classes of everything reference-counted: strong and weak counts in one 64-bit atomic word.
//
//   RefCounted             virtual destructor and virtual release_resources(); 16 bytes with its vtable
//   pointer RefCountedBase<Self>   8 bytes, no vtable: `class Node final : public RefCountedBase<Node>`. Self
//   may hide
//                          `void release_resources()` and `static void destroy(Self*)` (default: delete).
//
// The word:   63 .......... 30  29 ......... 0
//             strong - 1        weak
//             weak = number of weak pointers + 1 while strong > 0 (the share that all strong pointers hold
//             together)
// Strong is biased so that the last drop makes the word negative: a subtraction and the sign it leaves
// behind, with constants that fit the instructions, are all that dropping a shared reference takes.
//
// Life:   new (0,0) -> make_intrusive (1,1) -> ... -> last strong dropped
//           no weak pointer: destroy()
//           weak pointers:   release_resources(), then destroy() when the last weak pointer goes
// So a class that can be in a cycle drops its strong pointers in release_resources(); its destructor comes
// too late. Once strong is 0 it never rises again. A copy or move of an object does not copy its counts.
// Thread-safe as shared_ptr is: counts may be changed from any thread, one pointer object only from one at a
// time.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

#include "core/check.h"

namespace coppice {

// Returns how many objects derived from RefCountedBase exist now; always 0 unless COPPICE_DEBUG is
// defined.
int64_t live_ref_counted_objects();

#ifdef COPPICE_DEBUG
inline constexpr bool kCountsLiveObjects = true;
#else
inline constexpr bool kCountsLiveObjects = false;
#endif

namespace detail {

void count_live_ref_counted(int delta);

enum class DropResult { kStillReferenced, kReleaseResources, kDestroy };

class RefCount {
 public:
  static constexpr int64_t kStrong = int64_t{1} << 30;
  static constexpr int64_t kWeak = 1;
  static constexpr int64_t kNone = -kStrong;  // 0 and 0: a new object, or one about to be destroyed
  static constexpr int64_t kUnique = kWeak;   // 1 and 1
  static constexpr int64_t kLastWeak = kNone + kWeak;
  static constexpr uint32_t kMaxStrong = 0xFFFFFFFFu;
  static constexpr uint32_t kMaxWeak = 0x3FFFFFFFu;

  static uint32_t strong_of(int64_t word) { return static_cast<uint32_t>((word >> 30) + 1); }
  static uint32_t weak_of(int64_t word) { return static_cast<uint32_t>(word & (kStrong - 1)); }

  // This is relaxed: a snapshot orders nothing.
  int64_t load() const { return word_.load(std::memory_order_relaxed); }

  // This acquires: it pairs with the release of every dropped reference, so whoever sees "only mine" also
  // sees all that the former owners did, and may write without a lock.
  bool is_unique() const { return strong_of(word_.load(std::memory_order_acquire)) == 1; }

  // Returns whether the caller's strong reference is the only one of either kind: nobody else can reach
  // the word.
  bool is_exclusive() const { return word_.load(std::memory_order_acquire) == kUnique; }

  // This is a plain store (relaxed): no other thread knows the object yet; publishing the pointer orders
  // it.
  void start(uint32_t strong = 1) {
    COPPICE_DCHECK(strong > 0);
    word_.store(word_of(strong), std::memory_order_relaxed);
  }

  // Goes back to a new object's count. The caller has seen is_exclusive().
  void stop() { word_.store(kNone, std::memory_order_relaxed); }

  // Makes the only reference `strong` references by a plain store. The caller has seen is_exclusive(), or
  // is_unique() of an object that is never referenced weakly: a weak pointer could be locked meanwhile.
  void set_unique_to(uint32_t strong) {
    COPPICE_DCHECK(load() == kUnique, "set_unique_to() is for the only reference");
    start(strong);
  }

  // This is relaxed: the caller owns a reference already, so the object cannot die, and handing the new
  // one to another thread orders the object's contents.
  void add_strong(uint32_t n = 1) {
    [[maybe_unused]] const int64_t old = word_.fetch_add(n * kStrong, std::memory_order_relaxed);
    COPPICE_DCHECK(strong_of(old) > 0, "an object cannot be brought back: its last strong reference is gone");
    COPPICE_DCHECK(strong_of(old) <= kMaxStrong - n, "too many strong references");
  }
  void add_weak() {
    [[maybe_unused]] const int64_t old = word_.fetch_add(kWeak, std::memory_order_relaxed);
    COPPICE_DCHECK(weak_of(old) > 0,
                   "a weak reference to an object that is not reference-counted, or is gone");
    COPPICE_DCHECK(weak_of(old) < kMaxWeak, "too many weak references");
  }

  // This is relaxed on success as add_strong is; it only matters that 0 -> 1 cannot happen, which the one
  // word guarantees.
  bool try_add_strong() {
    int64_t word = word_.load(std::memory_order_relaxed);
    while (word >= 0) {
      COPPICE_DCHECK(strong_of(word) < kMaxStrong, "too many strong references");
      if (word_.compare_exchange_weak(word, word + kStrong, std::memory_order_relaxed)) return true;
    }
    return false;
  }

  // Drops `n` references of the caller's at once. kLooksFirst is worth it where the last reference is
  // mostly the only one all along; it costs three instructions more for shared ones. kIsWeak says whether
  // there may be weak references.
  template <bool kLooksFirst, bool kIsWeak>
  DropResult drop_strong(uint32_t n) {
    COPPICE_DCHECK(n > 0);
    // These are the only references of either kind: nobody else can reach the word any more, so no RMW is
    // needed. The acquire makes the other owners' last uses (released by their fetch_sub) happen before
    // the destruction.
    if (kLooksFirst && word_.load(std::memory_order_acquire) == word_of(n)) {
      clear();
      return DropResult::kDestroy;
    }
    // It releases: our uses come before the destruction, whoever does it. It acquires: if that is us,
    // theirs come before ours.
    const int64_t old = word_.fetch_sub(n * kStrong, std::memory_order_acq_rel);
    COPPICE_DCHECK(strong_of(old) >= n, "a strong reference dropped once too often");
    if (old - n * kStrong >= 0) return DropResult::kStillReferenced;
    // No pointer can make another now, so the weak ones only get fewer; the word is read again (acquire:
    // for the uses of those that went), since asking for the old word would cost each drop an exchange.
    if (kIsWeak && word_.load(std::memory_order_acquire) != kLastWeak) return DropResult::kReleaseResources;
    clear();  // just the strong pointers' own share is left
    return DropResult::kDestroy;
  }

  // This orders as drop_strong does.
  DropResult drop_weak() {
    if (word_.load(std::memory_order_acquire) != kLastWeak) {
      const int64_t old = word_.fetch_sub(kWeak, std::memory_order_acq_rel);
      COPPICE_DCHECK(weak_of(old) > 0, "a weak reference dropped once too often");
      if (old != kLastWeak) return DropResult::kStillReferenced;
    }
    clear();
    return DropResult::kDestroy;
  }

 private:
  static int64_t word_of(uint32_t strong) { return (int64_t{strong} - 1) * kStrong + kWeak; }
  void clear() {
    if constexpr (kCountsLiveObjects)
      word_.store(kNone, std::memory_order_relaxed);  // the destructor checks it
  }

  std::atomic<int64_t> word_{kNone};
};
static_assert(sizeof(RefCount) == 8);

struct RefAccess;

}  // namespace detail

template <class Self>
class RefCountedBase {
 public:
  using RefCountedSelf = Self;
  // Self may hide these. Without weak references, making one does not compile. Mostly unique are objects
  // that are hardly ever shared when they die, such as values on their way from producer to consumer.
  static constexpr bool kAllowsWeakReferences = true;
  static constexpr bool kIsMostlyUnique = false;

 protected:
  RefCountedBase() { count_live(1); }
  RefCountedBase(const RefCountedBase&) : RefCountedBase() {}
  RefCountedBase& operator=(const RefCountedBase&) { return *this; }  // NOLINT: counts belong to the place
  ~RefCountedBase() {
    COPPICE_DCHECK(ref_count_.load() == detail::RefCount::kNone, "destroyed with references to it");
    count_live(-1);
  }

  void release_resources() {}
  static void destroy(Self* self) { delete self; }

  // This is for a destroy() hook that must lend its object out once more: it owns the only reference
  // again.
  void revive() { ref_count_.start(); }

 private:
  friend struct detail::RefAccess;
  static void count_live([[maybe_unused]] int delta) {
    if constexpr (kCountsLiveObjects) detail::count_live_ref_counted(delta);
  }

  mutable detail::RefCount ref_count_;
};

class RefCounted : public RefCountedBase<RefCounted> {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = default;
  RefCounted& operator=(const RefCounted&) = default;
  virtual ~RefCounted() = default;

 protected:
  // Is called when the last strong reference goes while weak ones remain, and not otherwise: it drops what
  // is expensive.
  virtual void release_resources() {}

 private:
  friend struct detail::RefAccess;
  static void destroy(RefCounted* self) { delete self; }
};
static_assert(sizeof(RefCounted) == 16);

namespace detail {

// This is the one place that touches counts, so that the targets' public interface shows nothing of them.
struct RefAccess {
  template <class T>
  static RefCount& count(const T* target) {
    return static_cast<const RefCountedBase<typename T::RefCountedSelf>*>(target)->ref_count_;
  }
  template <class T>
  static auto* self(const T* target) {
    using Self = typename T::RefCountedSelf;
    return const_cast<Self*>(static_cast<const Self*>(target));
  }
  template <class T>
  static void drop_strong(const T* target, uint32_t n = 1) {
    using Self = typename T::RefCountedSelf;
    switch (count(target).template drop_strong<Self::kIsMostlyUnique, Self::kAllowsWeakReferences>(n)) {
      case DropResult::kStillReferenced:
        return;
      case DropResult::kDestroy:
        Self::destroy(self(target));
        return;
      case DropResult::kReleaseResources:
        self(target)->release_resources();
        drop_weak(target);  // the strong pointers' share
    }
  }
  template <class T>
  static void drop_weak(const T* target) {
    using Self = typename T::RefCountedSelf;
    if (count(target).drop_weak() == DropResult::kDestroy) Self::destroy(self(target));
  }
};

}  // namespace detail
}  // namespace coppice
