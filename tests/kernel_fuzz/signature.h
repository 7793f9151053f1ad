// The type of a generated kernel, by its shape (shapes.py): what clang compiles it as,
// and what the host launches it as.
//
// Device-clean.
#pragma once
#include "sparse/device/handles.h"

namespace coppice::kernel_fuzz {

template <bool kTable, class Place, class... Handles>
struct Signature {
  using Type = void(Handles..., Place, int32_t, float);
};
template <class Place, class... Handles>
struct Signature<true, Place, Handles...> {
  using Type = void(Handles..., Place, int32_t, float, const int32_t*);
};
template <class Place, class... Handles>
using ArraySignature = void(Handles..., Place, int32_t, float, const int32_t*, const float*, const double*,
                            int32_t*, float*, double*);
template <class... Handles>
struct Signature<true, Item, Handles...> {
  using Type = ArraySignature<Item, Handles...>;
};
template <class... Handles>
struct Signature<true, Team, Handles...> {
  using Type = ArraySignature<Team, Handles...>;
};

}  // namespace coppice::kernel_fuzz
