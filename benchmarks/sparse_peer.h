// Taichi beside the benchmarks of sparse trees: peers/sparse_taichi.py, as long as it answers.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "benchmarks/lookup_case.h"
#include "benchmarks/report.h"
#include "benchmarks/taichi.h"

namespace coppice::bench {

struct SparseSizes {
  int32_t blocks;  // per axis of the tree that is filled
  int32_t side;    // cells per axis of the grid of which a tenth is active
  int64_t items;   // appended
  Region shell;
  int repetitions;
};

class SparsePeer {
 public:
  // `device` is ours: Taichi runs on a GPU where we do, and on as many threads as we on the CPU; left out for others.
  SparsePeer(const Options& options, const SparseSizes& sizes, std::string_view device, int threads);
  bool is_there() const { return taichi_ != nullptr; }
  // Or why it is absent.
  std::string name() const { return is_there() ? "taichi 1.7.4" : absent_; }
  // Nothing, from the first error on.
  std::optional<double> ask(const std::string& command, const std::string& key);

 private:
  void guard(const std::function<void()>& call);

  std::unique_ptr<Taichi> taichi_;
  std::string absent_;
};

}  // namespace coppice::bench
