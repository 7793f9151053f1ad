// The table of roles (see role_table.h).
#include "sparse/role_table.h"

#include <algorithm>
#include <utility>

namespace coppice {
namespace {

// Groups roles by what they do to the field's values: the table's rows and columns.
enum Use { kOwnRead, kReach, kOwnChange, kSum, kAtomic, kSet, kAppend };

Use use_of(const RoleUse& u) {
  switch (u.role) {
    case Role::kRead:
      return u.radius > 0 ? kReach : kOwnRead;
    case Role::kWrite:
    case Role::kUpdate:
      return kOwnChange;
    case Role::kAccumulate:
      return kSum;
    case Role::kAtomic:
      return kAtomic;
    case Role::kGrow:
      return kSet;
    case Role::kAppend:
      return kAppend;
  }
  return kAppend;
}

constexpr std::string_view kOk = "";
constexpr std::string_view kReachesChanged = "is both written and read with a reach; use two fields";
constexpr std::string_view kReadsSums =
    "is both read and added to, by other items at that moment; use two fields or two launches";
constexpr std::string_view kReadsAtomics =
    "is both read and changed by atomic operations, by other items at that moment; read it by the Atomic, "
    "at()";
constexpr std::string_view kChangesAtomics =
    "is both written and changed by atomic operations, by other items at that moment; use two launches";
constexpr std::string_view kSumsAtomics =
    "is both added to and changed by atomic operations; add to it by the Atomic";
constexpr std::string_view kSetsAtomics = "is both set and changed by atomic operations; use two launches";
constexpr std::string_view kReachesSet = "is both set anywhere and read with a reach; use two fields";
constexpr std::string_view kChangesSums =
    "is both written and added to, by other items at that moment; use two launches";
constexpr std::string_view kChangesSet =
    "is written at its own cell and set anywhere; use one of the two, or two launches";
constexpr std::string_view kSumsSet = "is both set and added to; use two launches";

// The row's use is not after the column's in the order of the enumeration.
constexpr std::string_view kTable[7][7] = {
    //           own read  reach  own change       sum         atomic           set            append
    /* own read  */ {kOk, kOk, kOk, kReadsSums, kReadsAtomics, kOk, kOk},
    /* reach     */ {kOk, kOk, kReachesChanged, kReadsSums, kReadsAtomics, kReachesSet, kOk},
    /* own change*/ {kOk, kOk, kOk, kChangesSums, kChangesAtomics, kChangesSet, kOk},
    /* sum       */ {kOk, kOk, kOk, kOk, kSumsAtomics, kSumsSet, kSumsSet},
    /* atomic    */ {kOk, kOk, kOk, kOk, kOk, kSetsAtomics, kSetsAtomics},
    /* set       */ {kOk, kOk, kOk, kOk, kOk, kOk, kOk},
    /* append    */ {kOk, kOk, kOk, kOk, kOk, kOk, kOk},
};

}  // namespace

std::string_view why_not_together(const RoleUse& a, const RoleUse& b) {
  const auto [first, second] = std::minmax({use_of(a), use_of(b)});
  return kTable[first][second];
}

}  // namespace coppice
