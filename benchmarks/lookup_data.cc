// The stencil benchmark's tree and array (see lookup_data.h).
#include "benchmarks/lookup_data.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>

#include "core/error.h"

namespace coppice::bench {
namespace {

void check(const AsyncValueRef<Chain>& done) {
  wait(done);
  if (done.is_error()) throw done.error();
}

// In huge pages where there are any, as the tree's cells are.
Floats zeros(size_t count) {
  constexpr size_t kPage = size_t{2} << 20;
  const size_t bytes = (count * sizeof(float) + kPage - 1) / kPage * kPage;
  Floats floats(static_cast<float*>(std::aligned_alloc(kPage, bytes)));
  if (!floats) throw Error(ErrorCode::kOutOfMemory, fmt::format("cannot allocate {} bytes", bytes));
  madvise(floats.get(), bytes, MADV_HUGEPAGE);
  std::fill_n(floats.get(), bytes / sizeof(float), 0.0f);
  return floats;
}

}  // namespace

double least_bytes(const Region& region) {
  const int32_t n = region.side();
  std::vector<bool> seen(static_cast<size_t>(n) * n / 2 * n / 8 + 1);
  size_t lines = 0;
  for_each_voxel(region, [&](int32_t x, int32_t y, int32_t z) {
    const int32_t i = x - region.first(), j = (y - region.first()) / 2, k = (z - region.first()) / 8;
    const size_t line = (static_cast<size_t>(i) * (n / 2) + j) * (n / 8) + k;
    if (seen[line]) return;
    seen[line] = true;
    ++lines;
  });
  return 2.0 * 64 * static_cast<double>(lines);
}

TreeStencil::TreeStencil(const Region& region, IntrusivePtr<Device> device, bool is_masked)
    : region_(region), device_(std::move(device)), program_(device_), tree_(device_, {.name = "lookup"}) {
  const Node block = tree_.root().pointer({kTreeSide / 8, kTreeSide / 8, kTreeSide / 8});
  leaf_ = region.outer2 != 0 || is_masked ? block.bitmasked({8, 8, 8}) : block.dense({8, 8, 8});
  now_ = leaf_->place<float>("now"), next_ = leaf_->place<float>("next");
  const int64_t n = region.side();
  check(program_.launch(fill_region, range(n * n * n), now_, region));
}

void TreeStencil::run(int launches) {
  for (int i = 1; i < launches; ++i) program_.launch(diffuse, over(*leaf_), Heat{now_, next_}, kDiffusion);
  check(program_.launch(diffuse, over(*leaf_), Heat{now_, next_}, kDiffusion));
}

std::vector<float> TreeStencil::result(uint64_t& count) {
  const auto n = static_cast<size_t>(region_.side());
  std::vector<float> out(n * n * n);
  count = 0;
  check(program_.launch(copy_region, over(*leaf_), next_, region_, out.data(), &count));
  return out;
}

ArrayData::ArrayData(const Region& region) : region_(region) {
  ptrdiff_t side = region.side() + 2 * kRim;
  if (side % 32 == 0) side += 8;
  shape_ = {side * side, side};
  const auto count = static_cast<size_t>(side * side * side);
  now_ = zeros(count), next_ = zeros(count);
  for_each_voxel(region, [&](int32_t x, int32_t y, int32_t z) {
    const int32_t i = index(x, y, z);
    now_.get()[i] = initial_value(x, y, z);
    list_.push_back(i);
    if (runs_.empty() || runs_.back().start + runs_.back().length != i)
      runs_.push_back({i, 1});
    else
      ++runs_.back().length;
  });
}

void ArrayData::run_cube(const ArrayStencil& s) {
  const int32_t first = index(region_.first(), region_.first(), region_.first());
  s.cube(now_.get(), next_.get(), first, region_.side(), shape_, kDiffusion);
}
void ArrayData::run_list(const ArrayStencil& s) {
  s.list(now_.get(), next_.get(), list_.data(), list_.size(), shape_, kDiffusion);
}
void ArrayData::run_runs(const ArrayStencil& s) {
  s.runs(now_.get(), next_.get(), runs_.data(), runs_.size(), shape_, kDiffusion);
}

void ArrayData::clear_next() {
  for (const int32_t i : list_) next_.get()[i] = 0;
}

}  // namespace coppice::bench
