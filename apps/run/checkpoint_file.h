// The file that a run goes on from: the state of its solver, of which scene it is, and a checksum.
//
// It is written beside its name and renamed (core/atomic_file.h), so that there is always a whole one.
#pragma once
#include <span>
#include <string>

#include "apps/mpm/checkpoint.h"
#include "apps/scene/scene.h"

namespace coppice {

// A scene's file, its meshes and what was set on the command line, which a run that goes on must have alike.
struct SceneIdentity {
  const scene::SceneConfig& scene;
  std::span<const std::string> assignments;
};

// Errors: kIo.
void write_checkpoint(const std::string& path, const SceneIdentity& scene, const mpm::Checkpoint& checkpoint);
// Errors: kUsage, where there is none, or it is of another scene or version, or damaged.
mpm::Checkpoint read_checkpoint(const std::string& path, const SceneIdentity& scene);

}  // namespace coppice
