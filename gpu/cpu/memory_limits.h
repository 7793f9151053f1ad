// Watches what the system lets the process have besides memory: mappings (vm.max_map_count) and addresses
// (RLIMIT_AS).
//
// Buffers leave some of both over for those that fail badly without: a thread whose stack cannot be mapped
// never starts, and oneTBB waits for it; LLVM ends the process. Thread-safe.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace coppice {

// Counts the mappings of one buffer, for as long as it has them. Cost: now and then a look at all mappings
// of the process.
class MappingClaim {
 public:
  // A range has two mappings at most: a part that is accessible and one that is not.
  static constexpr uint64_t kMappings = 2;

  // Claims mappings for a buffer of `bytes`. Errors: kOutOfMemory where a sixteenth of the process'
  // mappings, or of its addresses, would not be left over.
  explicit MappingClaim(size_t bytes);
  ~MappingClaim();
  MappingClaim(const MappingClaim&) = delete;
  MappingClaim& operator=(const MappingClaim&) = delete;
};

// Returns zeros from the heap. Errors: kOutOfMemory, also where they took addresses that are to be left
// over.
void* allocate_zeros(size_t bytes);

// Reports that `what` ("reserve", "commit") failed for a buffer of `bytes`, with this errno. Errors:
// kOutOfMemory, which names the limit that was reached and how to raise it.
[[noreturn]] void throw_out_of_memory(const char* what, size_t bytes, int error);

// Returns what is to be added to "there is no memory": "; the process has 290000 KiB of addresses of at most
// 300000 KiB (ulimit -v); raise that limit" where that limit is near, else "".
std::string near_address_limit();

// Sets, for tests, how many mappings the process may have; 0: what the system says.
void set_most_mappings(uint64_t mappings);

}  // namespace coppice
