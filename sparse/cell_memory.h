// The plan of a node's temporary fields (Node::temporary): where each lies among the bytes that all of them
// share in a cell.
//
//     std::puts(text_of(memory_of(leaf)).c_str());  // 3 temporaries of 24 bytes per cell together in 16; ...
//
// Time is the stages of a step, as the fields' author states them, so that the plan is made when the tree is
// frozen, before anything runs: it depends neither on the topology nor on what is traced.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "executor/plan/problem.h"

namespace coppice {

class Node;
struct FieldDescription;

struct CellMemory {
  // A buffer for each temporary of the node, by its name. Where each field is an array, of the array of a
  // container (of a dynamic node: of a chunk); otherwise, and on a pointer node, of one cell.
  plan::Problem problem;
  plan::Plan plan;                  // where they lie, from the first byte that they have
  int64_t least_bytes = 0;          // that any plan needs
  uint64_t cells = 1;               // that all of these bytes are of
  int64_t alignment = 1;            // of the first byte
  std::vector<std::string> fields;  // their names, in the order in which they were added

  int64_t naive_bytes() const { return plan::naive_bytes(problem); }  // of all of them side by side
  bool is_empty() const { return problem.buffers.empty(); }
};

// Plans fields of which each has an array of so many cells; those of a struct are planned as of one cell.
// The smallest plan is looked for with a fixed number of steps, some tenths of a second at most. Errors:
// kInvalidArgument.
CellMemory plan_cell_memory(const std::vector<const FieldDescription*>& temporaries, uint64_t cells);

// Returns that of a node, whose tree it freezes.
CellMemory memory_of(const Node& node);

// Returns "3 temporaries of 24 bytes per cell together in 16; no plan needs less", or what is at least
// needed; an empty text where there are none.
std::string text_of(const CellMemory& memory);

// Returns a picture (SVG) of them: stages to the right, offsets upwards.
std::string memory_picture(const Node& node);

}  // namespace coppice
