// The one exception type: what is the user's or the world's fault, with a code and the place in the user's
// input.
//
// Messages are one line: what, where, what was expected. Copies share one immutable representation, so that
// an Error is one pointer wide beside its vtable, copies without throwing, and passes through async values
// without cost.
#pragma once

#include <exception>
#include <string>
#include <vector>

#include "core/intrusive_ptr.h"

namespace coppice {

enum class ErrorCode {
  kInvalidArgument,
  kNotFound,
  kIo,
  kOutOfMemory,
  kOutOfRange,
  kUnavailable,
  kCancelled,
  kDataLoss,
  kNumeric,
  kCompile,
  kInternal,
  kUsage,
};

// Returns "invalid argument", "not found", ... for logs.
const char* name_of(ErrorCode code);

// Names a place in what the user wrote. Line and column count from 1; 0 is "none", and an empty file "no
// place at all".
struct InputLocation {
  std::string file;
  int line = 0;
  int column = 0;
};

class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string message);
  Error(ErrorCode code, std::string message, InputLocation location);

  ErrorCode code() const noexcept;
  const std::string& message() const noexcept;
  const InputLocation& location() const noexcept;
  // Returns the operations that an asynchronous error has come through, the one where it arose first.
  const std::vector<std::string>& path() const noexcept;
  // Returns "file:line:column: message [step -> step]", without the parts that are not known.
  const char* what() const noexcept override;

  // Returns the same error, one step further. A long path keeps its beginning and its last step.
  Error with_step(std::string step) const;
  // Returns the same error with a place, unless it has one.
  Error with_location(InputLocation location) const;

 private:
  friend class AsyncValue;
  struct Rep;
  explicit Error(IntrusivePtr<const Rep> rep) noexcept;

  IntrusivePtr<const Rep> rep_;

 public:
  Error(const Error&) noexcept;
  Error& operator=(const Error&) noexcept;
  ~Error() override;
};
static_assert(sizeof(Error) == 16);

}  // namespace coppice
