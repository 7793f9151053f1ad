// Kernels of the tests of the emulated GPU: some right, some with a fault that only a GPU would show.
#include <string.h>

#include "coppice/kernel.h"

using namespace coppice;

struct Counter {
  uint32_t lock;
  uint32_t pad[31];  // elsewhere than the value
  uint64_t value;
};
// A value that is written under the lock must be seen by who takes it next: that is what a release is for.
constexpr int kPlainStore = 0, kRelaxedStore = 1;
COPPICE_KERNEL(count_under_lock, Item i, Counter* counter, int opened_by)
{
  (void)i;
  for (uint32_t turn = 0; coppice_compare_exchange_u32(&counter->lock, 0, 1) != 0; ++turn)
    coppice_pause(turn);
  counter->value += 1;
  if (opened_by == kPlainStore)
    *const_cast<volatile uint32_t*>(&counter->lock) = 0;
  else if (opened_by == kRelaxedStore)
    __atomic_store_n(&counter->lock, 0, __ATOMIC_RELAXED);
  else
    coppice_store_release_u32(&counter->lock, 0);
}
COPPICE_KERNEL(wait_in_a_branch, Item i, uint32_t* out)
{
  if (i.index % 3 == 1) coppice_block_barrier();
  out[i.index] = static_cast<uint32_t>(i.index);
}
// Every item writes what its neighbour in the block put into fast memory.
COPPICE_KERNEL(pass_on, Item i, uint32_t* out)
{
  auto* const shared = static_cast<uint32_t*>(coppice_shared_memory());
  const uint32_t lane = coppice_lane(), lanes = coppice_lane_count();
  shared[lane] = static_cast<uint32_t>(i.index) + 1000;
  coppice_block_barrier();
  out[i.index] = shared[(lane + 1) % lanes];
}
// The lanes that are there are asked for in a branch that some take.
COPPICE_KERNEL(elect, Item i, uint32_t* out, uint32_t* leaders)
{
  if (hash_u32(5, i.index) % 3 == 0) return;
  const uint32_t mask = coppice_active_mask();
  const uint32_t same = coppice_match_any_u64(mask, static_cast<uint64_t>(i.index) % 5);
  const uint32_t lane = coppice_warp_lane();
  const uint32_t leader = static_cast<uint32_t>(__builtin_ctz(same));
  out[i.index] = (same >> lane & 1) != 0 && coppice_shuffle_u32(same, lane, leader) == leader;
  if (lane == leader) coppice_fetch_add_u32(leaders, 1);
}

struct Odd {
  uint8_t a;
  uint64_t b;
  uint16_t c;
};
struct Wide {
  float values[40];
};
typedef float Float8 __attribute__((ext_vector_type(8), aligned(4)));
// Loads and stores of every kind that kernels have; what is fetched ahead may be nobody's memory.
COPPICE_KERNEL(copy_all, Item i, const Odd* odd, Odd* odd_to, const Wide* wide, Wide* wide_to,
               const bool* flags, bool* flags_to, const float* floats, float* floats_to,
               const unsigned char* bytes, unsigned char* bytes_to, int n)
{
  const int64_t k = i.index;
  __builtin_prefetch(odd + k + 1000000);
  odd_to[k] = odd[k];
  Wide local = wide[k];
  local.values[k % 40] += 1;
  wide_to[k] = local;
  flags_to[k] = !flags[k];
  *reinterpret_cast<Float8*>(floats_to + 8 * k) = *reinterpret_cast<const Float8*>(floats + 8 * k) * 2.0f;
  memset(bytes_to + n * k, 7, static_cast<size_t>(n));
  memcpy(bytes_to + n * k + 1, bytes + n * k, static_cast<size_t>(n - 2));
  memmove(bytes_to + n * k + 2, bytes_to + n * k + 1, static_cast<size_t>(n - 3));
  if (memcmp(bytes_to + n * k + 2, bytes + n * k, static_cast<size_t>(n - 3)) != 0) bytes_to[n * k] = 99;
}
COPPICE_KERNEL(note_number, Item i, uint64_t* numbers, int at)
{ numbers[at] = i.launch->number; }
// Not idempotent: what a block's kernel says happens once.
COPPICE_KERNEL(count_block2, Update<int> x, Accumulate<int> sum, Block2 block, int cells)
{
  for (int i = 0; i < cells; ++i) x.data(block)[i] += 1;
  sum.add(block, {0, 0}, 1);
}

// ---- what a GPU faults on, or takes for something else

