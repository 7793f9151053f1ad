// Defines what a launch does to something that it uses, as flags (gpu/launch_uses.h).
//
// Device-clean: with COPPICE_DEBUG=checks kernels compare what they do with what their launch's uses say.
#pragma once
#include <stdint.h>

namespace coppice::effect {

inline constexpr uint32_t kReads = 1;
inline constexpr uint32_t kStores = 2;    // values that do not depend on what was there
inline constexpr uint32_t kChanges = 4;   // in place, or by atomic operations: twice is not once
inline constexpr uint32_t kAdds = 8;      // atomically
inline constexpr uint32_t kAppends = 16;  // to lists, or sets elements of them
inline constexpr uint32_t kActivates = 32;
inline constexpr uint32_t kDeactivates = 64;  // cells, or empties lists
inline constexpr uint32_t kTests = 128;       // asks which cells are active
inline constexpr uint32_t kChangesTopology = kAppends | kActivates | kDeactivates;

}  // namespace coppice::effect
