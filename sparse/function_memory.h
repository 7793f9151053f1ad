// The plan of a function's temporaries: when each is needed, and where it lies in the arena that all share.
//
// Time is the function's operations in the order in which they run, those of a loop's body or of a branch's
// sides within the loop or branch: one plan serves all of them. A temporary is needed from the first
// operation that uses it up to the last one, and
//   - all through a loop or branch around some of these, where others are outside of it: its value goes from
//     round to round; one that only a body uses is needed within each round alone;
//   - wherever an operation runs that no event orders with these: what may run side by side stays so.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "executor/plan/problem.h"
#include "sparse/function.h"

namespace coppice {

struct FunctionMemory {
  plan::Problem problem;    // a buffer for each temporary that is used, "temporary.2"
  plan::Plan plan;          // where they lie, and what the arena has
  int64_t least_bytes = 0;  // that any plan needs

  int64_t naive_bytes() const { return plan::naive_bytes(problem); }  // of all of them side by side
};

// Returns what the temporaries of a function need, the first of its module; those of functions that it runs
// are these functions' own.
FunctionMemory memory_of(const executor::LoadedModule& module);

// Returns "3 temporaries of 12288 bytes together in 8192; no plan needs less", or what is at least needed; an
// empty text where there are none.
std::string text_of(const FunctionMemory& memory);

// Returns a picture (SVG) of them: operations to the right, offsets upwards.
std::string memory_picture(const Function& function);
// Returns one picture with a part for each function that has temporaries. A part's title is the function's
// name and text_of().
std::string memory_picture(std::span<const Function> functions);

// Makes room for all temporaries of a module that is loaded, and places them. Errors: kInvalidArgument for
// one that is read before anything was written to it, kOutOfMemory.
void place_temporaries(Device& device, const executor::LoadedModule& module);
// Checks that a module's temporaries have their places, and are not in each other's way. Errors:
// kInvalidArgument for launches and temporaries of functions that were not traced to their end, and where
// what is in one would be lost before its last use, in text that was written otherwise than it was traced.
void check_places(const executor::LoadedModule& module);

}  // namespace coppice
