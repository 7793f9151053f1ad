// A program that is run twice: the second time it finds its kernels in the cache on disk (see
// kept_kernels.h).
#include "core/error.h"
#include "tests/sparse/kept_kernels.h"
#include "tests/sparse/test_devices.h"

int main(int count, char** words) try {
  std::string reason;
  const auto device = coppice::test_device(count == 2 ? words[1] : "", reason);
  if (!device) throw coppice::Error(coppice::ErrorCode::kUnavailable, reason);
  fmt::print("{}\n", coppice::report_of_kept_kernels(device));
  return 0;
} catch (const coppice::Error& error) {
  fmt::print(stderr, "kept_kernels_program: error: {}\n", error.what());
  return 1;
}
