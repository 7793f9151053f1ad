#define COPPICE_SIMT_HOST
#include "gpu/simt/symbols.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "gpu/simt/grid.h"

namespace {

using coppice::simt::Access;
using coppice::simt::Grid;
using coppice::simt::View;
using coppice::simt::Wait;

constexpr size_t kPiece = 64;  // of a copy or fill

// An acquire and release access: what this thread's multiprocessor stored goes first, what it may see of old
// values goes with it. Returns where to access.
template <class T>
T* ordered(Grid& grid, T* address, const void* site) {
  T* const at = grid.reach(address, 4, Access::kAtomic, site);
  grid.point();
  View& view = grid.view();
  view.release();
  view.settle(at, 4);
  view.acquire();
  return at;
}

void load(Grid& grid, const void* address, void* to, size_t bytes, const void* site) {
  if (grid.is_private(address)) {
    std::memcpy(to, address, bytes);
  } else {
    grid.view().load(grid.reach(address, bytes, Access::kLoad, site), to, bytes);
  }
}

void store(Grid& grid, void* address, const void* from, size_t bytes, const void* site) {
  bool changed;
  if (grid.is_private(address)) {
    changed = std::memcmp(address, from, bytes) != 0;
    std::memcpy(address, from, bytes);
  } else {
    changed = grid.view().store(grid.reach(address, bytes, Access::kStore, site), from, bytes);
  }
  if (changed) grid.made_progress();
}

}  // namespace

