// LLVM's handlers for fatal errors (see fatal_error.h).
#include "gpu/jit/fatal_error.h"

#include <llvm/Support/ErrorHandling.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace coppice::jit {
namespace {

thread_local const CompilingKernel* t_innermost = nullptr;

// It works without allocating: memory may be what is missing. There is one write, so that lines of other
// threads stay apart.
void on_fatal_error(void*, const char* reason, bool) {
  char line[2048];
  const std::string* id = compiling_kernel();
  int length = std::snprintf(line, sizeof line - 1,
                             "error: kernel %s: LLVM cannot compile it and ends the program: %s",
                             id == nullptr ? "(none)" : id->c_str(), reason == nullptr ? "" : reason);
  if (length < 0) return;
  length = std::min<int>(length, sizeof line - 2);
  while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == ' ')) --length;
  for (int i = 0; i < length; ++i) {
    if (line[i] == '\n' || line[i] == '\r') line[i] = ' ';
  }
  line[length++] = '\n';
  (void)!::write(STDERR_FILENO, line, static_cast<size_t>(length));
}

// LLVM expects of this handler that it does not return.
void on_bad_alloc(void* data, const char* reason, bool is_crash) {
  on_fatal_error(data, reason, is_crash);
  std::abort();
}

}  // namespace

CompilingKernel::CompilingKernel(const std::string& id) : id_(id), outer_(t_innermost) { t_innermost = this; }
CompilingKernel::~CompilingKernel() { t_innermost = outer_; }

const std::string* compiling_kernel() { return t_innermost == nullptr ? nullptr : &t_innermost->id_; }

void install_fatal_error_handlers() {
  llvm::install_fatal_error_handler(on_fatal_error);
  llvm::install_bad_alloc_error_handler(on_bad_alloc);
}

}  // namespace coppice::jit
