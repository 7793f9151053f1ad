// libFuzzer target of the binary form: any bytes, as they are and with the header that their
// payload demands, are the one encoding of a module, or are refused in order; and reading them
// takes memory by their number only.
#include <vector>

#include "fuzz/decode_memory.h"
#include "tests/executor/forms_properties.h"

namespace {

using Bytes = std::span<const std::byte>;
using coppice::fuzz::must_hold;

void must_hold(Bytes file) {
  coppice::fuzz::must_decode_within_bounds(file.size(), [&] { coppice::executor::decode(file, ""); });
  must_hold(coppice::executor::try_binary(file).broken);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes bytes = std::as_bytes(std::span(data, size));
  must_hold(bytes);
  std::vector<std::byte> repaired(bytes.begin(), bytes.end());
  coppice::executor::repair_header(repaired);
  must_hold(repaired);
  return 0;
}