extern "C" {

uint32_t coppice_simt_lane() { return Grid::current().running().lane; }
uint32_t coppice_simt_lane_count() {
  return static_cast<uint32_t>(Grid::current().options().threads_per_block);
}
void* coppice_simt_shared_memory() { return Grid::current().shared_memory(); }
uint32_t coppice_simt_warp_lane() { return Grid::current().running().lane % 32; }

void coppice_simt_block_barrier() {
  const void* const site = __builtin_return_address(0);
  Grid::current().block_barrier(site, reinterpret_cast<uint64_t>(site));
}
void coppice_simt_numbered_barrier(uint32_t number) {
  Grid::current().block_barrier(__builtin_return_address(0), number);
}

uint32_t coppice_simt_active_mask() { return Grid::current().active_mask(__builtin_return_address(0)); }

uint32_t coppice_simt_match_any_u64(uint32_t mask, uint64_t value) {
  return Grid::current().meet(Wait::kMatchAny, {mask, value, 0}, __builtin_return_address(0));
}

uint32_t coppice_simt_ballot(uint32_t mask, bool predicate) {
  return Grid::current().meet(Wait::kBallot, {mask, predicate, 0}, __builtin_return_address(0));
}

uint32_t coppice_simt_shuffle_u32(uint32_t mask, uint32_t value, uint32_t lane) {
  return Grid::current().meet(Wait::kShuffle, {mask, value, lane}, __builtin_return_address(0));
}

void coppice_simt_warp_barrier(uint32_t mask) {
  Grid::current().meet(Wait::kWarpBarrier, {mask, 0, 0}, __builtin_return_address(0));
}

uint32_t coppice_simt_load_acquire_u32(const uint32_t* address) {
  Grid& grid = Grid::current();
  const uint32_t* at = grid.reach(address, 4, Access::kAtomic, __builtin_return_address(0));
  grid.point();
  grid.view().settle(at, 4);
  const uint32_t value = __atomic_load_n(at, __ATOMIC_ACQUIRE);
  grid.view().acquire();
  return value;
}

void coppice_simt_store_release_u32(uint32_t* address, uint32_t value) {
  Grid& grid = Grid::current();
  uint32_t* const at = grid.reach(address, 4, Access::kAtomic, __builtin_return_address(0));
  grid.point();
  grid.view().release();
  grid.view().settle(at, 4);
  if (__atomic_exchange_n(at, value, __ATOMIC_RELEASE) != value) grid.made_progress();
}

uint32_t coppice_simt_compare_exchange_u32(uint32_t* address, uint32_t expected, uint32_t desired) {
  Grid& grid = Grid::current();
  uint32_t* const at = ordered(grid, address, __builtin_return_address(0));
  const uint32_t wanted = expected;
  const bool stored =
      __atomic_compare_exchange_n(at, &expected, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  if (stored && desired != wanted) grid.made_progress();
  return expected;
}

uint32_t coppice_simt_exchange_u32(uint32_t* address, uint32_t value) {
  Grid& grid = Grid::current();
  uint32_t* const at = ordered(grid, address, __builtin_return_address(0));
  const uint32_t old = __atomic_exchange_n(at, value, __ATOMIC_ACQ_REL);
  if (old != value) grid.made_progress();
  return old;
}

void coppice_simt_fence() {
  Grid& grid = Grid::current();
  grid.point();
  grid.view().release();
  grid.view().acquire();
}

void coppice_simt_pause() { Grid::current().pause(); }

void coppice_simt_load(const void* address, void* to, uint32_t bytes) {
  Grid& grid = Grid::current();
  grid.access_point();
  load(grid, address, to, bytes, __builtin_return_address(0));
}

void coppice_simt_store(void* address, const void* from, uint32_t bytes) {
  Grid& grid = Grid::current();
  grid.access_point();
  store(grid, address, from, bytes, __builtin_return_address(0));
}

void coppice_simt_copy(void* to, const void* from, size_t bytes) {
  Grid& grid = Grid::current();
  unsigned char piece[kPiece];
  // Where they overlap, bytes are read before they are written over.
  const bool backward = reinterpret_cast<uintptr_t>(to) - reinterpret_cast<uintptr_t>(from) < bytes;
  for (size_t done = 0; done < bytes;) {
    const size_t n = std::min(bytes - done, kPiece);
    const size_t at = backward ? bytes - done - n : done;
    grid.access_point();
    load(grid, static_cast<const unsigned char*>(from) + at, piece, n, __builtin_return_address(0));
    store(grid, static_cast<unsigned char*>(to) + at, piece, n, __builtin_return_address(0));
    done += n;
  }
}

void coppice_simt_fill(void* to, int byte, size_t bytes) {
  Grid& grid = Grid::current();
  unsigned char piece[kPiece];
  std::memset(piece, byte, sizeof piece);
  for (size_t done = 0; done < bytes; done += kPiece) {
    grid.access_point();
    store(grid, static_cast<unsigned char*>(to) + done, piece, std::min(bytes - done, kPiece),
          __builtin_return_address(0));
  }
}

void* coppice_simt_atomic(const void* address, uint32_t bytes) {
  Grid& grid = Grid::current();
  const bool is_private = grid.is_private(address);
  const void* at =
      is_private ? address : grid.reach(address, bytes, Access::kAtomic, __builtin_return_address(0));
  grid.point();
  if (!is_private) grid.view().settle(at, bytes);
  grid.watch(at, bytes);
  return const_cast<void*>(at);
}

void coppice_simt_constants(const CoppiceSimtConstant* all, uint64_t count) {
  Grid::current().set_constants(all, count);
}

}  // extern "C"

namespace coppice::simt {

SymbolTable symbols() {
#define COPPICE_SYMBOL(name) \
  { #name, reinterpret_cast < void*>(&name) }
  static const Symbol kAll[] = {
      COPPICE_SYMBOL(coppice_simt_lane),
      COPPICE_SYMBOL(coppice_simt_lane_count),
      COPPICE_SYMBOL(coppice_simt_block_barrier),
      COPPICE_SYMBOL(coppice_simt_numbered_barrier),
      COPPICE_SYMBOL(coppice_simt_shared_memory),
      COPPICE_SYMBOL(coppice_simt_warp_lane),
      COPPICE_SYMBOL(coppice_simt_active_mask),
      COPPICE_SYMBOL(coppice_simt_match_any_u64),
      COPPICE_SYMBOL(coppice_simt_ballot),
      COPPICE_SYMBOL(coppice_simt_shuffle_u32),
      COPPICE_SYMBOL(coppice_simt_warp_barrier),
      COPPICE_SYMBOL(coppice_simt_load_acquire_u32),
      COPPICE_SYMBOL(coppice_simt_store_release_u32),
      COPPICE_SYMBOL(coppice_simt_compare_exchange_u32),
      COPPICE_SYMBOL(coppice_simt_exchange_u32),
      COPPICE_SYMBOL(coppice_simt_fence),
      COPPICE_SYMBOL(coppice_simt_pause),
      COPPICE_SYMBOL(coppice_simt_load),
      COPPICE_SYMBOL(coppice_simt_store),
      COPPICE_SYMBOL(coppice_simt_copy),
      COPPICE_SYMBOL(coppice_simt_fill),
      COPPICE_SYMBOL(coppice_simt_atomic),
      COPPICE_SYMBOL(coppice_simt_constants),
  };
#undef COPPICE_SYMBOL
  return {kAll, std::size(kAll)};
}

}  // namespace coppice::simt
