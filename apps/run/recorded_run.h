// Shows the files that an earlier run has left in its folder, frame by frame, behind the viewer's
// interface.
//
// The particles come from its files (apps/output/particle_ply.h); the domain, colliders, materials and the
// camera are the scene's, which must be the one that was run: files say of what dimension, materials and
// grid they are. Frames that have no file are passed over; behind the last one the first follows. A frame
// is a step.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/output/particle_ply.h"
#include "apps/run/scene_parameters.h"
#include "apps/viewer/simulation.h"

namespace coppice {

// The numbers of the frames whose particles are in a folder, up to `last`; they go up, and there is at least
// one. Errors: kNotFound; kUsage where all are behind `last`.
std::vector<int64_t> recorded_frames(const std::filesystem::path& folder, std::optional<int64_t> last = {});

class RecordedRun final : public viewer::Simulation {
 public:
  // Frames behind `last` are left out. Errors: those of recorded_frames() and of reading the first of them;
  // kInvalidArgument for particles of another scene; those of SceneParameters.
  RecordedRun(const std::filesystem::path& folder, scene::SceneConfig scene,
              std::vector<scene::SceneOverride> overrides, std::optional<int64_t> last = {});

  bool wait_advance(
      int most_steps) override;  // Errors: those of reading a frame; it stays where it was then.
  void wait_reset() override;    // to the first frame
  void wait_pack(viewer::Snapshot& snapshot) override;
  uint64_t steps() const override { return steps_; }
  double time_s() const override;
  double max_speed_m_s() const override { return fastest_m_s_; }
  // These parameters choose what is seen: colours, as in SceneSimulation. "frame" goes to that frame, or
  // the next one that there is.
  std::vector<viewer::Parameter> parameters() const override;
  void wait_set(const std::string& path, const std::string& value) override;

 private:
  void wait_load(size_t index);

  const std::filesystem::path folder_;
  SceneParameters parameters_;
  std::vector<int64_t> frames_;  // their numbers, which go up
  size_t index_ = 0;             // of the one that is there
  ParticleTable particles_;
  double fastest_m_s_ = 0;
  uint64_t steps_ = 0;
};

}  // namespace coppice
