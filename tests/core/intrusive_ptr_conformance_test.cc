// Intrusive pointers, every combination: {construct, assign to an empty or a full pointer} x {copy,
// move} x {strong, weak} x {null, valid, weak-only} x {same type, to the base at another address,
// to and from another null type}.
//
// Cases that are no combination of these are in core/intrusive_ptr_test.cc: self-assignment, swap,
// containers, hash and order, release() and reclaim(), conversion to const, weak references to oneself,
// broken ownership.
#include <gtest/gtest.h>

#include <utility>

#include "core/intrusive_ptr.h"

namespace coppice {
namespace {

struct Events {
  int destroyed = 0;
  int released = 0;
};

struct Front {
  virtual ~Front() = default;
  int64_t padding = 0;
};
struct Base : RefCounted {
  explicit Base(Events* events) : events(events) {}
  ~Base() override {
    if (events != nullptr) ++events->destroyed;
  }
  void release_resources() override { ++events->released; }
  Events* events;
};
struct Derived final : Front, Base {
  using Base::Base;
};

struct Undefined {
  static Derived* singleton() {
    static Derived undefined(nullptr);
    return &undefined;
  }
};

template <class Source_, class Dest_, class WeakSource_, class WeakDest_>
struct Conversion {
  using Source = Source_;
  using Dest = Dest_;
  using WeakSource = WeakSource_;
  using WeakDest = WeakDest_;
};
template <class T, class N, class U, class M>
using Converts =
    Conversion<IntrusivePtr<T, N>, IntrusivePtr<U, M>, WeakIntrusivePtr<T, N>, WeakIntrusivePtr<U, M>>;
template <class T>
using Null = DefaultNullType<T>;

template <class T>
class IntrusivePtrConformance : public testing::Test {
 protected:
  using Source = typename T::Source;
  using Dest = typename T::Dest;
  using WeakSource = typename T::WeakSource;
  using WeakDest = typename T::WeakDest;

  void TearDown() override { EXPECT_EQ(live_ref_counted_objects(), live_before) << "objects leaked"; }
  Source make(Events& events) { return Source(new_object(&events), kAdoptRef); }
  Dest make_dest(Events& events) { return Dest(new_object(&events), kAdoptRef); }

  // Every way to get a To from a From; check(from, to, whether it was moved).
  template <class From, class To, class MakeFrom, class MakeTo, class Check>
  static void for_every_operation(MakeFrom make_from, MakeTo make_to, Check check) {
    {
      From from = make_from();
      To to(from);
      check(from, to, false);
    }
    {
      From from = make_from();
      To to(std::move(from));
      check(from, to, true);
    }
    for (const bool is_full : {false, true}) {
      for (const bool is_move : {false, true}) {
        Events old;
        From from = make_from();
        To to;
        if (is_full) to = make_to(old);
        if (is_move) {
          to = std::move(from);
        } else {
          to = from;
        }
        EXPECT_EQ(old.destroyed, is_full ? 1 : 0) << "the old target dies when it is assigned over";
        check(from, to, is_move);
      }
    }
  }

