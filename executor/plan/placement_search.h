// The heart of the exact planner: is there a plan within a capacity?
//
// A plan is *settled* when no buffer could be moved down: each lies at 0, or on another, or on one with an
// offset of its own. Where there is a plan, there is a settled one. The search keeps, for each buffer that
// has no place yet, the lowest offset that it may have. It takes one below which
// nothing that is left could come below it, and tries two things: it lies there; or it lies higher, and so
// upon one that is left, which raises its lowest offset. So each settled plan is met once, and the choices
// are few. Which one it takes is the search's order: the next thing in the deepest valley, or one for a time
// at which few could lie lowest; where there is nothing to spare, that is where mistakes show soonest.
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

  // Says which goes first of those below which nothing that is left could come.
  struct Order {
    // One that could lie lowest at a time at which the fewest could; else the lowest.
    bool goes_by_room = false;
    std::vector<uint32_t> ranks;  // [buffers]: of equal ones the one with the lowest
  };
  enum class Result { kFound, kNone, kStopped };
  // Looks for a plan of at most `capacity` bytes. It stops after so many nodes, or when `stop` says so, which
  // is asked now and then.
  Result run(int64_t capacity, const Order& order, uint64_t most_nodes, const std::function<bool()>& stop);
  const std::vector<int64_t>& offsets() const { return low_; }  // when a plan was found
  uint64_t nodes() const { return nodes_; }                     // of the last run

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
  std::optional<uint32_t> choose(const Group& group);
  std::optional<uint32_t> choose_by_room(const Group& group);
  bool goes_before(uint32_t buffer, std::optional<uint32_t> other) const;
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
  struct Room {
    int64_t lowest = 0;  // offset that a buffer without a place may have
    int64_t most = 0;    // that the lowest buffer may have, so that all fit above it
    uint32_t first = 0;  // how many could be that one
  };
  bool goes_before(const Room& room, uint32_t buffer, const Room& other_room, uint32_t other) const;
  std::vector<Room> rooms_;  // [sections], of the group that has_room() looked at last
  const Order* order_ = nullptr;
  const std::function<bool()>* stop_ = nullptr;
  int64_t capacity_ = 0, highest_fixed_ = 0;
  uint64_t nodes_ = 0, most_nodes_ = 0;
  bool is_stopped_ = false;
  Nogoods nogoods_;
  int64_t nogoods_capacity_ = 0;
};

}  // namespace coppice::plan
