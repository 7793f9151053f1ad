// Kernels of the tests of the emulated GPU: some right, some with a fault that only a GPU would show.
#include <string.h>

#include "coppice/kernel.h"

using namespace coppice;

struct Counter {
  uint32_t lock;
  uint32_t pad[31];  // elsewhere than the value
  uint64_t value;
};
// What is written under the lock must be seen by who takes it next: that is what a release is for.
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
// Which lanes are there is asked in a branch that some take.
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
// Loads and stores of every kind that kernels have.
COPPICE_KERNEL(copy_all, Item i, const Odd* odd, Odd* odd_to, const Wide* wide, Wide* wide_to,
               const bool* flags, bool* flags_to, const float* floats, float* floats_to,
               const unsigned char* bytes, unsigned char* bytes_to, int n)
{
  const int64_t k = i.index;
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
