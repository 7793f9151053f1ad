// Device memory of the cpu device: a reserved range of virtual addresses, made accessible from its start;
// small ones are pieces of the heap, since a tree has dozens of them and the system limits how many ranges a
// process may have.
#pragma once
#include <optional>

#include "gpu/buffer.h"
#include "gpu/cpu/memory_limits.h"

namespace coppice {

struct DeviceContext;

class CpuBuffer final : public Buffer {
 public:
  // A buffer that may hold this much at most is a piece of the heap, and takes no mapping.
  static constexpr size_t kMostHeapBytes = size_t{64} << 10;

  // Errors: kOutOfMemory, which names the limit that was reached (memory_limits.h).
  CpuBuffer(size_t reserved_bytes, size_t initial_bytes, Filling filling);
  ~CpuBuffer() override;
  void grow(size_t size_bytes) override;
  void discard(size_t offset_bytes, size_t bytes) override;
  void shrink(size_t size_bytes) override;
  void release() override;
  // Announces it as a buffer of a device that kernels reach by its own address (gpu/buffer_ranges.h).
  void announce(size_t most_bytes, const DeviceContext& owner);

 private:
  bool is_on_heap() const { return !claim_; }
  void map(Filling filling);
  void unmap_beside_data();
  void commit(size_t size_bytes);
  void free_memory();
  void advise();

  std::byte* mapped_ = nullptr;  // or from the heap, as it was given
  size_t mapped_bytes_ = 0;
  std::optional<MappingClaim> claim_;
  bool has_huge_pages_ = false;
  const DeviceContext* announced_to_ = nullptr;  // null: not announced
  size_t announced_bytes_ = 0;
};

}  // namespace coppice
