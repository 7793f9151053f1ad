// Writes entries over the closing tags (see pvd_log.h).
#include "apps/output/pvd_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include "apps/output/io_error.h"
#include "apps/output/same_file.h"
#include "apps/output/vtk_xml.h"
#include "core/error.h"

namespace coppice {
namespace {

constexpr std::string_view kBegin =
    "<?xml version=\"1.0\"?>\n<!-- written by coppice -->\n"
    "<VTKFile type=\"Collection\" version=\"1.0\" byte_order=\"LittleEndian\" header_type=\"UInt64\">\n"
    "<Collection>\n";
constexpr std::string_view kEnd = "</Collection>\n</VTKFile>\n";

ssize_t write_whole(int descriptor, std::string_view text, int64_t offset) {
  ssize_t written = 0;
  do {
    written = ::pwrite(descriptor, text.data(), text.size(), offset);
  } while (written < 0 && errno == EINTR);
  return written;
}

}  // namespace

PvdLog::PvdLog(std::string path) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw_io_error("cannot create the collection", path_, errno);
  try {
    write_at_end(std::string(kBegin));
  } catch (...) {
    ::close(descriptor_);  // the destructor does not run for a constructor that throws
    throw;
  }
}

PvdLog::~PvdLog() { ::close(descriptor_); }

void PvdLog::add(const std::string& file_name, double time_s) {
  require_in_place();
  write_at_end(fmt::format("<DataSet timestep=\"{}\" group=\"\" part=\"0\" file=\"{}\"/>\n", time_s,
                           escape_xml(file_name)));
}

void PvdLog::require_in_place() const {
  if (is_open_file_at(descriptor_, path_)) return;
  throw Error(ErrorCode::kIo, "the collection is gone: it was removed or replaced while the run wrote it",
              {path_});
}

void PvdLog::write_at_end(const std::string& text) {
  const std::string all = text + std::string(kEnd);
  const ssize_t written = write_whole(descriptor_, all, size_bytes_);
  if (written != static_cast<ssize_t>(all.size())) {
    // A short count without an error is what a disk gives that fills up in the middle of the entry.
    const int reason = written < 0 ? errno : ENOSPC;
    const bool had_end = size_bytes_ > 0;  // its bytes are there: to write them again needs no room
    const int64_t before = size_bytes_ + (had_end ? static_cast<int64_t>(kEnd.size()) : 0);
    if (written > 0 && ((had_end && write_whole(descriptor_, kEnd, size_bytes_) < 0) ||
                        ::ftruncate(descriptor_, before) != 0)) {
      throw_io_error("cannot take back half an entry of the collection", path_, errno);
    }
    throw_io_error("cannot write the collection", path_, reason);
  }
  // EINVAL: not a file that can be synchronised, a pipe for one.
  if (::fdatasync(descriptor_) != 0 && errno != EINVAL)
    throw_io_error("cannot write the collection", path_, errno);
  size_bytes_ += static_cast<int64_t>(text.size());
}

}  // namespace coppice
