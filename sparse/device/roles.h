// A handle's role says what a kernel may do with a field (handles.h). Compilers say here which role would do,
// where a handle is used against its own.
//
// Device-clean. Members of the handles themselves hide those of OtherUses, which have no bodies.
#pragma once
#include <cstdint>
#include <type_traits>

namespace coppice {

enum class Role : uint32_t { kRead, kWrite, kUpdate, kAccumulate, kAtomic, kGrow, kAppend };

namespace device {

// The second form is for coordinates in braces, whose type no parameter pack has.
#define COPPICE_OTHER_USE(result, name, why)                      \
  template <class... Args>                                        \
  __attribute__((unavailable(why))) result name(Args&&...) const; \
  template <class From, int D, class... More>                     \
  __attribute__((unavailable(why))) result name(const From&, const int32_t(&)[D], More&&...) const;
#define COPPICE_OTHER_INDEX(why) \
  template <class From>          \
  __attribute__((unavailable(why))) T& operator[](const From&) const;

#define COPPICE_IS_NO_ACCUMULATE(who) \
  COPPICE_OTHER_USE(void, add, who "; add() is of an Accumulate<T>, an Atomic<T> or a Grow<T>")
#define COPPICE_IS_NO_APPEND(who) \
  COPPICE_OTHER_USE(uint32_t, append, who "; append() is of an Append<T>, on a dynamic node")
#define COPPICE_IS_NO_GROW(who)                                                                         \
  COPPICE_OTHER_USE(void, set, who "; set() at any cell is of a Grow<T>, or of an Append<T> for lists") \
  COPPICE_OTHER_USE(void, activate, who "; activate() is of a Topology or a Grow<T>")                   \
  COPPICE_OTHER_USE(void, deactivate, who "; deactivate() is of a Topology or a Grow<T>")               \
  COPPICE_OTHER_USE(bool, is_active, who "; is_active() is of a Read<T>, a Topology or a Grow<T>")
#define COPPICE_IS_NO_REACH(who) \
  COPPICE_OTHER_USE(T&, operator(), who "; cells around are read by a Read<T, Star<1>> or Read<T, Box<1>>")
#define COPPICE_IS_NO_READ(who)                                                         \
  COPPICE_IS_NO_REACH(who)                                                              \
  COPPICE_OTHER_USE(T&, at, who "; at() is of a Read<T>")                               \
  COPPICE_OTHER_USE(uint32_t, length, who "; length() is of a Read<T> or an Append<T>") \
  COPPICE_OTHER_USE(T*, neighbour_data, who "; neighbour_data() is of a Read<T>")
#define COPPICE_IS_NO_OWN_CELL(who)                                                                       \
  COPPICE_OTHER_INDEX(who                                                                                 \
                      "; u[cell] is of a Read<T> to read, a Write<T> to store and an Update<T> for both") \
  COPPICE_OTHER_USE(T*, data,                                                                             \
                    who "; data() is of a Read<T> to read, a Write<T> to store and an Update<T> for both")

template <class T, Role R>
struct OtherUses;

template <class T>
struct OtherUses<T, Role::kRead> {
  COPPICE_IS_NO_ACCUMULATE("a Read only reads")
  COPPICE_IS_NO_APPEND("a Read only reads")
  COPPICE_IS_NO_GROW("a Read only reads")
};
template <class T>
struct OtherUses<T, Role::kWrite> {
  COPPICE_IS_NO_ACCUMULATE("a Write only stores to its own cell")
  COPPICE_IS_NO_APPEND("a Write only stores to its own cell")
  COPPICE_IS_NO_GROW("a Write only stores to its own cell")
  COPPICE_IS_NO_READ("a Write only stores to its own cell")
};
template <class T>
struct OtherUses<T, Role::kUpdate> {
  COPPICE_IS_NO_ACCUMULATE("an Update changes its own cell only")
  COPPICE_IS_NO_APPEND("an Update changes its own cell only")
  COPPICE_IS_NO_GROW("an Update changes its own cell only")
  COPPICE_IS_NO_READ("an Update changes its own cell only")
};
template <class T>
struct OtherUses<T, Role::kAccumulate> {
  COPPICE_IS_NO_APPEND("an Accumulate only adds")
  COPPICE_IS_NO_GROW("an Accumulate only adds")
  COPPICE_IS_NO_READ("an Accumulate only adds")
  COPPICE_IS_NO_OWN_CELL("an Accumulate only adds")
};
template <class T>
struct OtherUses<T, Role::kAtomic> {
  COPPICE_IS_NO_APPEND("an Atomic changes cells by its own operations")
  COPPICE_IS_NO_GROW("an Atomic changes cells by its own operations")
  COPPICE_IS_NO_REACH("an Atomic changes cells by its own operations")
  COPPICE_IS_NO_OWN_CELL("an Atomic changes cells by its own operations")
};
template <class T>
struct OtherUses<T, Role::kGrow> {
  COPPICE_IS_NO_APPEND("a Grow stores by set(), adds by add() and activates")
  COPPICE_IS_NO_READ("a Grow stores by set(), adds by add() and activates")
  COPPICE_IS_NO_OWN_CELL("a Grow stores by set(), adds by add() and activates")
};
template <class T>
struct OtherUses<T, Role::kAppend> {
  COPPICE_IS_NO_ACCUMULATE("an Append changes lists")
  COPPICE_OTHER_USE(void, activate, "an Append changes lists; append() and set() activate")
  COPPICE_OTHER_USE(bool, is_active,
                    "an Append changes lists; is_active() is of a Read<T>, a Topology or a Grow<T>")
  COPPICE_IS_NO_REACH("an Append changes lists")
  COPPICE_OTHER_USE(T*, neighbour_data, "an Append changes lists; neighbour_data() is of a Read<T>")
  COPPICE_IS_NO_OWN_CELL("an Append changes lists")
};

#undef COPPICE_OTHER_USE
#undef COPPICE_OTHER_INDEX
#undef COPPICE_IS_NO_ACCUMULATE
#undef COPPICE_IS_NO_APPEND
#undef COPPICE_IS_NO_GROW
#undef COPPICE_IS_NO_REACH
#undef COPPICE_IS_NO_READ
#undef COPPICE_IS_NO_OWN_CELL

// A Write's `w[cell]` derives from this: it takes a value, and is none.
#define COPPICE_WRITE_ONLY \
  __attribute__((unavailable("a Write only stores; to read the cell, too, declare the field Update<T>")))
template <class T>
class StoreOnly {
 public:
  COPPICE_WRITE_ONLY operator T() const;
  template <class V>
  COPPICE_WRITE_ONLY void operator+=(const V&) const;
  template <class V>
  COPPICE_WRITE_ONLY void operator-=(const V&) const;
  template <class V>
  COPPICE_WRITE_ONLY void operator*=(const V&) const;
  template <class V>
  COPPICE_WRITE_ONLY void operator/=(const V&) const;
  // This would be an assignment of one place to another: nothing would be stored.
  COPPICE_WRITE_ONLY StoreOnly& operator=(const StoreOnly&);
  constexpr StoreOnly(const StoreOnly&) = default;

 protected:
  constexpr StoreOnly() = default;
};
#undef COPPICE_WRITE_ONLY

// A Read's `u[cell]` is a copy of this type: nothing is assigned to a const struct by mistake, and compilers
// let nobody assign to a number that a function returns.
template <class T>
using ReadValue = std::conditional_t<std::is_class_v<T>, const T, T>;

}  // namespace device

}  // namespace coppice
