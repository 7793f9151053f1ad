// Material names, densities and wave speeds.
#include "apps/scene/material.h"

#include <array>
#include <cmath>
#include <type_traits>

namespace coppice::scene {

std::span<const std::string_view> enum_names(MaterialKind) {
  static constexpr std::array<std::string_view, 6> kNames{"jelly", "snow", "water", "sand", "clay", "mud"};
  return kNames;
}

std::span<const std::string_view> enum_names(BoundaryKind) {
  static constexpr std::array<std::string_view, 3> kNames{"stick", "slip", "separate"};
  return kNames;
}

namespace {

// lambda + 2 mu in terms of Young's modulus and Poisson's ratio.
double p_wave_modulus_Pa(double youngs_modulus_Pa, double nu) {
  return youngs_modulus_Pa * (1.0 - nu) / ((1.0 + nu) * (1.0 - 2.0 * nu));
}

template <MaterialKind kKind, class Parameters>
constexpr bool kIsAlternative =
    std::is_same_v<std::variant_alternative_t<static_cast<std::size_t>(kKind), MaterialParameters>,
                   Parameters>;
static_assert(kIsAlternative<MaterialKind::kJelly, JellyParameters>);
static_assert(kIsAlternative<MaterialKind::kSnow, SnowParameters>);
static_assert(kIsAlternative<MaterialKind::kWater, WaterParameters>);
static_assert(kIsAlternative<MaterialKind::kSand, SandParameters>);
static_assert(kIsAlternative<MaterialKind::kClay, ClayParameters>);
static_assert(kIsAlternative<MaterialKind::kMud, MudParameters>);

}  // namespace

MaterialKind kind_of_material(const MaterialParameters& material) {
  return static_cast<MaterialKind>(material.index());
}

double density_kg_m3(const MaterialParameters& material) {
  return std::visit([](const auto& m) { return m.density_kg_m3; }, material);
}

double sound_speed_m_s(const MaterialParameters& material) {
  const auto modulus_Pa = [](const auto& m) {
    if constexpr (std::is_same_v<std::decay_t<decltype(m)>, WaterParameters>) {
      return m.bulk_modulus_Pa;
    } else {
      return p_wave_modulus_Pa(m.youngs_modulus_Pa, m.poisson_ratio);
    }
  };
  return std::sqrt(std::visit(modulus_Pa, material) / density_kg_m3(material));
}

}  // namespace coppice::scene
