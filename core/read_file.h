// A whole file as one string.
#pragma once

#include <string>

namespace coppice {

// Reads all bytes of a file, or of a pipe up to its end, into `bytes`. Returns 0, or the number of the
// error that opening or reading met (EISDIR for a folder); `bytes` is empty then. Blocks; at most twice
// the file's size of memory.
int read_file(const std::string& path, std::string& bytes);

}  // namespace coppice
