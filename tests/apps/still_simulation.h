// A simulation in which nothing happens, for tests of what is measured around it.
#pragma once
#include <string>

#include "apps/viewer/simulation.h"

namespace coppice::viewer {

class StillSimulation : public Simulation {
 public:
  bool wait_advance(int) override { return true; }
  void wait_reset() override {}
  void wait_pack(Snapshot&) override {}
  uint64_t steps() const override { return 0; }
  double time_s() const override { return 0; }
  void wait_set(const std::string&, const std::string&) override {}
};

}  // namespace coppice::viewer
