// Runs sequences of the mixed model (mixed_model.h), and cuts those that fail down to few steps.
//
// COPPICE_MODEL_SEED=n runs that seed alone, COPPICE_MODEL_STEPS=a,b,c only these steps of it, and says what
// they are. COPPICE_MODEL_SEEDS=a-b runs these instead of those that a test has.
#pragma once
#include <algorithm>
#include <chrono>

#include "tests/sparse/mixed_model.h"

namespace coppice::mixed {

struct MixedFailure {
  int step;
  std::string what;
};

class MixedModel : public testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  // 10^7 operations of a kind in all, 10^6 on an emulated GPU; the stress test runs the first seeds.
  bool is_emulated() const { return is_emulated_device(std::get<0>(GetParam())); }
  int num_seeds() const { return is_emulated() ? 1000 : 100; }
  int first_long_seed() const { return is_emulated() ? 2 : 3; }
  int operations_of_each() const { return is_emulated() ? 1000 : 100'000; }

  void run_each_kind() {
    MixedSequence sequence(std::get<0>(GetParam()), kind_of(std::get<1>(GetParam()), 0), 0, false);
    if (!sequence.no_device.empty()) GTEST_SKIP() << sequence.no_device;
    sequence.run_each_kind();
  }
  void run_seeds(int first, int last, int operations_of_each) {
    const auto& [device, number] = GetParam();
    if (const char* seed = std::getenv("COPPICE_MODEL_SEED"))
      return run_told(device, kind_of(number, std::atoi(seed)), std::atoi(seed));
    if (const char* seeds = std::getenv("COPPICE_MODEL_SEEDS")) sscanf(seeds, "%d-%d", &first, &last);
    uint64_t operations = 0, shortages = 0, steps = 0, trees = 0, lists = 0;
    for (int seed = first; seed < last; ++seed) {
      const MixedKind kind = kind_of(number, seed);
      MixedSequence sequence(device, kind, seed, false);
      if (!sequence.no_device.empty()) GTEST_SKIP() << sequence.no_device;
      const auto failure = run_steps(sequence, operations_of_each);
      if (failure) return report(device, kind, seed, *failure);
      operations += sequence.operations(), shortages += sequence.shortages(), steps += sequence.steps;
      trees += sequence.num_trees(), lists += sequence.num_lists();
    }
    fmt::print("{}: {} seeds, {} trees, {} lists, {} operations in {} steps, {} ran out of memory\n",
               kind_of(number, 0).name, last - first, trees, lists, operations, steps, shortages);
  }

 private:
  // Steps from 0 on until there were so many operations.
  static std::optional<MixedFailure> run_steps(MixedSequence& sequence, int operations) {
    for (int step = 0; sequence.operations() < static_cast<uint64_t>(operations) && step < operations;
         ++step) {
      if (auto failure = run_one(sequence, step)) return failure;
      ++sequence.steps;
    }
    return {};
  }
  static std::optional<MixedFailure> run_one(MixedSequence& sequence, int step) {
    try {
      sequence.run_step(step);
      return {};
    } catch (const std::exception& error) {
      return MixedFailure{step, error.what()};
    }
  }
  static std::optional<MixedFailure> run_some(const std::string& device, const MixedKind& kind, int seed,
                                              const std::vector<int>& steps, bool is_traced = false) {
    MixedSequence sequence(device, kind, seed, is_traced);
    for (const int step : steps) {
      if (is_traced) fprintf(stderr, "step %d\n", step);
      if (auto failure = run_one(sequence, step)) return failure;
    }
    return {};
  }
  void run_told(const std::string& device, const MixedKind& kind, int seed) {
    std::vector<int> steps;
    const char* const given = std::getenv("COPPICE_MODEL_STEPS");
    std::istringstream numbers(given != nullptr ? given : "");
    for (std::string number; std::getline(numbers, number, ',');) steps.push_back(std::atoi(number.c_str()));
    for (int step = 0; given == nullptr && step < 100; ++step) steps.push_back(step);
    const auto failure = run_some(device, kind, seed, steps, true);
    EXPECT_FALSE(failure) << "step " << failure->step << ": " << failure->what;
  }
  // Leaves out runs of steps, ever shorter ones, as long as what is left fails; for half a minute at most.
  void report(const std::string& device, const MixedKind& kind, int seed, const MixedFailure& failure) {
    std::vector<int> steps;
    for (int step = 0; step <= failure.step; ++step) steps.push_back(step);
    std::string what = failure.what;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    for (size_t length = steps.size() / 2; length > 0; length /= 2) {
      for (size_t at = 0; at < steps.size() && std::chrono::steady_clock::now() < until;) {
        std::vector<int> fewer = steps;
        fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(at),
                    fewer.begin() + static_cast<ptrdiff_t>(std::min(at + length, steps.size())));
        const auto still = run_some(device, kind, seed, fewer);
        if (still)
          steps.assign(fewer.begin(), std::find(fewer.begin(), fewer.end(), still->step) + 1),
              what = still->what;
        else
          at += length;
      }
    }
    std::string text;
    for (const int step : steps) text += (text.empty() ? "" : ",") + std::to_string(step);
    ADD_FAILURE() << failure.what << "\n  in step " << failure.step
                  << "; again by COPPICE_MODEL_SEED=" << seed << " COPPICE_MODEL_STEPS=" << text
                  << "\n  which gives: " << what;
  }
};

// Over trees that are drawn time goes into compiling kernels for them: a seed a test, of few operations.
class DrawnModel : public MixedModel {
 protected:
  static constexpr int kTests = 4, kSeeds = 124;
  void run_first_seed() {
    const int seed = std::get<1>(GetParam()) - random_kind_number();
    run_seeds(seed, seed + 1, 100);
  }
  void run_others() { run_seeds(kTests, kSeeds, 600); }

 public:
  // Also in the deterministic mode and with the checks.
  static auto models(int tests) {
    std::vector<std::string> devices = test_devices_by_threads();
    if (test_devices_asked_for().empty()) devices.insert(devices.end(), {kDeterministic, kChecks});
    const int first = random_kind_number();
    return testing::Combine(testing::ValuesIn(devices), testing::Range(first, first + tests));
  }
  static auto first_models() { return models(kTests); }
};

inline std::string mixed_test_name(const testing::TestParamInfo<MixedModel::ParamType>& info) {
  const auto& [device, number] = info.param;
  const int drawn = number - random_kind_number();
  return kind_of(number, 0).name + (drawn >= 0 ? std::to_string(drawn) : "") + "_" + device;
}
inline auto all_mixed_models() {
  return testing::Combine(testing::ValuesIn(test_devices_by_threads()),
                          testing::Range(0, random_kind_number()));
}

}  // namespace coppice::mixed
