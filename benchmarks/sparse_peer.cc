// Peers of the benchmarks of sparse trees (see sparse_peer.h).
#include "benchmarks/sparse_peer.h"

#include <fmt/format.h>

namespace coppice::bench {
namespace {

// Their kernels take seconds to compile, and they have no emulated GPU.
bool is_left_out(const Options& options, std::string_view device) {
  return options.tiny || (device != "cpu" && device != "cuda");
}

}  // namespace

SparsePeer::SparsePeer(const Options& options, const SparseSizes& s, std::string_view device, int threads)
    : OptionalPeer("taichi 1.7.4", "taichi left out") {
  if (is_left_out(options, device)) return;
  start("taichi", "sparse_taichi.py",
        {"--serve", "--arch", std::string(device), "--threads", std::to_string(threads), "--blocks",
         std::to_string(s.blocks), "--side", std::to_string(s.side), "--items", std::to_string(s.items),
         "--shell", fmt::format("{},{},{}", s.shell.half, s.shell.inner2, s.shell.outer2)});
}

WarpPeer::WarpPeer(const Options& options, int32_t full_side, int32_t tenth_leaves_side,
                   std::string_view device)
    : OptionalPeer("warp 1.19.0", "warp left out") {
  if (is_left_out(options, device)) return;
  start("warp", "laplacian_warp.py",
        {"--serve", "--device", std::string(device), "--side", std::to_string(full_side), "--leaves-side",
         std::to_string(tenth_leaves_side)});
}

}  // namespace coppice::bench
