// libFuzzer target of the text form: any bytes are a module that both forms give
// back, or are refused in order.
#include <cstdio>
#include <cstdlib>

#include "tests/executor/forms_properties.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace coppice::executor;
  const Outcome outcome = try_text({reinterpret_cast<const char*>(data), size});
  if (outcome.broken.empty()) return 0;
  std::fprintf(stderr, "%s\n", outcome.broken.c_str());
  std::abort();
}
