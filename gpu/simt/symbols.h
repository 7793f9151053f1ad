// Declares what code compiled for the emulated GPU calls: the device intrinsics (gpu/device_intrinsics.h)
// and, for every access to memory that may be shared, the thread's view of it. All of it is called on a
// thread of a running Machine only.
//
// Device-clean: gpu/device/simt.device.cc is compiled against it to bitcode, gpu/simt/symbols.cc defines it.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "core/device_macros.h"

// Says where in a kernel's source an access is, and how aligned it claims to be. The pass that makes the
// calls fills it in; null where nothing is known.
struct CoppiceSimtSite {
  const char* place;   // "function at file:line"
  uint32_t alignment;  // of the address, in bytes
  uint32_t reserved;
};

extern "C" {
uint32_t coppice_simt_lane();
uint32_t coppice_simt_lane_count();
COPPICE_CONVERGENT void coppice_simt_block_barrier();
// This is a barrier that all threads come to, however many calls of it there are in the code.
COPPICE_CONVERGENT void coppice_simt_numbered_barrier(uint32_t number);
void* coppice_simt_shared_memory();

uint32_t coppice_simt_warp_lane();
uint32_t coppice_simt_active_mask();
uint32_t coppice_simt_match_any_u64(uint32_t mask, uint64_t value);
uint32_t coppice_simt_ballot(uint32_t mask, bool predicate);
uint32_t coppice_simt_shuffle_u32(uint32_t mask, uint32_t value, uint32_t lane);
COPPICE_CONVERGENT void coppice_simt_warp_barrier(uint32_t mask);

uint32_t coppice_simt_load_acquire_u32(const uint32_t* address, const CoppiceSimtSite* site = nullptr);
uint64_t coppice_simt_load_acquire_u64(const uint64_t* address, const CoppiceSimtSite* site = nullptr);
void coppice_simt_store_release_u32(uint32_t* address, uint32_t value, const CoppiceSimtSite* site = nullptr);
uint32_t coppice_simt_compare_exchange_u32(uint32_t* address, uint32_t expected, uint32_t desired,
                                           const CoppiceSimtSite* site = nullptr);  // acq_rel
uint32_t coppice_simt_exchange_u32(uint32_t* address, uint32_t value,
                                   const CoppiceSimtSite* site = nullptr);  // acq_rel
void coppice_simt_fence();                                                  // acq_rel
void coppice_simt_fence_sequentially();                                     // seq_cst
void coppice_simt_pause();

// Makes a plain (weak) access of `bytes` at `address`, or a relaxed atomic one of at most 8: `to` and
// `from` are the thread's own.
void coppice_simt_load(const void* address, void* to, uint32_t bytes, const CoppiceSimtSite* site = nullptr);
void coppice_simt_store(void* address, const void* from, uint32_t bytes,
                        const CoppiceSimtSite* site = nullptr);
void coppice_simt_load_relaxed(const void* address, void* to, uint32_t bytes,
                               const CoppiceSimtSite* site = nullptr);
void coppice_simt_store_relaxed(void* address, const void* from, uint32_t bytes,
                                const CoppiceSimtSite* site = nullptr);
// Makes a load of at most 8 bytes whose value nobody looks at before coppice_simt_await(to).
void coppice_simt_load_later(const void* address, void* to, uint32_t bytes, bool relaxed,
                             const CoppiceSimtSite* site = nullptr);
void coppice_simt_await(const void* to);
void coppice_simt_copy(void* to, const void* from, size_t bytes,
                       const CoppiceSimtSite* site = nullptr);  // memcpy, memmove
void coppice_simt_fill(void* to, int byte, size_t bytes, const CoppiceSimtSite* site = nullptr);  // memset
// Comes right before every read-modify-write of LLVM's, all of which are relaxed on a GPU: a place where
// others may run, after which memory holds what this thread wrote there. Returns where the instruction is to
// find it (address.h).
void* coppice_simt_atomic(const void* address, uint32_t bytes, const CoppiceSimtSite* site = nullptr);
// Comes first in a kernel's entry: the constants that its code came with.
struct CoppiceSimtConstant {
  const void* address;
  uint64_t bytes;
};
void coppice_simt_constants(const struct CoppiceSimtConstant* all, uint64_t count);
}

#ifdef COPPICE_SIMT_HOST
namespace coppice::simt {

struct Symbol {
  const char* name;
  void* function;
};
struct SymbolTable {
  const Symbol* first;
  size_t count;
  const Symbol* begin() const { return first; }
  const Symbol* end() const { return first + count; }
};
// Returns all the above, for the code loader.
SymbolTable symbols();

}  // namespace coppice::simt
#endif
