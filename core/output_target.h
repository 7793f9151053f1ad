// Tells what the name of a file stands for that something is written to: a file to make or to replace, or
// a pipe, a device or a descriptor, which stays what it is and is written to.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace coppice {

struct OutputTarget {
  std::string path;     // of the file to make or to replace, with links followed; empty beside a descriptor
  int descriptor = -1;  // open for writing, for the caller to close; -1 beside a path
};

// "-" is standard output; /dev/fd/N, /dev/stdout and links to them are this process's own
// descriptors, written to from where they stand. Waits for a reader where `name` is a pipe. Errors:
// kIo "<name> cannot be opened: <reason>".
OutputTarget open_output(const std::string& name);

// Writes all of it and returns 0, or the number of the error that the write met: EPIPE for a pipe that nobody
// reads any more, EFBIG for a file above the process's limit, without their signals.
int write_all(int descriptor, std::string_view bytes);
// Makes a file so long, with zeros where nothing was written; returns as write_all() does.
int set_size(int descriptor, uint64_t size_bytes);

}  // namespace coppice
