// Owning pointers to reference-counted objects: IntrusivePtr (strong) and WeakIntrusivePtr.
//
//   auto node = make_intrusive<Node>(arguments...);      // one allocation, first reference a plain store
//   WeakIntrusivePtr<Node> weak(node);                   // breaks cycles; weak.lock() gives a strong pointer
//   or null
//   IntrusivePtr<Node> other = share(raw);               // one more pointer to an object that has an owner already
//   Node* raw = node.release();                          // hands the reference out, to C code for instance ...
//   auto again = IntrusivePtr<Node>(raw, kAdoptRef);     // ... and takes it back; reclaim(raw) is the same
//   auto lent = adopt_unowned(arena_node);               // an object that no heap owns; reclaim_unowned() ends that
//
// There is no constructor from a bare pointer: IntrusivePtr<Node>(new Node) does not compile. share() and
// reclaim() are for objects that make_intrusive() or adopt_unowned() has begun to count, which debug builds
// check. One pointer wide. Copies cost one relaxed atomic addition, moves none. Targets derive from
// RefCounted or RefCountedBase (core/ref_counted.h). NullType::singleton() is what an empty pointer holds:
// nullptr unless a class has an "undefined" object of its own, which is then neither counted nor destroyed.
#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <type_traits>
#include <utility>

#include "core/ref_counted.h"

namespace coppice {

// This tag says that the pointer takes over a reference that is already counted.
struct AdoptRef {};
inline constexpr AdoptRef kAdoptRef{};

template <class T>
struct DefaultNullType {
  static constexpr T* singleton() noexcept { return nullptr; }
};

template <class T, class NullType = DefaultNullType<T>>
class WeakIntrusivePtr;

template <class T, class NullType = DefaultNullType<T>>
class IntrusivePtr {
 public:
  using element_type = T;

  IntrusivePtr() noexcept : target_(NullType::singleton()) {}
  IntrusivePtr(std::nullptr_t) noexcept : IntrusivePtr() {}
  IntrusivePtr(T* target, AdoptRef) noexcept : target_(target) {}

  IntrusivePtr(const IntrusivePtr& other) noexcept : target_(other.target_) { retain(); }
  IntrusivePtr(IntrusivePtr&& other) noexcept : target_(other.release()) {}
  template <class U, class N>
  requires std::is_convertible_v<U*, T*> IntrusivePtr(const IntrusivePtr<U, N>& other)
  noexcept : target_(from(other, other.get())) { retain(); }
  template <class U, class N>
  requires std::is_convertible_v<U*, T*> IntrusivePtr(IntrusivePtr<U, N>&& other)
  noexcept : target_(from(other, other.get())) { (void)other.release(); }
  ~IntrusivePtr() {
    if (target_ != NullType::singleton()) detail::RefAccess::drop_strong(target_);
  }

  // The argument is passed by value: the old target goes when the argument does, after this pointer
  // already holds the new one, so that a destructor that looks at this pointer, and self-assignment, are
  // harmless.
  IntrusivePtr& operator=(IntrusivePtr other) noexcept {
    swap(other);
    return *this;
  }

  static IntrusivePtr reclaim(T* target) noexcept { return IntrusivePtr(target, kAdoptRef); }
  [[nodiscard]] T* release() noexcept { return std::exchange(target_, NullType::singleton()); }
  void reset() noexcept { IntrusivePtr().swap(*this); }
  void swap(IntrusivePtr& other) noexcept { std::swap(target_, other.target_); }
  friend void swap(IntrusivePtr& a, IntrusivePtr& b) noexcept { a.swap(b); }

  T* get() const noexcept { return target_; }
  T& operator*() const noexcept { return *target_; }
  T* operator->() const noexcept { return target_; }
  explicit operator bool() const noexcept { return target_ != NullType::singleton(); }

