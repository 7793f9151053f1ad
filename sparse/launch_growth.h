// Growth around a launch: the room that is made before it, and what its end says about memory.
//
// A launch that may be repeated runs until it is short of cells; then trees grow and it runs again. One that
// must not happen twice has room made before it: by a run of its kernel that stores nothing
// (device::makes_room()), or, on a CPU, by all the memory that its trees may have.
#pragma once
#include "gpu/device.h"
#include "sparse/prepared_launch.h"

namespace coppice {

// Makes room in the launch's place and with its number, by which it draws the same random numbers, when its
// turn comes.
void make_room_first(Launch& launch, const IntrusivePtr<Prepared>& prepared);
// Gives the trees that the launch grows all memory that they may have, if they have little when its turn
// comes; all trees of the launch, if it was told where their cells will lie (`every_one`).
void take_full_ranges_first(Launch& launch, const IntrusivePtr<Prepared>& prepared, bool every_one);
// Is called behind a launch. Returns whether it is to be repeated. Nothing is collected before that is known:
// it would miss what the first round read. Errors: those of the kernel, kOutOfMemory.
bool finish_growth(InStream& s, const Prepared& prepared, Device& device, const LaunchBlock& block,
                   std::span<const TemporaryArgument> temporaries);
// Has the device say whether finish_growth() has something to do (Launch::tell_changes).
void tell_changes(InStream& s, const Prepared& prepared, uint64_t launch);
// Is called after a run that could not make all the room, or a launch that failed: loops find what it
// activated, and lists keep no chunk that nothing is in, such as those on the way to an element that was
// written by index and found no memory.
void give_up_room(InStream& s, const Prepared& prepared);

}  // namespace coppice
