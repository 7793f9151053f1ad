// A model test: seeds of random operations on something and on a model of it, compared now and then.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <tuple>

#include "sparse/program.h"
#include "tests/sparse/test_devices.h"

namespace coppice {

// How much is run in all; CI runs the first tenth of the seeds, the long test the others.
struct ModelRuns {
  int seeds, operations_of_each;
};
inline ModelRuns model_runs(const std::string& device) {
#ifdef __SANITIZE_THREAD__
  if (is_emulated_device(device)) return {20, 1000};  // its threads are fibers of one: nothing for it to find
  return {100, 10'000};
#else
  if (is_emulated_device(device)) return {1000, 1000};
  return {100, 100'000};
#endif
}

// `Modelled` is made from a device, a program and a kind; run_batch(random, n) is one
// launch on it and on its model.
template <class Modelled, class Kind>
class ModelTest : public testing::TestWithParam<std::tuple<std::string, Kind>> {
 protected:
  // On an emulated GPU a seed is also its scheduler's: another interleaving of the same threads.
  void run_seeds(int first, int last) {
    const auto& [name, kind] = this->GetParam();
    for (int seed = first; seed < last; ++seed) {
      SCOPED_TRACE(testing::Message() << "seed " << seed);
      std::string reason;
      const auto device = test_device(name, reason, static_cast<uint64_t>(seed));
      if (!device) GTEST_SKIP() << reason;
      Program program(device);
      ASSERT_NO_FATAL_FAILURE(run_seed(device, program, kind, seed, model_runs(name).operations_of_each));
    }
  }

 private:
  static void run_seed(const IntrusivePtr<Device>& device, Program& program, Kind kind, int seed,
                       int operations) {
    Modelled m(device, program, kind);
    std::mt19937 random(static_cast<unsigned>(seed));
    for (int step = 0, done = 0; done < operations; ++step) {
      SCOPED_TRACE(testing::Message() << "step " << step);
      const int n = std::min<int>(operations - done, random() % 4 == 0 ? 3000 : 1 + random() % 200);
      ASSERT_NO_FATAL_FAILURE(m.run_batch(random, n));
      if (random() % 32 == 0) m.deactivate_all();
      done += n;
      if (random() % 4 != 0) continue;
      ASSERT_NO_FATAL_FAILURE(m.check());
    }
    m.check();
  }
};

}  // namespace coppice
