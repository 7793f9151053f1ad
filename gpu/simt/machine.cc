#include "gpu/simt/machine.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "gpu/simt/grid.h"

namespace coppice::simt {
namespace {

void check(const Options& options) {
  const auto fail = [](const char* what, auto value, const char* expected) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("emulated GPU: {} is {}, expected {}", what, value, expected));
  };
  if (options.threads_per_block < 32 || options.threads_per_block > 1024 ||
      options.threads_per_block % 32 != 0) {
    fail("threads_per_block", options.threads_per_block, "a multiple of 32 up to 1024");
  }
  if (options.multiprocessors < 1 || options.multiprocessors > 1024)
    fail("multiprocessors", options.multiprocessors, "1 to 1024");
  if (options.blocks_per_multiprocessor < 1 || options.blocks_per_multiprocessor > 1024)
    fail("blocks_per_multiprocessor", options.blocks_per_multiprocessor, "1 to 1024");
  if (options.max_blocks < 1) fail("max_blocks", options.max_blocks, "at least 1");
}

}  // namespace

struct Machine::State {
  explicit State(const Options& options) : grid(options) {}

  Grid grid;
  uint64_t launches = 0;
};

Machine::Machine(const Options& options) {
  check(options);
  state_ = std::make_unique<State>(options);
}

Machine::~Machine() = default;

void Machine::run(std::string_view kernel, const LaunchBlock& block, KernelEntry entry, uint64_t count,
                  uint32_t shared_bytes) {
  const Options& options = state_->grid.options();
  const bool by_thread = (block.flags & kThreadItems) != 0;
  const uint64_t chunk = by_thread ? static_cast<uint64_t>(options.threads_per_block) : 1;
  const uint64_t blocks = std::min(options.max_blocks, count / chunk + (count % chunk != 0 ? 1 : 0));
  const std::string error =
      state_->grid.run({kernel, &block, entry, count, ++state_->launches, chunk, blocks}, shared_bytes);
  if (!error.empty()) throw Error(ErrorCode::kInternal, error);
}

}  // namespace coppice::simt