COPPICE_KERNEL(read_misaligned, Item i, const unsigned char* bytes, uint32_t* out)
{ out[i.index] = *reinterpret_cast<const uint32_t*>(bytes + 1); }
struct __attribute__((packed)) Packed {
  unsigned char first;
  uint32_t second;
};
COPPICE_KERNEL(read_packed, Item i, const unsigned char* bytes, uint32_t* out)
{ out[i.index] = reinterpret_cast<const Packed*>(bytes)->second; }
COPPICE_KERNEL(read_at, Item i, const uint32_t* values, int64_t at, uint32_t* out)
{ out[i.index] = values[at]; }
COPPICE_KERNEL(write_at, Item i, uint32_t* values, int64_t at)
{ values[at] = static_cast<uint32_t>(i.index); }
COPPICE_KERNEL(add_at_index, Item, uint32_t* values, int64_t at)
{ coppice_fetch_add_u32(values + at, 1); }
COPPICE_KERNEL(read_fresh_memory, Item i, uint32_t* out)
{ out[i.index] = static_cast<uint32_t*>(coppice_shared_memory())[coppice_lane()]; }
// Writes for the neighbour, then reads the neighbour's.
COPPICE_KERNEL(pass_on_at_once, Item i, uint32_t* out)
{
  auto* const shared = static_cast<uint32_t*>(coppice_shared_memory());
  const uint32_t lane = coppice_lane(), lanes = coppice_lane_count();
  shared[lane] = static_cast<uint32_t>(i.index);
  out[i.index] = shared[(lane + 1) % lanes];
}
// The same by the barrier of a warp, or by a lock-free flag: no race.
COPPICE_KERNEL(pass_on_in_warp, Item i, uint32_t* out)
{
  auto* const shared = static_cast<uint32_t*>(coppice_shared_memory());
  const uint32_t lane = coppice_lane();
  shared[lane] = static_cast<uint32_t>(i.index);
  coppice_warp_barrier(~0u);
  out[i.index] = shared[lane / 32 * 32 + (lane + 1) % 32];
}
COPPICE_KERNEL(pass_on_by_flag, Item i, uint32_t* flags, uint32_t* out)
{
  auto* const shared = static_cast<uint32_t*>(coppice_shared_memory());
  const uint32_t lane = coppice_lane();
  if (lane % 2 == 0) {
    shared[lane] = static_cast<uint32_t>(i.index);
    coppice_store_release_u32(flags + i.index, 1);
  } else {
    for (uint32_t turn = 0; coppice_load_acquire_u32(flags + i.index - 1) == 0; ++turn) coppice_pause(turn);
    out[i.index] = shared[lane - 1];
  }
}
COPPICE_KERNEL(count_in_shared, Item i, uint32_t* out)
{
  auto* const shared = static_cast<uint32_t*>(coppice_shared_memory());
  if (coppice_lane() == 0) *shared = 0;
  coppice_block_barrier();
  coppice_fetch_add_u32(shared, 1);
  coppice_block_barrier();
  out[i.index] = *shared;
}

// ---- litmus programs as they come out of the compiler: items 2k and 2k + 1 are the threads of one
// execution, and words 32k and 32k + 16 what they share

struct Pair {
  uint32_t *own, *other;
  bool first;
};
static Pair pair_of(Item i, uint32_t* words) {
  uint32_t* const x = words + i.index / 2 * 32;
  const bool first = i.index % 2 == 0;
  return {first ? x : x + 16, first ? x + 16 : x, first};
}
COPPICE_KERNEL(pass_relaxed_message, Item i, uint32_t* words, uint32_t* out)
{
  const Pair p = pair_of(i, words);
  if (p.first) {
    device::relaxed_store(p.own, 1u);
    device::relaxed_store(p.other, 1u);
  } else {
    const uint32_t flag = device::relaxed_load(p.own), data = device::relaxed_load(p.other);
    out[i.index / 2] = flag == 1 && data == 0;
  }
}
COPPICE_KERNEL(buffer_stores, Item i, uint32_t* words, uint32_t* out)
{
  const Pair p = pair_of(i, words);
  device::relaxed_store(p.own, 1u);
  out[i.index] = device::relaxed_load(p.other) == 0;
}
COPPICE_KERNEL(buffer_stores_with_fences, Item i, uint32_t* words, uint32_t* out)
{
  const Pair p = pair_of(i, words);
  device::relaxed_store(p.own, 1u);
  coppice_fence_seq_cst();
  out[i.index] = device::relaxed_load(p.other) == 0;
}
COPPICE_KERNEL(buffer_loads, Item i, uint32_t* words, uint32_t* out)
{
  const Pair p = pair_of(i, words);
  const uint32_t seen = device::relaxed_load(p.own);
  device::relaxed_store(p.other, 1u);
  out[i.index] = seen;
}
COPPICE_KERNEL(buffer_dependent_loads, Item i, uint32_t* words, uint32_t* out)
{
  const Pair p = pair_of(i, words);
  const uint32_t seen = device::relaxed_load(p.own);
  device::relaxed_store(p.other, seen);
  out[i.index] = seen;
}
