// The address space and the memory of a fake GPU (fake_driver.h): ranges reserved without access, memory
// mapped into them, readable only while Access lives.
//
// Thread-compatible.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gpu/cuda/driver.h"

namespace coppice::fake {

class FakeMemory {
 public:
  FakeMemory(size_t granule_bytes, size_t total_bytes);
  ~FakeMemory();
  FakeMemory(const FakeMemory&) = delete;

  // As the driver's functions of these names; what is against their rules is told in `problem`.
  cuda::Result reserve(uintptr_t* at, size_t bytes);
  cuda::Result free_range(uintptr_t at, size_t bytes, std::string& problem);
  cuda::Result create(uint64_t* handle, size_t bytes, std::string& problem);
  cuda::Result release(uint64_t handle, std::string& problem);
  cuda::Result map(uintptr_t at, size_t bytes, uint64_t handle, std::string& problem);
  cuda::Result unmap(uintptr_t at, size_t bytes, std::string& problem);
  cuda::Result allow(uintptr_t at, size_t bytes, std::string& problem);

  bool is_reserved(uintptr_t at) const;
  bool is_accessible(uintptr_t at, size_t bytes) const;
  size_t used_bytes() const { return used_; }
  size_t total_bytes() const { return total_; }
  std::string leaks() const;

  class Access {
   public:
    explicit Access(FakeMemory& memory) : memory_(memory) { memory_.protect(true); }
    ~Access() { memory_.protect(false); }
    Access(const Access&) = delete;

   private:
    FakeMemory& memory_;
  };

 private:
  struct Physical {
    size_t offset, bytes;
    bool is_mapped = false, is_released = false;
  };
  struct Mapping {
    size_t bytes;
    uint64_t handle;
    bool is_accessible = false;
  };
  void protect(bool is_accessible);
  void forget_if_unused(uint64_t handle);

  const size_t granule_, total_;
  int file_ = -1;
  size_t file_bytes_ = 0, used_ = 0;
  uint64_t next_handle_ = 1;
  std::map<uintptr_t, size_t> ranges_;
  std::map<uintptr_t, Mapping> mappings_;
  std::map<uint64_t, Physical> memories_;
};

}  // namespace coppice::fake
