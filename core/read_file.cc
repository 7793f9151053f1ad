// Reads in pieces that grow, since the size of a pipe or of a file in /proc is not known (see read_file.h).
#include "core/read_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace coppice {
namespace {

constexpr size_t kFirstPiece = size_t{64} << 10;

int read_all(int descriptor, std::string& bytes, size_t most_bytes) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0) return errno;
  // It wants one byte more than a file has, so that its end is seen without another piece.
  size_t wanted =
      std::max(kFirstPiece, S_ISREG(status.st_mode) ? static_cast<size_t>(status.st_size) + 1 : 0);
  for (size_t size = 0;;) {
    bytes.resize(wanted);
    const ssize_t n = read(descriptor, bytes.data() + size, bytes.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    size += static_cast<size_t>(n);
    if (size > most_bytes) return EFBIG;
    if (n == 0) {
      bytes.resize(size);
      return 0;
    }
    if (size == wanted) wanted *= 2;
  }
}

}  // namespace

int read_file(const std::string& path, std::string& bytes, size_t most_bytes) {
  bytes.clear();
  int descriptor = 0;
  do {
    descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  } while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0) return errno;
  int error = 0;
  try {
    error = read_all(descriptor, bytes, most_bytes);
  } catch (...) {
    close(descriptor);
    throw;
  }
  close(descriptor);
  if (error != 0) bytes = {};
  return error;
}

std::string why_unread(int error, size_t most_bytes) {
  if (error != EFBIG) return std::strerror(error);
  const bool is_gib = most_bytes % (size_t{1} << 30) == 0;
  return fmt::format("it has more than {} {}", most_bytes >> (is_gib ? 30 : 20), is_gib ? "GiB" : "MiB");
}

}  // namespace coppice
