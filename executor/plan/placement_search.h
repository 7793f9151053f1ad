// The heart of the exact planner: is there a plan within a capacity?
//
// A plan is *settled* when no buffer could be moved down: each lies at 0, or on another, or on one with an
// offset of its own. Where there is a plan, there is a settled one. The search keeps, for each buffer that
// has no place yet, the lowest offset that it may have. It takes the one that could lie lowest, where
// nothing that is left could come below it, and tries two things: it lies there; or it lies higher, and so
// upon one that is left, which raises its lowest offset. So each settled plan is met once, and the choices
// are few: what is tried is always the next thing in the deepest valley.
//
// It prunes by three things. At each time, what is left needs room above the lowest of its lowest offsets;
// buffers that are in no one's way any more fall apart into problems of their own; and a set of buffers
// with lowest offsets that had no plan once has none elsewhere (nogoods, kept from one run to the next).
//
// The search is complete where no buffer has a window: then "no plan" is a proof. With windows, one buffer
// may lie below another at one time and above it at another time, and such plans are not met.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "executor/plan/nogoods.h"
#include "executor/plan/problem.h"
#include "executor/plan/sections.h"

namespace coppice::plan {

class PlacementSearch {
 public:
  // Both outlive it.
  PlacementSearch(const Problem& problem, const Sections& sections);

  enum class Result { kFound, kNone, kStopped };
  // Looks for a plan of at most `capacity` bytes; of several that could be next, the one with the lowest rank
  // goes first. It stops after so many nodes, or when `stop` says so, which is asked now and then.
  Result run(int64_t capacity, const std::vector<uint32_t>& ranks, uint64_t most_nodes,
             const std::function<bool()>& stop);
  const std::vector<int64_t>& offsets() const { return low_; }  // when a plan was found
  uint64_t nodes() const { return nodes_; }                     // of all runs

  // Makes `buffer` one that is not there, or there again.
  void leave_out(uint32_t buffer, bool is_left_out) { is_left_out_[buffer] = is_left_out; }

 private:
  struct Undo {
    uint32_t buffer;
    int64_t low;
    bool must_rest;
  };
  using Group = std::vector<uint32_t>;  // buffers without a place, by their first sections

  bool begin(int64_t capacity, Group& all);
  bool solve(const Group& group);
  bool solve_parts(const Group& group);
  bool solve_group(const Group& group);
  bool try_place(uint32_t buffer, const Group& group);
  bool is_whole(const Group& group) const;
  std::vector<Group> parts_of(const Group& group) const;
  // Raises what must rest on others; returns false where there can be no plan.
  bool raise(const Group& group);
  bool raise_one(uint32_t buffer, bool& has_changed);
  bool has_room(const Group& group);
  int64_t fixed_above(uint32_t section, int64_t low) const;
  std::optional<uint32_t> choose(const Group& group) const;
  bool is_lowest(uint32_t buffer) const;
  Nogoods::Key key_of(const Group& group) const;
  void place(uint32_t buffer);
  void take_back(uint32_t buffer);
  void set(uint32_t buffer, int64_t low, bool must_rest);
  void undo(size_t mark);
  // Returns the lowest offset from `low` on at which none is in the way that has an offset of its own.
  int64_t free_from(uint32_t buffer, int64_t low) const;

  const Problem& problem_;
  const Sections& sections_;
  struct Span {
    int64_t low, high;
  };
  std::vector<std::vector<Span>> fixed_;         // [sections]: bytes of buffers that have an offset
  std::vector<std::vector<Span>> fixed_beside_;  // [buffers]: offsets strictly between are taken by these
  std::vector<char> is_left_out_;

  // State, by buffer: the lowest offset, whether it must rest on one that is left, and whether it has its
  // place (at its lowest offset).
  std::vector<int64_t> low_;
  std::vector<char> must_rest_, is_placed_;
  std::vector<int64_t> left_;  // [sections]: bytes of those without a place
  std::vector<Undo> trail_;
  const std::vector<uint32_t>* ranks_ = nullptr;
  const std::function<bool()>* stop_ = nullptr;
  int64_t capacity_ = 0, highest_fixed_ = 0;
  uint64_t nodes_ = 0, last_node_ = 0;
  bool is_stopped_ = false;
  Nogoods nogoods_;
  int64_t nogoods_capacity_ = 0;
};

}  // namespace coppice::plan
