// Buffers that are made one (see fusion.h).
#include "executor/plan/fusion.h"

#include <array>
#include <map>

namespace coppice::plan {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

class Fuser {
 public:
  explicit Fuser(const Problem& problem) : buffers_(problem.buffers), into_(buffers_.size(), kNone) {
    above_.assign(buffers_.size(), 0);
  }

  enum class Alone { kAtItsTime, kOfItsSize };
  // Fuses those that meet another of their size, and none else at that time, or none else of that size.
  // Returns whether there were any.
  bool fuse_in_time(Alone alone) {
    struct Meeting {
      std::vector<uint32_t> end, begin;
    };
    std::map<std::array<int64_t, 3>, Meeting> meetings;  // by time, size and alignment
    for (const uint32_t i : fusable()) {
      const Buffer& b = buffers_[i];
      const int64_t size = alone == Alone::kOfItsSize ? b.bytes : 0;
      const int64_t alignment = alone == Alone::kOfItsSize ? b.alignment : 0;
      meetings[{b.end, size, alignment}].end.push_back(i);
      meetings[{b.begin, size, alignment}].begin.push_back(i);
    }
    bool has_fused = false;
    for (const auto& [when, meeting] : meetings) {
      if (meeting.end.size() != 1 || meeting.begin.size() != 1) continue;
      uint32_t first = meeting.end[0];
      while (into_[first] != kNone) first = into_[first];  // by the meeting at its own beginning
      const uint32_t second = meeting.begin[0];
      const Buffer &a = buffers_[first], &b = buffers_[second];
      if (a.bytes != b.bytes || a.alignment != b.alignment) continue;
      buffers_[first].end = buffers_[second].end;
      into_[second] = first;
      has_fused = true;
    }
    return has_fused;
  }
  bool fuse_in_bytes() {
    std::map<std::array<int64_t, 3>, uint32_t> lowest;  // by time and alignment
    bool has_fused = false;
    for (const uint32_t i : fusable()) {
      const Buffer& b = buffers_[i];
      if (b.bytes % b.alignment != 0) continue;
      const auto [found, is_new] = lowest.try_emplace({b.begin, b.end, b.alignment}, i);
      if (is_new) continue;
      Buffer& low = buffers_[found->second];
      into_[i] = found->second, above_[i] = low.bytes;
      low.bytes += buffers_[i].bytes;
      has_fused = true;
    }
    return has_fused;
  }

  Fusion take() {
    Fusion fusion;
    std::vector<uint32_t> number(buffers_.size(), kNone);
    for (size_t i = 0; i < buffers_.size(); ++i) {
      if (into_[i] != kNone) continue;
      number[i] = static_cast<uint32_t>(fusion.problem.buffers.size());
      fusion.problem.buffers.push_back(buffers_[i]);
    }
    for (uint32_t i = 0; i < buffers_.size(); ++i) {
      int64_t above = 0;
      uint32_t at = i;
      for (; into_[at] != kNone; at = into_[at]) above += above_[at];
      fusion.places.push_back({number[at], above});
    }
    return fusion;
  }

 private:
  std::vector<uint32_t> fusable() const {
    std::vector<uint32_t> all;
    for (uint32_t i = 0; i < buffers_.size(); ++i) {
      const Buffer& b = buffers_[i];
      if (into_[i] == kNone && b.bytes > 0 && !b.offset && b.gaps.empty()) all.push_back(i);
    }
    return all;
  }

  std::vector<Buffer> buffers_;
  std::vector<uint32_t> into_;  // the one that each has become a part of
  std::vector<int64_t> above_;  // bytes above its first one
};

}  // namespace

std::vector<int64_t> Fusion::offsets_of(const std::vector<int64_t>& offsets) const {
  std::vector<int64_t> all;
  for (const Place& place : places) all.push_back(offsets[place.buffer] + place.above);
  return all;
}

Fusion fuse(const Problem& problem, Fuse what) {
  Fuser fuser(problem);
  for (bool has_fused = true; has_fused;) {
    has_fused = fuser.fuse_in_time(Fuser::Alone::kAtItsTime);
    if (what == Fuse::kInTimeAndBytes) has_fused |= fuser.fuse_in_bytes();
    if (!has_fused) has_fused = fuser.fuse_in_time(Fuser::Alone::kOfItsSize);
  }
  return fuser.take();
}

}  // namespace coppice::plan
