// Tests of trees over ranks share this: programs that run on a tree of one and on ranks, which are threads
// here, and see the same.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coppice/coppice.h"
#include "core/error.h"
#include "core/local_ranks.h"
#include "sparse/tree_storage.h"

namespace coppice {

using Coord = std::array<int32_t, 3>;

inline void finish(const AsyncValueRef<Chain>& done) {
  wait(done);
  if (done.is_error()) throw done.error();
}

struct RanksParam {
  const char* device;
  int n_ranks;
};
class RanksTest : public testing::TestWithParam<RanksParam> {
 protected:
  static int n() { return GetParam().n_ranks; }
  // Runs the program on a tree of one, and on ranks; each returns what it has seen, which is to be the same.
  template <class F>
  void expect_same(F program) {
    const auto expected = program(std::optional<Cluster>());
    std::mutex mutex;
    int n_equal = 0;
    run_on_ranks(n(), [&](std::shared_ptr<RankLink> link) {
      const auto seen = program(std::optional<Cluster>(link));
      const std::lock_guard lock(mutex);
      ASSERT_EQ(seen.size(), expected.size());
      for (size_t i = 0; i < seen.size(); ++i)
        ASSERT_EQ(seen[i], expected[i]) << "rank " << link->rank() << ", " << i;
      ++n_equal;
    });
    EXPECT_EQ(n_equal, n());
  }
};
inline Tree make_tree(const std::optional<Cluster>& cluster, TreeOptions options = {}) {
  const IntrusivePtr<Device> device =
      std::string_view(testing::TestWithParam<RanksParam>::GetParam().device) == "cpu" ? Device::cpu(1)
                                                                                       : Device::simt();
  return cluster ? Tree(*cluster, device, std::move(options)) : Tree(device, std::move(options));
}

// The active cells of all ranks, each once.
template <class T>
std::vector<std::pair<Coord, T>> wait_all_cells(const std::optional<Cluster>& cluster,
                                                const Field<T>& field) {
  const ActiveCells<T> mine = wait_read_active(field);
  std::vector<std::pair<Coord, T>> cells;
  for (size_t i = 0; i < mine.coords.size(); ++i) cells.emplace_back(mine.coords[i], mine.values[i]);
  if (cluster) {
    const auto bytes = std::as_bytes(std::span(cells));
    std::vector<RankLink::Bytes> parts(static_cast<size_t>(cluster->n_ranks()),
                                       RankLink::Bytes(bytes.begin(), bytes.end()));
    cells.clear();
    for (const RankLink::Bytes& part : cluster->wait_exchange(std::move(parts))) {
      const size_t n = part.size() / sizeof(cells[0]);
      const size_t before = cells.size();
      cells.resize(before + n);
      if (n > 0) std::memcpy(static_cast<void*>(cells.data() + before), part.data(), part.size());
    }
  }
  std::sort(cells.begin(), cells.end());
  for (size_t i = 1; i < cells.size(); ++i)
    EXPECT_NE(cells[i - 1].first, cells[i].first) << "two ranks own it";
  return cells;
}

// Returns what f is refused with.
template <class F>
std::string refusal(F f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument);
    return e.what();
  }
  return "it was not refused";
}

inline const auto kRanksParams =
    testing::Values(RanksParam{"cpu", 1}, RanksParam{"cpu", 2}, RanksParam{"cpu", 3}, RanksParam{"cpu", 4},
                    RanksParam{"simt", 3});
inline std::string ranks_name(const testing::TestParamInfo<RanksParam>& info) {
  return info.param.device + std::to_string(info.param.n_ranks);
}

}  // namespace coppice
