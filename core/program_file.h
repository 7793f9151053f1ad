// Tells which file the running program is, and where its siblings are started from.
#pragma once
#include <filesystem>

namespace coppice {

// Returns the path of the running program; an empty one where /proc is not mounted. It is looked up once.
//
// /proc/self/exe does not tell it for a program that was started by naming the loader, as the portable bundle
// does on a system with an older glibc than its own: there it is the loader. Source: proc(5), maps.
const std::filesystem::path& program_file();

// Returns the folder from which other programs of the same build are started: the program's own, but for
// libexec/ of the portable bundle, which has a launcher for each of its programs in bin/.
std::filesystem::path program_folder();

}  // namespace coppice
