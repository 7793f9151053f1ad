// The file reload.kernels.cc has this from a header, which kernel_reload_test.cc changes in a copy.
//
// Device-clean.
#pragma once

namespace coppice {

inline constexpr int kReloadStep = 100;

struct ReloadWeights {
  int first, second;
};
// The values of a field.
struct ReloadPair {
  int a, b;
};
// No kernel looks into it.
struct ReloadSealed {
  int inside;
};

}  // namespace coppice
