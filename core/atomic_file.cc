// AtomicFile by POSIX calls: O_EXCL temporary, fsync, rename, fsync of the folder.
#include "core/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/output_target.h"

namespace coppice {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;  // small writes of headers and rows are gathered up to this

std::string temporary_for(const std::string& path) {
  // The number keeps two writers of one process apart, the process id those of several.
  static constinit std::atomic<uint32_t> next{0};
  return fmt::format("{}.tmp.{}.{}", path, getpid(), next.fetch_add(1, std::memory_order_relaxed));
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Retries calls that a signal interrupted.
template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

// Returns 0 or the error number. It is for files that others wrote by name, and for folders.
int sync_by_name(const std::string& path, int flags) {
  const int descriptor = uninterrupted([&] { return open(path.c_str(), flags | O_RDONLY | O_CLOEXEC); });
  if (descriptor < 0) return errno;
  const int error = fsync(descriptor) < 0 ? errno : 0;
  close(descriptor);
  return error;
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  OutputTarget target = open_output(path_);
  if (target.descriptor >= 0) {
    descriptor_ = target.descriptor;
    is_stream_ = true;
    return;
  }
  target_path_ = std::move(target.path);
  std::string temporary = temporary_for(target_path_);
  unfinished_ = UnfinishedFile(temporary);
  descriptor_ =
      uninterrupted([&] { return open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); });
  if (descriptor_ < 0) fail("cannot be created", errno);
  unfinished_.note_made();
  temporary_path_ = std::move(temporary);
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      target_path_(std::move(other.target_path_)),
      temporary_path_(std::exchange(other.temporary_path_, {})),
      unfinished_(std::move(other.unfinished_)),
      buffer_(std::exchange(other.buffer_, {})),
      descriptor_(std::exchange(other.descriptor_, -1)),
      has_written_(other.has_written_),
      is_stream_(other.is_stream_) {}

AtomicFile::~AtomicFile() { discard(); }

const std::string& AtomicFile::temporary_path() const {
  if (is_stream_)
    throw Error(ErrorCode::kIo,
                fmt::format("{} is no regular file, and what is written there must be one", path_));
  return temporary_path_;
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  COPPICE_CHECK(descriptor_ >= 0, "{} is written after commit() or a failure", path_);
  has_written_ = true;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (buffer_.size() + text.size() <= kBufferBytes) {
    buffer_.append(text);
    return;
  }
  flush();
  write_through(text);
}

void AtomicFile::flush() {
  write_through(buffer_);
  buffer_.clear();
}

void AtomicFile::write_through(std::string_view bytes) {
  if (const int error = write_all(descriptor_, bytes); error != 0) fail("cannot be written", error);
}

void AtomicFile::set_size(uint64_t size_bytes) {
  temporary_path();
  COPPICE_CHECK(descriptor_ >= 0 && !has_written_, "{} has no size to be set any more", path_);
  if (const int error = coppice::set_size(descriptor_, size_bytes); error != 0)
    fail("cannot be written", error);
}

void AtomicFile::commit() {
  COPPICE_CHECK(descriptor_ >= 0, "{} is committed twice or after a failure", path_);
  flush();
  // A library that wrote by name may have replaced our file by another, so that one is synced by name.
  const int sync_error =
      has_written_ || is_stream_ ? (fsync(descriptor_) < 0 ? errno : 0) : sync_by_name(temporary_path_, 0);
  // Pipes and many devices have no such operation: they answer EINVAL or EROFS.
  const bool cannot_sync = is_stream_ && (sync_error == EINVAL || sync_error == EROFS);
  if (sync_error != 0 && !cannot_sync) fail("cannot be flushed to disk", sync_error);
  if (close(std::exchange(descriptor_, -1)) < 0) fail("cannot be closed", errno);
  if (is_stream_) return;
  if (std::rename(temporary_path_.c_str(), target_path_.c_str()) < 0) fail("cannot be put in place", errno);
  temporary_path_.clear();
  unfinished_.forget();
  const int folder_error = sync_by_name(folder_of(target_path_), O_DIRECTORY);
  // A file system that has no such operation for folders answers EINVAL.
  if (folder_error != 0 && folder_error != EINVAL)
    fail("is in place, but its folder cannot be flushed", folder_error);
}

void AtomicFile::fail(const char* what, int error_number) {
  UnfinishedFile::stop_at_end();
  discard();
  throw Error(ErrorCode::kIo,
              fmt::format("{} {}: {}", path_, what, std::generic_category().message(error_number)));
}

void AtomicFile::discard() noexcept {
  if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
  if (!temporary_path_.empty()) unlink(temporary_path_.c_str());
  temporary_path_.clear();
  unfinished_.forget();
}

}  // namespace coppice
