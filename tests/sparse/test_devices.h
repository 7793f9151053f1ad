// The devices that a test runs on: cpu always, simt (an emulated GPU) and cuda where they can be had.
//
//     class Heat : public DeviceTest {};                  // a TEST_P(Heat, ...) has `device` and program()
//     INSTANTIATE_TEST_SUITE_P(Sparse, Heat, testing::ValuesIn(test_devices()), device_test_name);
//
// A device that cannot be had is skipped with its own reason. COPPICE_TEST_DEVICES=cuda (names with commas)
// says which ones to run on instead; then one that cannot be had is a failure.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "core/error.h"
#include "gpu/device.h"
#include "sparse/program.h"
#include "sparse/tree.h"
#include "tests/sparse/staging.h"

namespace coppice {

// COPPICE_TEST_DEVICES; empty when it is not set.
inline std::string test_devices_asked_for() {
  const char* names = std::getenv("COPPICE_TEST_DEVICES");
  return names != nullptr ? names : "";
}
inline std::vector<std::string> test_devices() {
  const std::string asked = test_devices_asked_for();
  std::istringstream names(asked.empty() ? "cpu,simt,cuda" : asked);
  std::vector<std::string> all;
  for (std::string name; std::getline(names, name, ',');) all.push_back(name);
  return all;
}
// Where the number of threads on the cpu matters.
inline std::vector<std::string> test_devices_by_threads() {
  std::vector<std::string> all;
  for (const std::string& name : test_devices()) {
    if (name == "cpu")
      all.insert(all.end(), {"cpu1", "cpu4"});
    else
      all.push_back(name);
  }
  return all;
}
inline std::string device_test_name(const testing::TestParamInfo<std::string>& info) { return info.param; }

// An emulated GPU takes a thousand times as long.
inline bool is_emulated_device(const std::string& name) { return name == "simt"; }

// Null where there is no such device; then `reason` says why. The cpu runs 4 threads, whatever the machine
// has; cpu1 one. `seed` chooses the order in which an emulated GPU runs its threads. Errors: kUnavailable or
// kUsage for a device that COPPICE_TEST_DEVICES asks for.
inline IntrusivePtr<Device> test_device(const std::string& name, std::string& reason, uint64_t seed = 1) {
  if (name == "cpu1") return Device::cpu(1);
  if (name == "cpu" || name == "cpu4") return Device::cpu(4);
  try {
    if (is_emulated_device(name)) setenv("COPPICE_SIMT_SEED", std::to_string(seed).c_str(), 1);
    return Device::named(name);
  } catch (const Error& e) {
    const bool may_be_absent = test_devices_asked_for().empty();
    if (!may_be_absent || (e.code() != ErrorCode::kUnavailable && e.code() != ErrorCode::kUsage)) throw;
    reason = e.what();
    return {};
  }
}

// Makes room for so many cells of a node where memory is mapped before a launch, for kernels that cannot be
// repeated when they run out of it.
inline void wait_room(const Device& device, const Node& node, uint64_t cells) {
  if (!device.commits_on_touch()) finish(node.reserve(cells));
}

// The device of a test without one in its name: the cpu with so many threads (0: all), or the first device
// that COPPICE_TEST_DEVICES names.
inline IntrusivePtr<Device> cpu_or_test_device(int threads = 0) {
  std::string reason;
  return test_devices_asked_for().empty() ? Device::cpu(threads) : test_device(test_devices()[0], reason);
}

class DeviceTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::string reason;
    device = test_device(GetParam(), reason);
    if (!device) GTEST_SKIP() << reason;
    program_.emplace(device);
  }
  void TearDown() override { program_.reset(); }

  Program& program() { return *program_; }
  bool is_emulated() const { return is_emulated_device(GetParam()); }
  // Work that an emulated GPU would take too long for, cut to about a thousandth, but to no less than a few
  // warps.
  int scaled(int n) const { return is_emulated() ? std::max(n / 1000, std::min(n, 256)) : n; }
  // Vectors and inout() values are in device memory meanwhile (staging.h).
  template <class Kernel, class... Arguments>
  void run(const Kernel& kernel, const Loop& loop, Arguments&&... arguments) {
    run_on(program(), kernel, loop, std::forward<Arguments>(arguments)...);
  }

  IntrusivePtr<Device> device;

 private:
  std::optional<Program> program_;
};

}  // namespace coppice