 private:
  static Derived* new_object(Events* events) { return make_intrusive<Derived>(events).release(); }
  // Before that: the object that stands for "undefined" is there all the time.
  const Derived* const undefined = Undefined::singleton();
  const int64_t live_before = live_ref_counted_objects();
};
using Conversions = testing::Types<
    Converts<Derived, Null<Derived>, Derived, Null<Derived>>,
    Converts<Derived, Null<Derived>, Base, Null<Base>>, Converts<Derived, Null<Derived>, Derived, Undefined>,
    Converts<Derived, Undefined, Derived, Null<Derived>>, Converts<Derived, Undefined, Derived, Undefined>,
    Converts<Derived, Undefined, Base, Null<Base>>>;
TYPED_TEST_SUITE(IntrusivePtrConformance, Conversions);

TYPED_TEST(IntrusivePtrConformance, StrongPointersThatAreNullStayNull) {
  using Source = typename TestFixture::Source;
  using Dest = typename TestFixture::Dest;
  this->template for_every_operation<Source, Dest>(
      [] { return Source(); }, [&](Events& events) { return this->make_dest(events); },
      [](Source& from, Dest& to, bool) {
        EXPECT_TRUE(!from && !to);
        EXPECT_EQ(to.get(), Dest().get());
        EXPECT_EQ(to.use_count() + to.weak_use_count() + from.use_count(), 0u);
      });
}

TYPED_TEST(IntrusivePtrConformance, StrongPointersShareOrHandOver) {
  using Source = typename TestFixture::Source;
  using Dest = typename TestFixture::Dest;
  Events events;
  const Derived* target = nullptr;
  int made = 0;
  this->template for_every_operation<Source, Dest>(
      [&] {
        ++made;
        Source source = this->make(events);
        target = source.get();
        return source;
      },
      [&](Events& old) { return this->make_dest(old); },
      [&](Source& from, Dest& to, bool was_moved) {
        EXPECT_EQ(to.get(), target);
        EXPECT_EQ(static_cast<bool>(from), !was_moved);
        EXPECT_EQ(to.use_count(), was_moved ? 1u : 2u);
        EXPECT_EQ(to.unique(), was_moved);
        EXPECT_EQ(to.weak_use_count(), 1u);
        to.reset();
        EXPECT_EQ(events.destroyed, was_moved ? made : made - 1);
        from.reset();
        EXPECT_EQ(events.destroyed, made);
        EXPECT_EQ(events.released, 0);
      });
}

TYPED_TEST(IntrusivePtrConformance, WeakPointersThatAreNullStayNull) {
  using Weak = typename TestFixture::WeakSource;
  using WeakDest = typename TestFixture::WeakDest;
  this->template for_every_operation<Weak, WeakDest>(
      [] { return Weak(); }, [&](Events& old) { return WeakDest(this->make_dest(old)); },
      [](Weak& from, WeakDest& to, bool) {
        EXPECT_TRUE(!from && !to);
        EXPECT_TRUE(from.expired() && to.expired());
        EXPECT_FALSE(to.lock());
        EXPECT_EQ(to.weak_use_count(), 0u);
      });
}

TYPED_TEST(IntrusivePtrConformance, WeakPointersOfAValidTargetLockIt) {
  using Weak = typename TestFixture::WeakSource;
  using WeakDest = typename TestFixture::WeakDest;
  Events events;
  auto strong = this->make(events);
  this->template for_every_operation<Weak, WeakDest>(
      [&] { return Weak(strong); }, [&](Events& old) { return WeakDest(this->make_dest(old)); },
      [&](Weak& from, WeakDest& to, bool was_moved) {
        EXPECT_EQ(static_cast<bool>(from), !was_moved);
        EXPECT_EQ(strong.weak_use_count(), was_moved ? 2u : 3u);
        EXPECT_EQ(to.use_count(), 1u);
        EXPECT_FALSE(to.expired());
        EXPECT_EQ(to.lock(), strong);
        EXPECT_EQ(strong.use_count(), 1u);
      });
  EXPECT_EQ(strong.weak_use_count(), 1u);
  EXPECT_EQ(events.destroyed + events.released, 0);
  strong.reset();
  EXPECT_EQ(events.destroyed, 1);
}

TYPED_TEST(IntrusivePtrConformance, WeakPointersOfAnExpiredTargetKeepItsMemoryOnly) {
  using Weak = typename TestFixture::WeakSource;
  using WeakDest = typename TestFixture::WeakDest;
  Events events;
  int made = 0;
  this->template for_every_operation<Weak, WeakDest>(
      [&] {
        ++made;
        return Weak(this->make(events));
      },
      [&](Events& old) { return WeakDest(this->make_dest(old)); },
      [&](Weak& from, WeakDest& to, bool was_moved) {
        EXPECT_EQ(events.released, made);
        EXPECT_EQ(events.destroyed, made - 1);
        EXPECT_TRUE(to && to.expired());
        EXPECT_FALSE(to.lock());
        EXPECT_EQ(to.use_count(), 0u);
        EXPECT_EQ(to.weak_use_count(), was_moved ? 1u : 2u);
        to.reset();
        EXPECT_EQ(events.destroyed, was_moved ? made : made - 1);
        from.reset();
        EXPECT_EQ(events.destroyed, made);
      });
}

}  // namespace
}  // namespace coppice
