// Opens, syncs and closes a file that grows (see growing_file.h).
#include "apps/output/growing_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "apps/output/io_error.h"
#include "apps/output/same_file.h"
#include "core/error.h"

namespace coppice {

GrowingFile::GrowingFile(std::string path, const char* what, int flags)
    : path_(std::move(path)), what_(what) {
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | flags, 0666);
  if (descriptor_ < 0) throw_io_error("cannot create the " + what_, path_, errno);
}

GrowingFile::GrowingFile(std::string path, const char* what, Kept kept, int flags)
    : path_(std::move(path)), what_(what), kept_bytes_(kept.size_bytes) {
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC | flags);
  if (descriptor_ < 0) throw_io_error("cannot open the " + what_, path_, errno);
}

void GrowingFile::cut() {
  if (!kept_bytes_) return;
  if (::ftruncate(descriptor_, *kept_bytes_) != 0)
    throw_io_error("cannot shorten the " + what_, path_, errno);
  kept_bytes_.reset();
}

GrowingFile::~GrowingFile() { ::close(descriptor_); }

void GrowingFile::require_in_place() const {
  if (is_open_file_at(descriptor_, path_)) return;
  throw Error(ErrorCode::kIo, "the " + what_ + " is gone: it was removed or replaced while the run wrote it",
              {path_});
}

void GrowingFile::sync() const {
  // EINVAL: not a file that can be synchronised, a pipe for one.
  if (::fdatasync(descriptor_) != 0 && errno != EINVAL) fail_to_write(errno);
}

void GrowingFile::fail_to_write(int error_number) const {
  throw_io_error("cannot write the " + what_, path_, error_number);
}

void GrowingFile::fail_to_take_back(const char* part, int error_number) const {
  throw_io_error("cannot take back half " + std::string(part) + " of the " + what_, path_, error_number);
}

}  // namespace coppice
