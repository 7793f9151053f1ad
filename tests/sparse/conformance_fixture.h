// The conformance tests share this: a device and a program, and the few kernels that nearly all of them
// launch.
//
// The number in a test's name (C05) is the entry in the list of what other sparse-grid systems' test suites
// check (docs/sparse.md, "Conformance"); a B is what they do not.
#pragma once
#include <map>
#include <numeric>
#include <vector>

#include "conformance.kernels.h"
#include "conformance_cells.kernels.h"
#include "sparse/tree.h"
#include "tests/sparse/test_devices.h"

namespace coppice {

class Conformance : public DeviceTest {
 protected:
  void write1(const Field<int>& x, std::vector<int> coords, int value = 1) {
    run(write_at1, range(static_cast<int64_t>(coords.size())), x, coords, value);
  }
  void write2(const Field<int>& x, std::vector<int> coords, int value = 1) {
    run(write_at2, range(static_cast<int64_t>(coords.size() / 2)), x, coords, value);
  }
  std::vector<int> read1(const Field<int>& x, std::vector<int> coords) {
    std::vector<int> out(coords.size());
    run(read_at1, range(static_cast<int64_t>(coords.size())), x, coords, out);
    return out;
  }
  std::vector<int> read2(const Field<int>& x, std::vector<int> coords) {
    std::vector<int> out(coords.size() / 2);
    run(read_at2, range(static_cast<int64_t>(out.size())), x, coords, out);
    return out;
  }
  std::vector<int> active2(const Node& node, std::vector<int> coords) {
    std::vector<int> out(coords.size() / 2);
    run(test_active2, range(static_cast<int64_t>(out.size())), node.topology(), coords, out);
    return out;
  }
  void deactivate1(const Node& node, std::vector<int> coords) {
    run(deactivate_at1, range(static_cast<int64_t>(coords.size())), node.topology(), coords);
  }
  template <class Kernel>
  uint64_t count(const Kernel& kernel, const Node& node) {
    uint64_t n = 0;
    run(kernel, over(node), inout(n));
    return n;
  }
  uint64_t sum(const Node& node, const Field<int>& x) {
    uint64_t s = 0;
    run(sum1, over(node), x, inout(s));
    return s;
  }
  // Where the blocks of a leaf of four cells lie, by number.
  std::map<int, uint64_t> addresses4(const Node& leaf) {
    std::vector<uint64_t> listed(2 * leaf.wait_num_active_blocks());
    run(list_addresses1, over(leaf), listed);
    std::map<int, uint64_t> out;
    for (size_t i = 0; i < listed.size(); i += 2) out[static_cast<int>(listed[i]) / 4] = listed[i + 1];
    return out;
  }
  static std::vector<int> iota(int n) {
    std::vector<int> out(n);
    std::iota(out.begin(), out.end(), 0);
    return out;
  }
  // The first coordinates of blocks [first, last) of four cells.
  static std::vector<int> first_cells(int first, int last) {
    std::vector<int> out;
    for (int i = first; i < last; ++i) out.push_back(4 * i);
    return out;
  }
  // All coordinates of n x n, row by row.
  static std::vector<int> square(int n) {
    std::vector<int> out;
    for (int i = 0; i < n * n; ++i) out.insert(out.end(), {i / n, i % n});
    return out;
  }
};

}  // namespace coppice
