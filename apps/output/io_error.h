// Turns a failed system call on an output into an Error that names the file and the reason.
#pragma once

#include <string>

namespace coppice {

// Throws Error(kIo) "<what>: <reason>" located at `path`; the reason for ENOSPC and EDQUOT says that the disk
// is full.
[[noreturn]] void throw_io_error(const std::string& what, const std::string& path, int error_number);

}  // namespace coppice