  uint32_t use_count() const noexcept { return *this ? detail::RefCount::strong_of(word()) : 0; }
  // Returns the weak references; the strong references' common share counts as one.
  uint32_t weak_use_count() const noexcept { return *this ? detail::RefCount::weak_of(word()) : 0; }
  // Returns true if nobody else holds a strong reference; what former holders wrote is then visible here.
  bool unique() const noexcept { return *this && detail::RefAccess::count(target_).is_unique(); }

 private:
  template <class U, class N>
  static T* from(const IntrusivePtr<U, N>& other, U* target) noexcept {
    return other ? static_cast<T*>(target) : NullType::singleton();
  }
  int64_t word() const noexcept { return detail::RefAccess::count(target_).load(); }
  void retain() noexcept {
    if (target_ != NullType::singleton()) detail::RefAccess::count(target_).add_strong();
  }

  T* target_;
};

// Keeps the object's memory, not the object. The target may be looked at through lock() only.
template <class T, class NullType>
class WeakIntrusivePtr {
 public:
  using element_type = T;

  WeakIntrusivePtr() noexcept : target_(NullType::singleton()) {}
  explicit WeakIntrusivePtr(const IntrusivePtr<T, NullType>& strong) noexcept : target_(strong.get()) {
    retain();
  }

  WeakIntrusivePtr(const WeakIntrusivePtr& other) noexcept : target_(other.target_) { retain(); }
  WeakIntrusivePtr(WeakIntrusivePtr&& other) noexcept : target_(other.release()) {}
  template <class U, class N>
  requires std::is_convertible_v<U*, T*> WeakIntrusivePtr(const WeakIntrusivePtr<U, N>& other)
  noexcept : target_(from(other)) { retain(); }
  template <class U, class N>
  requires std::is_convertible_v<U*, T*> WeakIntrusivePtr(WeakIntrusivePtr<U, N>&& other)
  noexcept : target_(from(other)) { (void)other.release(); }
  ~WeakIntrusivePtr() {
    if (*this) detail::RefAccess::drop_weak(target_);
  }
  WeakIntrusivePtr& operator=(WeakIntrusivePtr other) noexcept {
    swap(other);
    return *this;
  }
  WeakIntrusivePtr& operator=(const IntrusivePtr<T, NullType>& strong) noexcept {
    return *this = WeakIntrusivePtr(strong);
  }

  // Returns a strong pointer, or an empty one when the last strong reference has gone.
  IntrusivePtr<T, NullType> lock() const noexcept {
    if (!*this || !detail::RefAccess::count(target_).try_add_strong()) return {};
    return IntrusivePtr<T, NullType>(target_, kAdoptRef);
  }
  bool expired() const noexcept { return use_count() == 0; }
  uint32_t use_count() const noexcept { return *this ? detail::RefCount::strong_of(word()) : 0; }
  uint32_t weak_use_count() const noexcept { return *this ? detail::RefCount::weak_of(word()) : 0; }

  static WeakIntrusivePtr reclaim(T* target) noexcept {
    WeakIntrusivePtr weak;
    weak.target_ = target;
    return weak;
  }
  [[nodiscard]] T* release() noexcept { return std::exchange(target_, NullType::singleton()); }
  void reset() noexcept { WeakIntrusivePtr().swap(*this); }
  void swap(WeakIntrusivePtr& other) noexcept { std::swap(target_, other.target_); }
  friend void swap(WeakIntrusivePtr& a, WeakIntrusivePtr& b) noexcept { a.swap(b); }

  // Returns whether it points anywhere, expired or not.
  explicit operator bool() const noexcept { return target_ != NullType::singleton(); }
  // Returns an address to compare and hash by, never to follow.
  const void* identity() const noexcept { return target_; }

 private:
  template <class U, class N>
  friend class WeakIntrusivePtr;
  template <class U, class N>
  static T* from(const WeakIntrusivePtr<U, N>& other) noexcept {
    return other ? static_cast<T*>(other.target_) : NullType::singleton();
  }
  int64_t word() const noexcept { return detail::RefAccess::count(target_).load(); }
  void retain() noexcept {
    static_assert(T::kAllowsWeakReferences, "objects of this class may not be referenced weakly");
    if (*this) detail::RefAccess::count(target_).add_weak();
  }

