// Writes entries over the closing tags (see pvd_log.h).
#include "apps/output/pvd_log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include "apps/output/vtk_xml.h"
#include "core/error.h"
#include "core/read_file.h"

namespace coppice {
namespace {

constexpr std::string_view kBegin =
    "<?xml version=\"1.0\"?>\n<!-- written by coppice -->\n"
    "<VTKFile type=\"Collection\" version=\"1.0\" byte_order=\"LittleEndian\" header_type=\"UInt64\">\n"
    "<Collection>\n";
constexpr std::string_view kEntry = "<DataSet";
constexpr std::string_view kEnd = "</Collection>\n</VTKFile>\n";

ssize_t write_whole(int descriptor, std::string_view text, int64_t offset) {
  ssize_t written = 0;
  do {
    written = ::pwrite(descriptor, text.data(), text.size(), offset);
  } while (written < 0 && errno == EINTR);
  return written;
}

}  // namespace

PvdLog::PvdLog(std::string path) {
  file_.emplace(std::move(path), "collection");
  write_at_end(std::string(kBegin));
}

PvdLog::PvdLog(std::string path, int64_t entries) {
  std::string text;
  if (const int problem = read_file(path, text, size_t{1} << 32); problem != 0)
    throw Error(ErrorCode::kIo,
                fmt::format("cannot read the collection: {}", why_unread(problem, size_t{1} << 32)), {path});
  size_t end = kBegin.size();
  bool is_whole = text.starts_with(kBegin);
  for (int64_t i = 0; is_whole && i < entries; ++i) {
    is_whole = text.compare(end, kEntry.size(), kEntry) == 0;
    end = text.find('\n', end) + 1;
    is_whole = is_whole && end != 0;
  }
  if (!is_whole)
    throw Error(ErrorCode::kIo, fmt::format("the collection has fewer entries than {}", entries), {path});
  size_bytes_ = static_cast<int64_t>(end);
  file_.emplace(std::move(path), "collection", GrowingFile::Kept{size_bytes_});
}

void PvdLog::add(const std::string& file_name, double time_s) {
  require_in_place();
  file_->cut();
  write_at_end(fmt::format("{} timestep=\"{}\" group=\"\" part=\"0\" file=\"{}\"/>\n", kEntry, time_s,
                           escape_xml(file_name)));
}

void PvdLog::write_at_end(const std::string& text) {
  const std::string all = text + std::string(kEnd);
  const int descriptor = file_->descriptor();
  const ssize_t written = write_whole(descriptor, all, size_bytes_);
  if (written != static_cast<ssize_t>(all.size())) {
    // A short count without an error is what a disk gives that fills up in the middle of the entry.
    const int reason = written < 0 ? errno : ENOSPC;
    const bool had_end = size_bytes_ > 0;  // its bytes are there: to write them again needs no room
    const int64_t before = size_bytes_ + (had_end ? static_cast<int64_t>(kEnd.size()) : 0);
    if (written > 0 &&
        ((had_end && write_whole(descriptor, kEnd, size_bytes_) < 0) || ::ftruncate(descriptor, before) != 0))
      file_->fail_to_take_back("an entry", errno);
    file_->fail_to_write(reason);
  }
  file_->sync();
  size_bytes_ += static_cast<int64_t>(text.size());
}

}  // namespace coppice
