// The fast memory of one thread block of the emulated GPU, and who did what to it: reads of what nobody wrote
// and races between barriers are found.
//
// A race is two accesses to a byte by two threads, one of them a store, not both atomic, of which neither
// thread knew what the other had done (weak_memory.h): no barrier of the block, of the warp with both in its
// mask, and no release and acquire lies between them. Accesses are kept for one interval between barriers of
// the block.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "gpu/simt/symbols.h"
#include "gpu/simt/weak_memory.h"

namespace coppice::simt {

enum class Access : uint8_t { kLoad, kStore, kAtomic };

struct AlignedDelete {
  void operator()(unsigned char* bytes) const;
};

class SharedMemory {
 public:
  struct Use {
    uint32_t thread;  // among the grid's
    uint32_t event;
    uint8_t bytes;  // of a word, a bit each
    Access access;
    const CoppiceSimtSite* site;
  };

  void begin_launch(uint32_t bytes);
  void begin_block();  // fresh memory, which nobody may take for zeros
  void pass_barrier() { ++interval_; }

  void* data() const { return size_ == 0 ? nullptr : bytes_.get(); }
  bool holds(const void* address) const { return offset_of(address) < size_; }
  uintptr_t offset_of(const void* address) const {
    return reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(bytes_.get());
  }

  // Returns whether any of the bytes was ever written. In a copy of a struct some are padding.
  bool is_written(uintptr_t offset, size_t bytes) const;
  void note_written(uintptr_t offset, size_t bytes);
  // Returns the earlier access that this one races with.
  std::optional<Use> find_race(uintptr_t offset, size_t bytes, const Use& use, const WeakMemory& memory);

 private:
  struct Word {
    uint64_t interval = 0;
    std::vector<Use> uses;  // of that interval, the last one of a thread and kind
  };

  std::unique_ptr<unsigned char[], AlignedDelete> bytes_;
  uint32_t size_ = 0;
  std::vector<bool> written_;
  std::vector<Word> words_;
  uint64_t interval_ = 1;
};

}  // namespace coppice::simt
