// Error's shared representation and its texts.
#include "core/error.h"

#include <fmt/ranges.h>

#include "core/error_rep.h"

namespace coppice {

const char* name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid argument";
    case ErrorCode::kNotFound:
      return "not found";
    case ErrorCode::kIo:
      return "input/output";
    case ErrorCode::kOutOfMemory:
      return "out of memory";
    case ErrorCode::kOutOfRange:
      return "out of range";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kCancelled:
      return "cancelled";
    case ErrorCode::kDataLoss:
      return "data loss";
    case ErrorCode::kNumeric:
      return "numeric";
    case ErrorCode::kCompile:
      return "compile";
    case ErrorCode::kInternal:
      return "internal";
    case ErrorCode::kUsage:
      return "usage";
  }
  return "unknown";
}

namespace {

constexpr size_t kMaxPath = 16;  // steps that are kept

std::string full_text(const std::string& message, const InputLocation& location,
                      const std::vector<std::string>& path) {
  std::string text;
  if (!location.file.empty()) {
    text = location.file;
    if (location.line > 0) text += fmt::format(":{}", location.line);
    if (location.line > 0 && location.column > 0) text += fmt::format(":{}", location.column);
    text += ": ";
  }
  text += message;
  if (!path.empty()) text += fmt::format(" [{}]", fmt::join(path, " -> "));
  return text;
}

}  // namespace

Error::Rep::Rep(ErrorCode code, std::string message, InputLocation location, std::vector<std::string> path)
    : code(code),
      message(std::move(message)),
      location(std::move(location)),
      path(std::move(path)),
      what(full_text(this->message, this->location, this->path)) {}

Error::Error(ErrorCode code, std::string message) : Error(code, std::move(message), InputLocation{}) {}
Error::Error(ErrorCode code, std::string message, InputLocation location)
    : rep_(make_intrusive<Rep>(code, std::move(message), std::move(location), std::vector<std::string>())) {}
Error::Error(IntrusivePtr<const Rep> rep) noexcept : rep_(std::move(rep)) {}
Error::Error(const Error&) noexcept = default;
Error& Error::operator=(const Error&) noexcept = default;
Error::~Error() = default;

ErrorCode Error::code() const noexcept { return rep_->code; }
const std::string& Error::message() const noexcept { return rep_->message; }
const InputLocation& Error::location() const noexcept { return rep_->location; }
const char* Error::what() const noexcept { return rep_->what.c_str(); }

const std::vector<std::string>& Error::path() const noexcept { return rep_->path; }

Error Error::with_step(std::string step) const {
  std::vector<std::string> path = rep_->path;
  if (path.size() < kMaxPath) {
    path.push_back(std::move(step));
  } else {
    path[kMaxPath - 2] = "...";
    path[kMaxPath - 1] = std::move(step);
  }
  return Error(make_intrusive<Rep>(code(), message(), location(), std::move(path)));
}
Error Error::with_location(InputLocation location) const {
  if (!rep_->location.file.empty()) return *this;
  return Error(make_intrusive<Rep>(code(), message(), std::move(location), path()));
}

}  // namespace coppice
