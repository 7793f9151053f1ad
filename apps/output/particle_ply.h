// Particles as binary little-endian PLY with any attributes, and their reader.
//
// File: one element `vertex`, one row per particle, attributes side by side in the order given:
//     attribute           properties
//     position, 3 or 2    x y z            (2: z is written as 0, and comes back with 3 components)
//     other, 1            name
//     other, n            name_0 ... name_<n-1>
// A header line `comment attribute NAME COMPONENTS` per attribute lets the reader put them together again; a
// line `comment of TEXT` says what the particles are of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace coppice {

enum class PlyType { kFloat32, kUint8, kInt32 };

// Says where the values of one attribute stand: component c of particle i is at data + i *
// particle_stride_bytes + c * component_stride_bytes; the default strides mean packed [n][components].
struct PlyAttribute {
  std::string name;  // no blanks
  PlyType type = PlyType::kFloat32;
  int components = 1;
  const void* data = nullptr;
  int64_t particle_stride_bytes = 0;   // 0: components * the type's size
  int64_t component_stride_bytes = 0;  // 0: the type's size
};

// Writes the file whole or not at all; one of the attributes is "position", of float32. `of`: one line.
// Errors: kInvalidArgument without a position, for a name that is not one word, for two attributes with a
// property of the same name, and for several lines; kIo.
void write_particles_ply(const std::string& path, std::span<const PlyAttribute> attributes,
                         int64_t n_particles, const std::string& of = {});

struct ParticleColumn {
  std::string name;
  PlyType type = PlyType::kFloat32;
  int components = 1;
  std::vector<std::byte> bytes;  // packed [n_particles][components]
};

struct ParticleTable {
  int64_t n_particles = 0;
  std::vector<ParticleColumn> columns;
  std::string of;  // empty: the file does not say it

  // nullptr when there is none of that name.
  const ParticleColumn* find(const std::string& name) const;
  // The values of a float32 column, [n_particles * components]. Throws kNotFound, or kInvalidArgument on
  // another type.
  std::span<const float> floats(const std::string& name) const;
};

// Reads what write_particles_ply() wrote; also any binary little-endian PLY whose vertices have scalar
// properties of these three types, one column each (x, y, z as "position"). Errors: kNotFound, kIo,
// kInvalidArgument (another kind of PLY), kDataLoss (shorter or longer than promised).
ParticleTable read_particles_ply(const std::string& path);

}  // namespace coppice
