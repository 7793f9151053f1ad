// Finds which memory a launch may reach by pointers, for COPPICE_DEBUG=checks: from what it uses (uses.h)
// and where its arguments lead (gpu/memory_uses.h has the table's form).
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "gpu/device.h"
#include "gpu/launch_uses.h"
#include "gpu/memory_uses.h"

namespace coppice {

class TreeStorage;

// Holds a table in device memory. All tables that there are are known, for they are no memory of a
// kernel's.
class MemoryUseTable final : public RefCounted {
 public:
  explicit MemoryUseTable(IntrusivePtr<Buffer> given);
  ~MemoryUseTable() override;
  static bool is_one(uintptr_t address);
  const IntrusivePtr<Buffer> buffer;
};

// Keeps the tables of a Program's launches, each for as long as launches like it come. Thread-compatible.
class MemoryUseTables {
 public:
  // Returns the table of a launch with these plain arguments. A buffer counts with what it can grow to.
  // Cost: a look at all buffers of the process, and where no launch had the same table, a copy to the
  // device.
  IntrusivePtr<MemoryUseTable> wait_table(Device& device, const LaunchUses& uses,
                                          std::span<const unsigned char> arguments,
                                          std::span<const TemporaryArgument> temporaries,
                                          std::span<TreeStorage* const> trees);

 private:
  static constexpr size_t kMostTables = 64;
  std::unordered_map<std::string, IntrusivePtr<MemoryUseTable>> tables_;  // by what is in them
};

// Returns what an address is in: a field, a tree, a buffer and where in it, or no buffer. In an arena, it is
// the nearest of the temporaries.
std::string name_of_address(uint64_t address, std::span<TreeStorage* const> trees,
                            std::span<const TemporaryArgument> temporaries);

}  // namespace coppice
