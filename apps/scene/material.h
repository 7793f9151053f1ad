// The materials of the MLS-MPM solver with their parameters, as a scene states them.
//
// A MaterialParameters value is one entry of the solver's material table; emitters with equal parameters
// share it. The defaults are softer than the real thing: the time step goes with the inverse speed of sound.
#pragma once

#include <span>
#include <string_view>
#include <variant>

#include "apps/scene/material_kind.h"

namespace coppice::scene {

// Returns the spellings of a scene file, in the order of the enumerators.
std::span<const std::string_view> enum_names(MaterialKind);
std::span<const std::string_view> enum_names(BoundaryKind);

// Stomakhin et al., "A material point method for snow simulation" (2013): fixed corotated elasticity whose
// stiffness grows by exp(hardening * (1 - J_plastic)); singular values of F leave [1 - theta_c, 1 + theta_s]
// plastically.
struct SnowParameters {
  double density_kg_m3 = 400.0;
  double youngs_modulus_Pa = 1.0e5;
  double poisson_ratio = 0.2;
  double theta_c = 0.025;
  double theta_s = 0.0075;
  double hardening = 10.0;
  bool operator==(const SnowParameters&) const = default;
};

// Neo-Hookean elasticity.
struct JellyParameters {
  double density_kg_m3 = 1000.0;
  double youngs_modulus_Pa = 5.0e4;
  double poisson_ratio = 0.3;
  bool operator==(const JellyParameters&) const = default;
};

// Tait's equation of state: p = bulk_modulus / gamma * (J^-gamma - 1).
struct WaterParameters {
  double density_kg_m3 = 1000.0;
  double bulk_modulus_Pa = 1.0e5;
  double gamma = 7.0;
  double viscosity_Pa_s = 0.0;
  double tension = 0.0;
  bool operator==(const WaterParameters&) const = default;
};

// Klar et al., "Drucker-Prager elastoplasticity for sand animation" (2016), without hardening and cohesion;
// in 3-D with Matsuoka and Nakai's yield surface (1974).
struct SandParameters {
  double density_kg_m3 = 1600.0;
  double youngs_modulus_Pa = 1.0e5;
  double poisson_ratio = 0.3;
  double friction_angle_deg = 35.0;
  bool operator==(const SandParameters&) const = default;
};

// Von Mises' plasticity.
struct ClayParameters {
  double density_kg_m3 = 1800.0;
  double youngs_modulus_Pa = 5.0e5;
  double poisson_ratio = 0.35;
  double yield_stress_Pa = 4.0e3;
  bool operator==(const ClayParameters&) const = default;
};

// The same with Bingham's viscosity.
struct MudParameters {
  double density_kg_m3 = 1500.0;
  double youngs_modulus_Pa = 2.0e5;
  double poisson_ratio = 0.4;
  double yield_stress_Pa = 100.0;
  double viscosity_Pa_s = 20.0;
  bool operator==(const MudParameters&) const = default;
};

using MaterialParameters = std::variant<JellyParameters, SnowParameters, WaterParameters, SandParameters,
                                        ClayParameters, MudParameters>;

// The alternatives stand in the order of MaterialKind.
MaterialKind kind_of_material(const MaterialParameters& material);
double density_kg_m3(const MaterialParameters& material);
// Speed of pressure waves in the undeformed material, m/s: sqrt((lambda + 2 mu) / density), or sqrt(K /
// density).
double sound_speed_m_s(const MaterialParameters& material);

}  // namespace coppice::scene