  T* target_;
};

template <class T>
using RCReference = IntrusivePtr<T>;

template <class T, class... Args>
IntrusivePtr<T> make_intrusive(Args&&... args) {
  using Self = typename T::RefCountedSelf;
  static_assert(std::is_same_v<T, Self> || std::has_virtual_destructor_v<Self>,
                "without a virtual destructor, only RefCountedBase<T>'s own T can be destroyed");
  T* target = new T(std::forward<Args>(args)...);
  detail::RefAccess::count(target).start();
  return IntrusivePtr<T>(target, kAdoptRef);
}

// Makes one more pointer to an object that already has an owner; null gives an empty one.
template <class T, class NullType = DefaultNullType<T>>
[[nodiscard]] IntrusivePtr<T, NullType> share(T* target) noexcept {
  if (target != NullType::singleton()) detail::RefAccess::count(target).add_strong();
  return IntrusivePtr<T, NullType>(target, kAdoptRef);
}

// This is for objects that no heap owns: those of an arena, static ones, members. It makes the first
// pointer to a new one, beside a reference that is the owner's: no pointer destroys the object, however
// many come and go. Before the owner destroys it, or uses its memory again, it calls reclaim_unowned(),
// once for each adopt_unowned().
template <class T>
[[nodiscard]] IntrusivePtr<T> adopt_unowned(T& object) noexcept {
  auto& count = detail::RefAccess::count(&object);
  COPPICE_CHECK(count.load() == detail::RefCount::kNone,
                "adopt_unowned() of an object that has owners already");
  count.start(2);
  return IntrusivePtr<T>(&object, kAdoptRef);
}
// This is a failed check while a pointer to it remains, strong or weak. What their holders wrote is
// visible afterwards.
template <class T>
void reclaim_unowned(T& object) noexcept {
  auto& count = detail::RefAccess::count(&object);
  COPPICE_CHECK(count.is_exclusive(), "an object is reclaimed while pointers to it remain");
  count.stop();
}

template <class T, class N, class U, class M>
bool operator==(const IntrusivePtr<T, N>& a, const IntrusivePtr<U, M>& b) noexcept {
  return a.get() == b.get();
}
template <class T, class N, class U, class M>
auto operator<=>(const IntrusivePtr<T, N>& a, const IntrusivePtr<U, M>& b) noexcept {
  return std::compare_three_way()(a.get(), b.get());
}
template <class T, class N>
bool operator==(const IntrusivePtr<T, N>& a, std::nullptr_t) noexcept {
  return !a;
}
template <class T, class N, class U, class M>
bool operator==(const WeakIntrusivePtr<T, N>& a, const WeakIntrusivePtr<U, M>& b) noexcept {
  return a.identity() == b.identity();
}
template <class T, class N, class U, class M>
auto operator<=>(const WeakIntrusivePtr<T, N>& a, const WeakIntrusivePtr<U, M>& b) noexcept {
  return std::compare_three_way()(a.identity(), b.identity());
}

static_assert(sizeof(IntrusivePtr<RefCounted>) == sizeof(void*));
static_assert(sizeof(WeakIntrusivePtr<RefCounted>) == sizeof(void*));

}  // namespace coppice

template <class T, class N>
struct std::hash<coppice::IntrusivePtr<T, N>> {
  size_t operator()(const coppice::IntrusivePtr<T, N>& p) const noexcept { return std::hash<T*>()(p.get()); }
};
template <class T, class N>
struct std::hash<coppice::WeakIntrusivePtr<T, N>> {
  size_t operator()(const coppice::WeakIntrusivePtr<T, N>& p) const noexcept {
    return std::hash<const void*>()(p.identity());
  }
};
