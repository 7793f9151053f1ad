// Makes code of kernels for one kind of processor: compiles them to an image that the disk cache can keep,
// then loads it. Thread-safe: the kernel store's workers call it at once.
#pragma once
#include <string>

#include "core/intrusive_ptr.h"
#include "gpu/jit/specializer.h"
#include "gpu/loaded_code.h"

namespace coppice::jit {

class CodeBackend {
 public:
  virtual ~CodeBackend() = default;
  // Errors: kCompile.
  virtual std::string compile(const SpecializeRequest& request) = 0;
  // Returns an empty text, or one line that says why load() cannot take an image that somebody stored: the
  // cache's checksum shows that the bytes are whole, not that this program made them.
  virtual std::string why_not_loadable(const std::string& image, const SpecializeRequest& request) = 0;
  // Errors: kCompile; kUnavailable where the device is lost.
  virtual IntrusivePtr<LoadedCode> load(const std::string& image, const SpecializeRequest& request) = 0;
};

}  // namespace coppice::jit
