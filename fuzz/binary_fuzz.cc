// libFuzzer target of the binary form: any bytes, as they are and with the header that their payload demands, are
// the one encoding of a module, or are refused in order.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tests/executor/forms_properties.h"

namespace {

void must_hold(std::span<const std::byte> file) {
  const auto outcome = coppice::executor::try_binary(file);
  if (outcome.broken.empty()) return;
  std::fprintf(stderr, "%s\n", outcome.broken.c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  must_hold(bytes);
  std::vector<std::byte> repaired(bytes.begin(), bytes.end());
  coppice::executor::repair_header(repaired);
  must_hold(repaired);
  return 0;
}
