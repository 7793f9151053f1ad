// Tells how much memory this process may have, and keeps it from having more than it uses.
#pragma once
#include <cstdint>
#include <filesystem>

namespace coppice {

// Returns the machine's physical memory, or less where a control group that the process is in allows less,
// in bytes. It is looked up once. Source: sysconf(3), and cgroups(7), versions 1 and 2.
uint64_t machine_memory_bytes();

// Returns the least limit of a process' control groups; ~0 where there is none. `proc_cgroup` is
// /proc/self/cgroup, `mount` where the groups are mounted, /sys/fs/cgroup.
uint64_t control_group_bytes(const std::filesystem::path& proc_cgroup, const std::filesystem::path& mount);

// Gives memory that was freed, but that malloc() keeps, back to the machine. Takes milliseconds; for after
// work that takes much and leaves nothing.
void give_back_freed_memory();

}  // namespace coppice
