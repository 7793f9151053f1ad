// A scene's solver as the viewer runs it.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "apps/mpm/solver.h"
#include "apps/run/scene_parameters.h"
#include "apps/viewer/simulation.h"

namespace coppice {

class SceneSimulation final : public viewer::Simulation {
 public:
  // Errors: those of Solver::create() and SceneParameters.
  SceneSimulation(IntrusivePtr<Device> device, scene::SceneConfig scene,
                  std::vector<scene::SceneOverride> overrides);
  ~SceneSimulation() override;

  bool wait_advance(int most_steps) override { return solver_->wait_advance(most_steps); }
  void wait_reset() override;
  void wait_pack(viewer::Snapshot& snapshot) override;
  uint64_t steps() const override { return solver_->steps(); }
  double time_s() const override { return solver_->time_s(); }
  double max_speed_m_s() const override { return solver_->max_speed_m_s(); }
  viewer::MemoryState wait_memory() override;
  bool has_memory() const override { return true; }
  std::vector<viewer::FunctionGraph> graphs() const override;
  std::string device_name() const override { return std::string(device_->name()); }
  // The keys of the scene that act on what is computed or seen.
  std::vector<viewer::Parameter> parameters() const override { return parameters_.list(); }
  void wait_set(const std::string& path, const std::string& value) override;
  // Materials are the scene's emitters.
  viewer::Hands hands() const override;
  void wait_act(const viewer::Emit& emit) override;
  void wait_act(const viewer::Push& push) override;
  void wait_act(const viewer::Cut& cut) override;

  mpm::Solver& solver() { return *solver_; }

 private:
  void pack_grid(viewer::Snapshot& s);
  void pack_bodies(viewer::Snapshot& s);
  void read_cell(viewer::Snapshot& s);
  void choose_looks(viewer::PointSet& points);

  IntrusivePtr<Device> device_;
  SceneParameters parameters_;
  scene::SceneConfig scene_;  // what the solver has, and what is shown of it
  std::unique_ptr<mpm::Solver> solver_;
  render::TreeBoxPacker tree_packer_;
  render::BrickPacker brick_packer_;
  std::string packed_;                      // value of the grid, last
  std::vector<render::PackedPoint> kinds_;  // scratch, as the next
  std::vector<uint8_t> enclosed_;
};

}  // namespace coppice
