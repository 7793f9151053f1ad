// The program kept_kernels_program does this, and so does the test that runs it: pointer and bitmasked
// nodes, written, activated, deactivated and read, as one line of text.
//
//     kept_kernels_program DEVICE            "values 7 0 ...; 12 compiled, 0 from the cache"
#pragma once
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "conformance.kernels.h"
#include "gpu/kernel_store.h"
#include "sparse/program.h"
#include "sparse/tree.h"
#include "tests/sparse/staging.h"

namespace coppice {

inline std::vector<int> values_of_kept_kernels(const IntrusivePtr<Device>& device) {
  Program program(device);
  Tree tree(device);
  Node block = tree.root().pointer({32}), plain = block.dense({4}), masked = block.bitmasked({4});
  Field<int> x = plain.place<int>("x"), y = masked.place<int>("y");
  const std::vector<int> all{0, 1, 17, 18, 64, 127}, fresh{65}, gone{4}, bit{1}, again{18};
  std::vector<int> got_x(all.size()), got_y(all.size());
  uint64_t counts[2] = {};
  run_on(program, write_at1, range(6), x, all, 7);
  run_on(program, write_at1, range(6), y, all, 9);
  run_on(program, activate_at1, range(1), masked.topology(), fresh);
  run_on(program, deactivate_at1, range(1), block.topology(), gone);  // 17, 18
  run_on(program, deactivate_at1, range(1), masked.topology(), bit);
  run_on(program, write_at1, range(1), y, again, 11);
  run_on(program, read_at1, range(6), x, all, got_x);
  run_on(program, read_at1, range(6), y, all, got_y);
  run_on(program, count1, over(plain), inout(counts[0]));
  run_on(program, count1, over(masked), inout(counts[1]));
  std::vector<int> out = got_x;
  out.insert(out.end(), got_y.begin(), got_y.end());
  for (const uint64_t n : counts) out.push_back(static_cast<int>(n));
  return out;
}

inline std::string report_of_kept_kernels(const IntrusivePtr<Device>& device) {
  const std::vector<int> values = values_of_kept_kernels(device);
  const jit::KernelCache::Stats stats = device->kernels().disk_cache().stats();
  return fmt::format("values {}; {} compiled, {} from the cache", fmt::join(values, " "), stats.misses,
                     stats.hits);
}

}  // namespace coppice
