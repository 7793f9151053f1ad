// A process that was forked lacks the threads of its parent.
#pragma once

namespace coppice {

// Returns whether this process was forked from one whose threads the library uses: oneTBB takes its workers
// for there, and they are not.
bool is_forked_child();
// Returns whether it was, and has no thread but the
// calling one: what another thread was to do never comes. Cost: in a forked child, that of a look at /proc.
bool is_alone_in_forked_child();

}  // namespace coppice
