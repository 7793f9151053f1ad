// A scene whose keys somebody changes while it is shown: which ones, to what, and when they act.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "apps/scene/scene.h"
#include "apps/viewer/simulation.h"

namespace coppice {

class SceneParameters {
 public:
  // `overrides` are those that `scene` was loaded with.
  SceneParameters(scene::SceneConfig scene, std::vector<scene::SceneOverride> overrides);

  // Returns the scene with what was set since it was loaded; some of that may act only after a reset.
  const scene::SceneConfig& wanted() const { return wanted_; }
  std::vector<viewer::Parameter> list() const;
  // The whole scene is read and checked again. Errors: kUsage; nothing has changed then.
  void set(const std::string& path, const std::string& value);

 private:
  scene::SceneConfig parse(std::span<const scene::SceneOverride> overrides) const;

  const scene::SceneConfig at_start_;  // as it was loaded
  scene::SceneConfig wanted_;
  std::vector<scene::SceneOverride> overrides_;
};

}  // namespace coppice
