#define COPPICE_SIMT_HOST
#include "gpu/simt/symbols.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "gpu/simt/grid.h"

namespace {

using coppice::simt::Access;
using coppice::simt::AccessCall;
using coppice::simt::Grid;
using coppice::simt::Order;
using coppice::simt::Wait;

constexpr size_t kPiece = 64;  // of a copy or fill

// Says, in a function that a kernel calls, what it accesses.
#define COPPICE_ACCESS_CALL(kind) \
  AccessCall { address, bytes, Access::kind, site, __builtin_return_address(0) }

void load(Grid& grid, const AccessCall& call, void* to, Order order) {
  if (grid.is_shared(call.address)) {
    grid.use_shared(call, true, false);
    grid.pass_on(order);
    std::memcpy(to, call.address, call.bytes);
    return;
  }
  const void* const at = grid.reach(call);
  if (grid.is_on_stack(at))
    std::memcpy(to, at, call.bytes);
  else
    grid.memory().load(grid.running().number, at, to, call.bytes, order);
}

template <class T>
T load_acquire(const AccessCall& call) {
  Grid& grid = Grid::current();
  grid.point();
  T value;
  load(grid, call, &value, Order::kAcquire);
  return value;
}

void store(Grid& grid, const AccessCall& call, const void* from, Order order) {
  bool changed = true;
  if (grid.is_shared(call.address)) {
    grid.use_shared(call, false, true);
    grid.pass_on(order);
  } else {
    void* const at = grid.reach(call);
    if (!grid.is_on_stack(at)) {
      changed = grid.memory().store(grid.running().number, at, from, call.bytes, order);
      if (changed) grid.made_progress();
      return;
    }
  }
  void* const at = const_cast<void*>(call.address);
  changed = std::memcmp(at, from, call.bytes) != 0;
  std::memcpy(at, from, call.bytes);
  if (changed) grid.made_progress();
}

// Does a read-modify-write with acquire and release: update(where) says whether it wrote, and what it
// found.
template <class Update>
void update(Grid& grid, const AccessCall& call, Update&& update) {
  void* at = const_cast<void*>(call.address);
  const bool is_shared = grid.is_shared(at);
  grid.point();
  const uint32_t thread = grid.running().number;
  if (is_shared) {
    grid.use_shared(call, true, true);
    grid.pass_on(Order::kAcquireRelease);
  } else {
    at = grid.reach(call);
    grid.memory().before_update(thread, at, call.bytes, Order::kAcquireRelease);
  }
  const auto [wrote, changed] = update(static_cast<uint32_t*>(at));
  if (wrote && !is_shared) grid.memory().after_update(thread, at, call.bytes, Order::kAcquireRelease);
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

uint32_t coppice_simt_load_acquire_u32(const uint32_t* address, const CoppiceSimtSite* site) {
  constexpr uint32_t bytes = 4;
  return load_acquire<uint32_t>(COPPICE_ACCESS_CALL(kAtomic));
}
uint64_t coppice_simt_load_acquire_u64(const uint64_t* address, const CoppiceSimtSite* site) {
  constexpr uint32_t bytes = 8;
  return load_acquire<uint64_t>(COPPICE_ACCESS_CALL(kAtomic));
}

void coppice_simt_store_release_u32(uint32_t* address, uint32_t value, const CoppiceSimtSite* site) {
  constexpr uint32_t bytes = 4;
  Grid& grid = Grid::current();
  grid.point();
  store(grid, COPPICE_ACCESS_CALL(kAtomic), &value, Order::kRelease);
}

uint32_t coppice_simt_compare_exchange_u32(uint32_t* address, uint32_t expected, uint32_t desired,
                                           const CoppiceSimtSite* site) {
  constexpr uint32_t bytes = 4;
  const uint32_t wanted = expected;
  update(Grid::current(), COPPICE_ACCESS_CALL(kAtomic), [&](uint32_t* at) {
    const bool stored =
        __atomic_compare_exchange_n(at, &expected, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    return std::pair(stored, stored && desired != wanted);
  });
  return expected;
}

uint32_t coppice_simt_exchange_u32(uint32_t* address, uint32_t value, const CoppiceSimtSite* site) {
  constexpr uint32_t bytes = 4;
  uint32_t old = 0;
  update(Grid::current(), COPPICE_ACCESS_CALL(kAtomic), [&](uint32_t* at) {
    old = __atomic_exchange_n(at, value, __ATOMIC_ACQ_REL);
    return std::pair(true, old != value);
  });
  return old;
}

void coppice_simt_fence() {
  Grid& grid = Grid::current();
  grid.point();
  grid.memory().fence(grid.running().number);
}
void coppice_simt_fence_sequentially() {
  Grid& grid = Grid::current();
  grid.point();
  grid.memory().fence_sequentially(grid.running().number);
}

void coppice_simt_pause() { Grid::current().pause(); }

void coppice_simt_load(const void* address, void* to, uint32_t bytes, const CoppiceSimtSite* site) {
  Grid& grid = Grid::current();
  grid.access_point();
  load(grid, COPPICE_ACCESS_CALL(kLoad), to, Order::kPlain);
}
void coppice_simt_load_relaxed(const void* address, void* to, uint32_t bytes, const CoppiceSimtSite* site) {
  Grid& grid = Grid::current();
  grid.point();
  load(grid, COPPICE_ACCESS_CALL(kAtomic), to, Order::kRelaxed);
}

void coppice_simt_store(void* address, const void* from, uint32_t bytes, const CoppiceSimtSite* site) {
  Grid& grid = Grid::current();
  grid.access_point();
  store(grid, COPPICE_ACCESS_CALL(kStore), from, Order::kPlain);
}
void coppice_simt_store_relaxed(void* address, const void* from, uint32_t bytes,
                                const CoppiceSimtSite* site) {
  Grid& grid = Grid::current();
  grid.point();
  store(grid, COPPICE_ACCESS_CALL(kAtomic), from, Order::kRelaxed);
}

void coppice_simt_load_later(const void* address, void* to, uint32_t bytes, bool relaxed,
                             const CoppiceSimtSite* site) {
  Grid& grid = Grid::current();
  relaxed ? grid.point() : grid.access_point();
  const AccessCall call = relaxed ? COPPICE_ACCESS_CALL(kAtomic) : COPPICE_ACCESS_CALL(kLoad);
  const Order order = relaxed ? Order::kRelaxed : Order::kPlain;
  if (grid.is_shared(address) || grid.is_on_stack(address)) return load(grid, call, to, order);
  grid.memory().load_later(grid.running().number, grid.reach(call), to, bytes, order);
}
void coppice_simt_await(const void* to) {
  Grid& grid = Grid::current();
  const uint32_t thread = grid.running().number;
  if (!grid.memory().is_deferred(thread, to)) return;
  grid.point();
  grid.memory().await(thread, to);
}

void coppice_simt_copy(void* to, const void* from, size_t bytes, const CoppiceSimtSite* site) {
  Grid& grid = Grid::current();
  unsigned char piece[kPiece];
  const void* const code = __builtin_return_address(0);
  // If the two ranges overlap, bytes are read before they are written over.
  const bool backward = reinterpret_cast<uintptr_t>(to) - reinterpret_cast<uintptr_t>(from) < bytes;
  for (size_t done = 0; done < bytes;) {
    const size_t n = std::min(bytes - done, kPiece);
    const size_t at = backward ? bytes - done - n : done;
    grid.access_point();
    load(grid, {static_cast<const unsigned char*>(from) + at, n, Access::kLoad, site, code}, piece,
         Order::kPlain);
    store(grid, {static_cast<unsigned char*>(to) + at, n, Access::kStore, site, code}, piece, Order::kPlain);
    done += n;
  }
}

void coppice_simt_fill(void* to, int byte, size_t bytes, const CoppiceSimtSite* site) {
  Grid& grid = Grid::current();
  unsigned char piece[kPiece];
  const void* const code = __builtin_return_address(0);
  std::memset(piece, byte, sizeof piece);
  for (size_t done = 0; done < bytes; done += kPiece) {
    grid.access_point();
    store(
        grid,
        {static_cast<unsigned char*>(to) + done, std::min(bytes - done, kPiece), Access::kStore, site, code},
        piece, Order::kPlain);
  }
}

void* coppice_simt_atomic(const void* address, uint32_t bytes, const CoppiceSimtSite* site) {
  Grid& grid = Grid::current();
  grid.point();
  void* at = const_cast<void*>(address);
  const bool is_shared = grid.is_shared(at);
  if (is_shared)
    grid.use_shared(COPPICE_ACCESS_CALL(kAtomic), true, true);
  else
    at = grid.reach(COPPICE_ACCESS_CALL(kAtomic));
  const bool is_elsewhere = !is_shared && !grid.is_on_stack(at);
  if (is_elsewhere) grid.memory().before_update(grid.running().number, at, bytes, Order::kRelaxed);
  grid.watch(at, bytes, !is_elsewhere);
  return at;
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
      COPPICE_SYMBOL(coppice_simt_load_acquire_u64),
      COPPICE_SYMBOL(coppice_simt_store_release_u32),
      COPPICE_SYMBOL(coppice_simt_compare_exchange_u32),
      COPPICE_SYMBOL(coppice_simt_exchange_u32),
      COPPICE_SYMBOL(coppice_simt_fence),
      COPPICE_SYMBOL(coppice_simt_fence_sequentially),
      COPPICE_SYMBOL(coppice_simt_pause),
      COPPICE_SYMBOL(coppice_simt_load),
      COPPICE_SYMBOL(coppice_simt_store),
      COPPICE_SYMBOL(coppice_simt_load_relaxed),
      COPPICE_SYMBOL(coppice_simt_store_relaxed),
      COPPICE_SYMBOL(coppice_simt_load_later),
      COPPICE_SYMBOL(coppice_simt_await),
      COPPICE_SYMBOL(coppice_simt_copy),
      COPPICE_SYMBOL(coppice_simt_fill),
      COPPICE_SYMBOL(coppice_simt_atomic),
      COPPICE_SYMBOL(coppice_simt_constants),
  };
#undef COPPICE_SYMBOL
  return {kAll, std::size(kAll)};
}

}  // namespace coppice::simt
