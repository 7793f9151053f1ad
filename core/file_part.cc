// FilePart by POSIX calls.
#include "core/file_part.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/check.h"
#include "core/error.h"
#include "core/output_target.h"
#include "core/unfinished_file.h"

namespace coppice {

FilePart::FilePart(std::string path, const std::string& temporary_path) : path_(std::move(path)) {
  do {
    descriptor_ = open(temporary_path.c_str(), O_WRONLY | O_CLOEXEC);
  } while (descriptor_ < 0 && errno == EINTR);
  if (descriptor_ < 0) fail("cannot be opened to write a part of it", errno);
}

FilePart::~FilePart() {
  if (descriptor_ >= 0) close(descriptor_);
}

void FilePart::write(uint64_t offset_bytes, std::span<const std::byte> bytes) {
  COPPICE_CHECK(descriptor_ >= 0, "{} is written after finish()", path_);
  if (offset_bytes != position_ && lseek(descriptor_, static_cast<off_t>(offset_bytes), SEEK_SET) < 0)
    fail("cannot be written", errno);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (const int error = write_all(descriptor_, text); error != 0) fail("cannot be written", error);
  position_ = offset_bytes + bytes.size();
}

void FilePart::finish() {
  COPPICE_CHECK(descriptor_ >= 0, "{} is finished twice", path_);
  if (fsync(descriptor_) < 0) fail("cannot be flushed to disk", errno);
  if (close(std::exchange(descriptor_, -1)) < 0) fail("cannot be closed", errno);
}

void FilePart::fail(const char* what, int error_number) const {
  UnfinishedFile::stop_at_end();  // a signal's handler may have removed the temporary
  throw Error(ErrorCode::kIo,
              fmt::format("{} {}: {}", path_, what, std::generic_category().message(error_number)));
}

}  // namespace coppice
