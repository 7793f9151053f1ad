// A whole file as one string.
#pragma once

#include <cstddef>
#include <string>

namespace coppice {

// Reads all bytes of a file, or of a pipe up to its end, into `bytes`. Returns 0, or the number of the
// error that opening or reading met (EISDIR for a folder, EFBIG for more than `most_bytes`: a pipe or a
// device may have no end); `bytes` is empty then. Blocks; at most twice the file's size of memory.
int read_file(const std::string& path, std::string& bytes, size_t most_bytes = size_t{16} << 30);
// Returns the words for such an error: "it has more than 16 MiB", or the system's.
std::string why_unread(int error, size_t most_bytes);

}  // namespace coppice
