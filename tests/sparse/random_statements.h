// Bodies of random functions: statements over the trees, buffers and slots of random_world.h, with control
// flow.
//
// They are drawn without a device, so that two worlds can do the same. Results do not depend on the order of
// items: numbers are integers, a cell that several items set gets one value, lists are compared without their
// order.
#pragma once
#include <algorithm>
#include <array>
#include <random>
#include <vector>

namespace coppice::random_functions {

// The numbers `n` of a statement mean what random_world.h makes of them.
enum class Deed {
  kAssign,
  kAssignBySlot,
  kAssignBox,
  kCopyScaled,
  kChange,
  kSumNear,
  kDeposit,
  kDepositNear,
  kNoise,
  kGather,
  kLoad,
  kMirror,
  kSpread,
  kShrink,
  kGrowAt,
  kGrowDrawn,
  kActivateAndCount,
  kDeactivateAt,
  kDeactivateAll,
  kAppendAt,
  kAppendCells,
  kClearLists,
  kSumLists,
  kChangeEntries,
  kMixWords,
  kMixCounted,
  kShuffleWords,
  kDrawNumbers,
  kCountWords,
  kMixBehindMembers,
  kFill,
  kCopy,
  kSort32,
  kSort64,
  kScan,
  kHistogram,
  kBinStarts,
  kNumLeaves,
  kRepeat = kNumLeaves,
  kRepeatBySlot,
  kWhile,
  kBranch,
  kCall
};

struct Statement {
  Deed deed = Deed::kAssign;
  std::array<int, 6> n{};
  std::vector<Statement> body, otherwise;
};
using Statements = std::vector<Statement>;

// The sizes that statements are drawn for.
inline constexpr int kFields = 5, kPairs = 4, kBuffers = 4, kSlots = 2, kWords = 256, kMostFlags = 16;

class StatementDraw {
 public:
  explicit StatementDraw(uint64_t seed) : random_(static_cast<unsigned>(seed)) {}

  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  // Draws a body that may run another function, or the one that is run, which has flags of its own.
  Statements draw_body(int most) {
    may_call_ = true, flags_ = 0;
    return draw_statements(most, 0);
  }
  Statements draw_called(int most) {
    may_call_ = false, flags_ = 0, first_flag_ = kMostFlags;
    Statements all = draw_statements(most, 0);
    first_flag_ = 0;
    return all;
  }
  Statement draw_leaf() {
    Statement s;
    s.deed = static_cast<Deed>(pick(static_cast<int>(Deed::kNumLeaves)));
    for (int& n : s.n) n = pick(1 << 16);
    return s;
  }

 private:
  Statements draw_statements(int most, int depth) {
    Statements all;
    for (int left = 1 + pick(most); left > 0; --left)
      all.push_back(pick(6) == 0 && depth < 3 ? draw_control(depth) : draw_leaf());
    return all;
  }
  Statement draw_control(int depth) {
    Statement s;
    s.deed = static_cast<Deed>(static_cast<int>(Deed::kRepeat) + pick(may_call_ ? 5 : 4));
    for (int& n : s.n) n = pick(1 << 16);
    const bool is_loop = s.deed != Deed::kBranch && s.deed != Deed::kCall;
    if (s.deed == Deed::kWhile || s.deed == Deed::kBranch) s.n[0] = first_flag_ + flags_++;
    if (flags_ > kMostFlags || (is_loop && cost_ > 4)) return draw_leaf();
    if (is_loop) cost_ *= 2;
    if (s.deed != Deed::kCall) s.body = draw_statements(4, depth + 1);
    if (s.deed == Deed::kBranch && pick(2) == 0) s.otherwise = draw_statements(3, depth + 1);
    if (is_loop) cost_ /= 2;
    return s;
  }

  std::mt19937 random_;
  bool may_call_ = false;
  int first_flag_ = 0, flags_ = 0, cost_ = 1;
};

}  // namespace coppice::random_functions
