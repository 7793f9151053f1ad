// Taichi beside the benchmarks of sparse trees (see sparse_peer.h).
#include "benchmarks/sparse_peer.h"

#include <fmt/format.h>

#include "core/error.h"

namespace coppice::bench {

SparsePeer::SparsePeer(const Options& options, const SparseSizes& s, std::string_view device, int threads) {
  if (options.tiny || (device != "cpu" && device != "cuda")) {
    absent_ = "taichi left out";  // its kernels take seconds to compile; it has no emulated GPU
    return;
  }
  const std::optional<std::string> python = find_taichi_python(absent_);
  if (!python) return;
  guard([&] {
    taichi_ = std::make_unique<Taichi>(
        *python, "sparse_taichi.py",
        std::vector<std::string>{"--serve", "--arch", std::string(device), "--threads",
                                 std::to_string(threads), "--blocks", std::to_string(s.blocks), "--side",
                                 std::to_string(s.side), "--items", std::to_string(s.items), "--shell",
                                 fmt::format("{},{},{}", s.shell.half, s.shell.inner2, s.shell.outer2)});
  });
}

std::optional<double> SparsePeer::ask(const std::string& command, const std::string& key) {
  std::optional<double> answer;
  if (is_there()) guard([&] { answer = taichi_->ask_number(command, key); });
  return answer;
}

void SparsePeer::guard(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnavailable && error.code() != ErrorCode::kIo) throw;
    absent_ = fmt::format("taichi absent: {}", error.what());
    taichi_.reset();
  }
}

}  // namespace coppice::bench
