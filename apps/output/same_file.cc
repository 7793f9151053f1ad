// Compares device and inode (see same_file.h).
#include "apps/output/same_file.h"

#include <sys/stat.h>

namespace coppice {

bool is_open_file_at(int descriptor, const std::string& path) {
  struct stat open {
  }, there{};
  return descriptor >= 0 && ::fstat(descriptor, &open) == 0 && ::stat(path.c_str(), &there) == 0 &&
         open.st_dev == there.st_dev && open.st_ino == there.st_ino;
}

}  // namespace coppice
