// A frame's particles, or a rank's share of them, as the attributes of files: those that they always have,
// and what output.fields names.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "apps/mpm/solver_output.h"
#include "apps/output/particle_ply.h"
#include "apps/scene/scene.h"

namespace coppice {

class WrittenParticles {
 public:
  // Both must live as long as this object; the snapshot has what parts_to_write() says.
  WrittenParticles(const scene::SceneConfig& scene, const mpm::ParticleSnapshot& particles);
  WrittenParticles(const WrittenParticles&) = delete;
  WrittenParticles& operator=(const WrittenParticles&) = delete;

  int64_t count() const { return static_cast<int64_t>(particles_.position.size()); }
  // Returns all attributes, from which a run can be shown again: those of PLY files.
  std::vector<PlyAttribute> all() const;
  // Returns the attributes that mean something without the solver: those of VTK files. Symmetric matrices are
  // in VTK's order, xx yy zz xy yz xz (xx, yy, xy in 2-D).
  std::vector<PlyAttribute> shown() const;
  // Returns the attributes of shown(), without strides, that output.fields names: the average of their values
  // over a node's particles has a sense.
  std::vector<PlyAttribute> averaged() const;
  // Returns the names of the components of matrices in shown(), by the attribute.
  std::map<std::string, std::vector<std::string>> component_names() const;

 private:
  // The values that output.fields names, packed; empty where it does not.
  struct Field {
    std::string name;
    int components;
    std::vector<float> values;
    bool is_symmetric;
    bool is_named;  // by output.fields, and not by output.color alone
  };

  PlyAttribute material() const;
  PlyAttribute emitter() const;

  const scene::SceneConfig& scene_;
  const mpm::ParticleSnapshot& particles_;
  std::vector<uint8_t> materials_, emitters_;  // empty where there are too many for bytes
  std::vector<Field> fields_;
  std::vector<std::vector<float>> reordered_;  // of fields_ that are symmetric; or else empty
};

}  // namespace coppice
