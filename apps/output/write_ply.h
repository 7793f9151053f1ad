// Particles of a program as binary PLY files, from arrays on the host.
//
//     output::write_ply("drops.ply", {{"position", places}, {"mass", masses}});      // of two std::vectors
//
//     const std::vector<Particle> list = wait_read_list(particles, {x, y});          // of a dynamic node
//     output::write_ply("drops.ply", {{"position", list, &Particle::x}, {"velocity", list, &Particle::v}});
//
// Particles in a buffer come to the host by Device::wait_copy(). What lies in the file is said in
// particle_ply.h, whose read_particles_ply() reads it back.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/output/particle_ply.h"
#include "core/math.h"

namespace coppice::output {

namespace detail {
// Says as what a value of type T is written; Eigen's matrices go column by column.
template <class T>
struct PlyValue {
  static_assert(
      sizeof(T) == 0,
      "values are float, uint8_t, int32_t, or std::arrays or Eigen's vectors and matrices of these");
};
template <>
struct PlyValue<float> {
  static constexpr PlyType kType = PlyType::kFloat32;
  static constexpr int kComponents = 1;
};
template <>
struct PlyValue<uint8_t> {
  static constexpr PlyType kType = PlyType::kUint8;
  static constexpr int kComponents = 1;
};
template <>
struct PlyValue<int32_t> {
  static constexpr PlyType kType = PlyType::kInt32;
  static constexpr int kComponents = 1;
};
template <class T, size_t N>
struct PlyValue<std::array<T, N>> {
  static constexpr PlyType kType = PlyValue<T>::kType;
  static constexpr int kComponents = static_cast<int>(N) * PlyValue<T>::kComponents;
};
template <class T, int kRows, int kColumns>
struct PlyValue<Eigen::Matrix<T, kRows, kColumns>> {
  static_assert(kRows > 0 && kColumns > 0, "a particle's matrix has a fixed size");
  static constexpr PlyType kType = PlyValue<T>::kType;
  static constexpr int kComponents = kRows * kColumns;
};
}  // namespace detail

// Names the values that all particles have of one attribute. They are not copied: they stay until the file is
// written.
class ParticleValues {
 public:
  template <class T>
  ParticleValues(std::string name, std::span<const T> values)
      : ParticleValues(std::move(name), values.data(), sizeof(T), values.size()) {}
  template <class T>
  ParticleValues(std::string name, const std::vector<T>& values)
      : ParticleValues(std::move(name), std::span<const T>(values)) {}
  // Names a member of each of an array's structs.
  template <class Particle, class T>
  ParticleValues(std::string name, const std::vector<Particle>& particles, T Particle::*member)
      : ParticleValues(std::move(name), particles.empty() ? nullptr : &(particles.data()->*member),
                       sizeof(Particle), particles.size()) {}

  const PlyAttribute& attribute() const { return attribute_; }
  size_t count() const { return count_; }

 private:
  template <class T>
  ParticleValues(std::string name, const T* first, size_t stride_bytes, size_t count)
      : attribute_{std::move(name), detail::PlyValue<T>::kType, detail::PlyValue<T>::kComponents, first,
                   static_cast<int64_t>(stride_bytes)},
        count_(count) {}

  PlyAttribute attribute_;
  size_t count_;
};

namespace detail {
// Returns the attributes of all particles as the writers take them. Errors: as write_ply(), of what is given.
struct CheckedParticles {
  std::vector<PlyAttribute> attributes;
  int64_t count = 0;
};
CheckedParticles check_particles(const std::string& path, const std::vector<ParticleValues>& attributes);
}  // namespace detail

// Writes particles; one of their attributes is "position", of 2 or 3 floats. There may be none of them. The
// file appears whole or not at all, and replaces what was there. `of`: one line that says what they are of.
// Errors, with the path as their place: kInvalidArgument without a position, for attributes of different
// lengths, for names that are not one word and for two that are the same in the file; kNumeric for a value
// that is not finite (the first one is named); kIo where the folder is missing or the disk is full.
void write_ply(const std::string& path, const std::vector<ParticleValues>& attributes,
               const std::string& of = {});

}  // namespace coppice::output
