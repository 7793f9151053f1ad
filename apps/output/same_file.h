// Tells files apart by device and inode, so that links and other spellings of a path make no difference.
#pragma once

#include <string>

namespace coppice {

// Returns whether the file or folder that is open as `descriptor` is what `path` leads to now.
bool is_open_file_at(int descriptor, const std::string& path);

}  // namespace coppice
