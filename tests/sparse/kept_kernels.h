// What kept_kernels_program does, and the test that runs it: pointer and bitmasked nodes, written, activated,
// deactivated and read, as one line of text.
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

namespace coppice {

inline std::vector<int> values_of_kept_kernels(const IntrusivePtr<Device>& device) {
  Program program(device);
  Tree tree(device);
  Node block = tree.root().pointer({32}), plain = block.dense({4}), masked = block.bitmasked({4});
  Field<int> x = plain.place<int>("x"), y = masked.place<int>("y");
  const std::vector<int> all{0, 1, 17, 18, 64, 127}, fresh{65}, gone{4}, bit{1}, again{18};
  std::vector<int> got_x(all.size()), got_y(all.size());
  uint64_t counts[2] = {};
  program.launch(write_at1, range(6), x, all.data(), 7);
  program.launch(write_at1, range(6), y, all.data(), 9);
  program.launch(activate_at1, range(1), masked.topology(), fresh.data());
  program.launch(deactivate_at1, range(1), block.topology(), gone.data());  // 17, 18
  program.launch(deactivate_at1, range(1), masked.topology(), bit.data());
  program.launch(write_at1, range(1), y, again.data(), 11);
  program.launch(read_at1, range(6), x, all.data(), got_x.data());
  program.launch(read_at1, range(6), y, all.data(), got_y.data());
  program.launch(count1, over(plain), &counts[0]);
  program.launch(count1, over(masked), &counts[1]);
  program.wait();
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
