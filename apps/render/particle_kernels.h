// Computes how wide particles are smeared out to make a surface: each becomes an ellipsoid, flat where
// the particles around it lie flat.
//
// After Yu and Turk, "Reconstructing surfaces of particle-based fluids using anisotropic kernels", 2013: a
// particle moves towards the mean of its neighbours, which smooths the surface, and the covariance of these
// gives the axes. Lengths are metres.
#pragma once

#include <span>
#include <vector>

#include "apps/render/goes_on.h"
#include "core/math.h"

namespace coppice::render {

struct ParticleKernel {
  Vec3f center;
  Mat3f unit_from_world;  // takes the ellipsoid to the unit ball
  Vec3f half_size;        // of the box around it
  float peak;  // of peak * (1 - q^2)^3, whose integral is spacing^3, and up to twice that where it is thin
};

// Kernels reach no farther than this from their particles, in spacings.
inline constexpr float kKernelReach = 5.0f;

// Returns a kernel for each position; a particle with few neighbours, spray, has peak 0. `spacing_m` is
// the side of a cube of one particle's volume; positions are finite. Cost: some us of one core per
// particle, shared among all cores. The result depends on the order of the positions in its last bits,
// and not on the number of threads. As soon as `goes_on` returns false, the rest of the kernels is not
// computed.
std::vector<ParticleKernel> make_particle_kernels(std::span<const Vec3f> positions, float spacing_m,
                                                  const GoesOn& goes_on = {});

}  // namespace coppice::render
