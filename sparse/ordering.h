// Finds which device operations of a function must keep their order: those of which one changes what the
// other uses.
//
//   read, then read       no order             add, then add          no order: sums commute
//   write, then read      ordered              activate, deactivate,  ordered with all that uses the tree:
//   read, then write      ordered              append                 cells and their numbers come in an order
//   write, then write     ordered              memory by a pointer    ordered with all that uses that buffer;
//                                                                     of temporaries, those that share bytes
//   fields that share bytes of their cells (Node::temporary) are ordered as one field is
//
// Memory that an operation reaches in ways that nobody can tell (members of structs, addresses that a kernel
// computes, pointers into trees) may be any. A pointer says which buffer it is of by pointing into it. Random
// numbers are no such use: they follow from a launch's number (random.h), which Function::run() keeps to the
// order of the text. Operations that the executor runs get theirs in the order in which they start, and text
// whose lines were moved in that of the lines.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gpu/buffer.h"
#include "gpu/stream.h"

namespace coppice {

// Describes one thing that an operation uses.
struct ResourceUse {
  enum class Kind : uint8_t { kField, kTopology, kMemory, kAnyMemory } kind = Kind::kField;
  bool reads = false, writes = false;
  bool adds = false;             // in a way that commutes with other additions
  const void* object = nullptr;  // the tree, or where the buffer begins
  uint32_t field = 0;
  // These are the bytes of the buffer: of an arena, those of one temporary (sparse/temporary_buffer.h). Of
  // temporary fields, which have the number of their node's first one, they are those among all of these.
  uint64_t begin = 0, end = ~uint64_t{0};
  std::string name;  // "'now' on grid.pointer[64].dense[8]", "a buffer of 4096 bytes"
};
using ResourceUses = std::vector<ResourceUse>;

// Returns what a launch uses. Memory behind its pointers is that of the buffers where they point now.
ResourceUses resources_of(const Launch& launch);
// Returns the use of a buffer's memory.
ResourceUse use_of_buffer(const Buffer& buffer, bool reads, bool writes);

// Adds what an operation uses to what a whole does: there is one use for each thing, however many operations
// are in it.
void add_uses(ResourceUses& whole, const ResourceUses& uses);

// Returns what two operations may not use in any order; null: they may run in any. It is one of `a`'s uses.
const ResourceUse* conflict(const ResourceUses& a, const ResourceUses& b);

// The operations right before each operation: those that must be done when it begins, but for what the order
// of others implies.
using Predecessors = std::vector<std::vector<uint32_t>>;
// Sets of operations that come before one.
class Ancestors {
 public:
  explicit Ancestors(size_t operations)
      : words_((operations + 63) / 64), bits_(operations * words_, uint64_t{0}) {}
  bool has(size_t of, size_t one) const { return (bits_[of * words_ + one / 64] >> one % 64 & 1) != 0; }
  // Adds `one` and all that come before it.
  void add(size_t of, size_t one) {
    for (size_t w = 0; w < words_; ++w) bits_[of * words_ + w] |= bits_[one * words_ + w];
    bits_[of * words_ + one / 64] |= uint64_t{1} << one % 64;
  }

 private:
  size_t words_;
  std::vector<uint64_t> bits_;
};
// Every operation stands behind its predecessors.
Ancestors ancestors_of(const Predecessors& order);

// Orders operations that are given in the order in which they shall seem to run. Cost: quadratic in their
// number.
Predecessors order_by_uses(std::span<const ResourceUses> operations);
// Returns a pair whose order matters and that `order` leaves open, the earlier one first, if there is one.
// Every operation stands behind its predecessors.
std::optional<std::pair<uint32_t, uint32_t>> find_unordered(std::span<const ResourceUses> operations,
                                                            const Predecessors& order);

}  // namespace coppice
