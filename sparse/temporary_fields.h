// Knows which temporary fields (Node::temporary) have values, of those that share bytes, and what device work
// needs and leaves of that, so that a use outside of a field's life is an Error of the host.
//
// A temporary has values from the first launch that stores any (Write, Grow::set) up to the first one that
// stores to a field which shares bytes with it. What reads, changes in place or adds needs values. Of a
// function all of that follows from its operations, in their order:
//   - a loop's body comes behind itself, too, so that a value must outlast the round in which it is read;
//   - of a branch both sides count: what one of them takes away is lost, what both of them write is there;
//   - a loop whose rounds only the device counts may have none, and is such a branch.
// After Stream::clear_error() no temporary has values, unless the tree has marks: what should have written
// them may have been skipped.
// Nobody looks at what a kernel does in which cells but the checks (sparse/device/marks.h).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/launch_uses.h"

namespace coppice {

class TreeStorage;

// Says what device work does to one temporary field.
struct TemporaryFieldUse {
  enum class After : uint8_t { kAsBefore, kWritten, kLost };  // whether it has values when the work is done

  // Says what is known of a field's values.
  struct State {
    After after = After::kAsBefore;
    bool perhaps_written =
        false;            // but kWritten: since then a loop or branch may have written it, and may not
    std::string lost_to;  // kLost: the operation that stored to another field,
    uint32_t other = 0;   // this one
  };

  TreeStorage* tree = nullptr;
  uint32_t field = 0;
  std::string needed_by;  // the first operation that needs values from before the work; empty: none does
  bool needed_behind_perhaps = false;  // the work may have written the field before that
  State state = {};                    // when the work is done
};
// Each field is there once. They keep no trees: the work does.
using TemporaryFieldUses = std::vector<TemporaryFieldUse>;

// Returns what a launch does, by the name that errors have for it. Cost: nothing where no field is a
// temporary.
TemporaryFieldUses temporary_fields_of(const LaunchUses& uses, std::string_view operation);

// Return what two works do one after the other, one of the two, and one so often that it follows itself.
// Errors: kInvalidArgument where one needs what the other has taken away.
TemporaryFieldUses one_then_other(const TemporaryFieldUses& one, const TemporaryFieldUses& other);
TemporaryFieldUses one_or_other(const TemporaryFieldUses& one, const TemporaryFieldUses& other);
TemporaryFieldUses one_repeated(const TemporaryFieldUses& one);

// Notes that work is given to the stream now. Errors: kInvalidArgument where it needs values that are not
// there; then nothing is noted. Thread-safe.
void note_temporary_fields(const TemporaryFieldUses& uses);
void note_temporary_fields(const LaunchUses& uses, std::string_view operation);

// Throws an Error kInvalidArgument where a field is a temporary that has no values now; `what` begins it,
// "a value to read".
void check_has_values(TreeStorage& tree, uint32_t field, std::string_view what);

// Holds, for a tree, which of its temporaries have values behind all that was given so far.
class TemporaryFieldStates {
 public:
  using State = TemporaryFieldUse::State;  // kAsBefore: nothing was ever written
  explicit TemporaryFieldStates(size_t fields) : states_(fields) {}
  State& of(uint32_t field) { return states_[field]; }
  // Forgets all values when errors of the stream have been cleared since the last call.
  void follow(uint64_t errors_cleared);

 private:
  uint64_t errors_cleared_ = 0;
  std::vector<State> states_;
};

}  // namespace coppice
