// Brings values of all ranks to the first one.
#pragma once
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/check.h"
#include "sparse/ranks/cluster.h"

namespace coppice::mpm {

// Returns what each rank has, by rank, on the first one, and nothing on the others. All ranks call it
// together.
inline std::vector<RankLink::Bytes> wait_collect(const Cluster& cluster, RankLink::Bytes own) {
  std::vector<RankLink::Bytes> parts(static_cast<size_t>(cluster.n_ranks()));
  parts.front() = std::move(own);
  return cluster.wait_exchange(std::move(parts));
}

// Appends what other ranks have to the first rank's values, by rank; `n_rows` rows of as many values each are
// joined row by row. Without ranks they stay as they are.
template <class T>
void wait_collect(const std::optional<Cluster>& cluster, std::vector<T>& values, size_t n_rows = 1) {
  if (!cluster) return;
  const auto own = std::as_bytes(std::span(values));
  const std::vector<RankLink::Bytes> come = wait_collect(*cluster, RankLink::Bytes(own.begin(), own.end()));
  size_t bytes = 0;
  for (const RankLink::Bytes& part : come) {
    COPPICE_CHECK(part.size() % (n_rows * sizeof(T)) == 0, "{} bytes", part.size());
    bytes += part.size();
  }
  values.resize(bytes / sizeof(T));
  auto* to = reinterpret_cast<std::byte*>(values.data());
  for (size_t row = 0; row < n_rows; ++row) {
    for (const RankLink::Bytes& part : come) {
      const size_t row_bytes = part.size() / n_rows;
      if (row_bytes > 0) std::memcpy(to, part.data() + row * row_bytes, row_bytes);
      to += row_bytes;
    }
  }
}

}  // namespace coppice::mpm
