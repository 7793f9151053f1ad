// Finds what a launch touches (gpu/launch_uses.h), from its handles, its arguments and its kernel.
#pragma once
#include <string>

#include "core/intrusive_ptr.h"
#include "gpu/launch_uses.h"
#include "sparse/launch_request.h"

namespace coppice {

// Returns the uses of a launch whose trees are frozen.
IntrusivePtr<LaunchUses> uses_of(const detail::LaunchRequest& request);

// Returns "reads, adds to", the words of the effects alone.
std::string words_of_effects(uint32_t effects);

// Adds what a loop over a box does besides its kernel: the cells of the box become active. That may happen
// twice, and nothing in the kernel decides it.
void add_activation_by_loop(const detail::LaunchRequest& request, LaunchUses& uses);

// Returns an empty text when the launch's effects are the same when it has run twice, the first time
// perhaps in part, because nothing that it changes decides what it does. Then it may be repeated when
// memory ran out. Else returns what stands against it, "adds to 'mass' on grid.pointer[64].dense[8]". What is
// told for the kernel and not for each handle names the nodes of all handles that it may be about.
std::string why_not_repeatable(const LaunchUses& uses);

// Returns an empty text when a run of the kernel that stores nothing (device::makes_room()) activates and
// links all that the launch will, so that there is room for it beforehand; else what stands against it.
std::string why_no_room(const detail::LaunchRequest& request, const LaunchUses& uses);

// Returns a line for each thing that a launch touches: what it does there, the handle's role, how far from
// its own cell, and whether the result depends on the order of the items: sums of floats, or which of
// several values stays.
//     "  adds to 'mass' on grid.pointer[64].dense[8] as Accumulate, Box<1>, in the order of the items"
std::string text_of(const LaunchUses& uses);

}  // namespace coppice
