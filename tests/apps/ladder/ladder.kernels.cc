// Kernels of the ladder (ladder.h): each asks for one thing of the device, in a way that shows on the host
// when it is not there. `wrong` is 0, or 1 where a wrong result is planted.
#include "coppice/kernel.h"

using namespace coppice;

// ---- one kernel, a barrier, shared memory, atomics

COPPICE_KERNEL(write_squares, Item i, uint32_t* out, uint32_t wrong)
{ out[i.index] = static_cast<uint32_t>(i.index * i.index) + (i.index == 7 ? wrong : 0); }

// Every lane adds what all lanes of its team wrote before the barrier, over and over: a barrier that lets one
// through early shows in the sums. `room` has 2 x 1024 places for a team.
COPPICE_KERNEL(add_rounds, Team team, uint32_t* room, uint32_t* sums, int rounds, uint32_t wrong)
{
  uint32_t* const mine = room + team.index * 2048;
  uint32_t sum = 0;
  for (int round = 0; round < rounds; ++round) {
    uint32_t* const places = mine + round % 2 * 1024;
    places[team.lane()] = static_cast<uint32_t>(round) + team.lane();
    team.barrier();
    for (uint32_t k = 0; k < team.lanes(); ++k) sum += places[k] - k;
  }
  if (team.lane() == 0) sum += wrong;
  team.barrier();
  mine[team.lane()] = sum;
  team.barrier();
  if (team.lane() != 0) return;
  // The same sum of every lane: rounds * (rounds - 1) / 2 for each lane that there is.
  for (uint32_t k = 1; k < team.lanes(); ++k) mine[0] = mine[0] == mine[k] ? mine[0] : ~0u;
  sums[2 * team.index] = mine[0];
  sums[2 * team.index + 1] = team.lanes();
}

// Each block's values the other way round, by way of memory that its threads share.
COPPICE_KERNEL(reverse_by_shared, Read<int> from, Write<int> to, BlockTeam<1, 256 * sizeof(int)> block,
               int wrong)
{
  auto* const values = reinterpret_cast<int*>(block.fast);
  for (uint32_t i = block.lane(); i < 256; i += block.lanes()) values[i] = from.data(block)[i];
  block.barrier();
  for (uint32_t i = block.lane(); i < 256; i += block.lanes())
    to.data(block)[i] = values[255 - i] + (i == 7 ? wrong : 0);
}
COPPICE_KERNEL(write_coordinates, Write<int> x, Cell<1> c)
{ x[c] = c.coord(0); }

// All items meet in six places.
struct Totals {
  uint64_t sum, bits, kept;
  double exact;  // sums of whole numbers
  uint32_t most, tickets;
};
COPPICE_KERNEL(add_up, Item i, Totals* totals, uint32_t* taken, uint32_t wrong)
{
  const auto k = static_cast<uint64_t>(i.index);
  coppice_fetch_add_u64(&totals->sum, k + (k == 7 ? wrong : 0));
  coppice_fetch_or_u64(&totals->bits, uint64_t{1} << (k % 61));
  coppice_fetch_and_u64(&totals->kept, ~(uint64_t{1} << (k % 59)));
  coppice_fetch_add_f64(&totals->exact, static_cast<double>(k));
  coppice_fetch_max_u32(&totals->most, static_cast<uint32_t>(k));
  // A ticket is nobody else's.
  coppice_fetch_add_u32(taken + coppice_fetch_add_u32(&totals->tickets, 1), 1);
}
struct Locked {
  uint32_t lock;
  uint32_t pad[31];
  uint64_t value;
};
COPPICE_KERNEL(count_by_lock, Item i, Locked* locked)
{
  (void)i;
  for (uint32_t turn = 0; coppice_compare_exchange_u32(&locked->lock, 0, 1) != 0; ++turn) coppice_pause(turn);
  locked->value += 1;
  coppice_store_release_u32(&locked->lock, 0);
}

// ---- litmus programs: see litmus.cc

struct LitmusRoom {
  uint32_t *x, *y;  // places of instance k: x[k * stride], y[k * stride + apart]
  uint32_t* meet;   // [instances]
  uint32_t* seen;   // [instances][2]
  uint32_t stride, apart;
};
namespace {
uint32_t relaxed(const uint32_t* at) { return __atomic_load_n(at, __ATOMIC_RELAXED); }
void relaxed_store(uint32_t* at, uint32_t value) { __atomic_store_n(at, value, __ATOMIC_RELAXED); }
}  // namespace
// Team 2 p and 2 p + 1 are the two threads of as many instances as they have lanes; they meet first, as far
// as they can.
COPPICE_KERNEL(litmus, Team team, LitmusRoom room, int program, int lanes)
{
  if (static_cast<int>(team.lane()) >= lanes) return;
  const auto k = static_cast<uint32_t>(team.index / 2 * lanes) + team.lane();
  const bool first = team.index % 2 == 0;
  uint32_t* const x = room.x + k * room.stride;
  uint32_t* const y = room.y + k * room.stride + room.apart;
  uint32_t* const seen = room.seen + 2 * k;
  coppice_fetch_add_u32(room.meet + k, 1);
  for (uint32_t turn = 0; turn < 64 && relaxed(room.meet + k) < 2; ++turn) continue;
  uint32_t a = 0, b = 0;
  switch (program) {
    case 0:  // message passing, release and acquire
      if (first) return relaxed_store(x, 1), coppice_store_release_u32(y, 1);
      a = coppice_load_acquire_u32(y), b = relaxed(x);
      break;
    case 1:  // message passing, fences
      if (first) return relaxed_store(x, 1), coppice_fence(), relaxed_store(y, 1);
      a = relaxed(y), coppice_fence(), b = relaxed(x);
      break;
    case 2:  // message passing by read-modify-writes
      if (first) {
        relaxed_store(x, 1), coppice_exchange_u32(y, 1);
        return;
      }
      a = coppice_compare_exchange_u32(y, 2, 3), b = relaxed(x);
      break;
    case 3:  // coherence: two reads of one place
      if (first) return relaxed_store(x, 1);
      a = relaxed(x), b = relaxed(x);
      break;
    case 4:  // message passing, all relaxed
      if (first) return relaxed_store(x, 1), relaxed_store(y, 1);
      a = relaxed(y), b = relaxed(x);
      break;
    case 5:  // store buffering, release and acquire: each thread tells what it saw
      if (first) {
        coppice_store_release_u32(x, 1);
        seen[0] = coppice_load_acquire_u32(y);
      } else {
        coppice_store_release_u32(y, 1);
        seen[1] = coppice_load_acquire_u32(x);
      }
      return;
    default:  // load buffering, relaxed
      if (first) {
        seen[0] = relaxed(x);
        relaxed_store(y, 1);
      } else {
        seen[1] = relaxed(y);
        relaxed_store(x, 1);
      }
      return;
  }
  seen[0] = a, seen[1] = b;
}

// ---- trees

COPPICE_KERNEL(grow_cells, Grow<int> x, Item i, int cells, int stride)
{
  const int at = static_cast<int>(i.index * stride % cells);
  x.set(i, {at}, at + 1);
}
COPPICE_KERNEL(smooth_cells, Read<int, Star<1>> from, Write<int> to, Cell<1> c)
{ to[c] = 2 * from[c] + from(c, -1) + from(c, 1); }
COPPICE_KERNEL(sum_up, Read<int> x, Cell<1> c, uint64_t* sums)
{
  coppice_fetch_add_u64(sums, 1);
  coppice_fetch_add_u64(sums + 1, static_cast<uint64_t>(x[c]) * static_cast<uint64_t>(c.coord(0) + 1));
}
COPPICE_KERNEL(drop_blocks, Topology blocks, Item i, int stride)
{ blocks.deactivate(i, {static_cast<int>(i.index) * stride}); }
COPPICE_KERNEL(append_items, Append<int> list, Item i, int lists)
{ list.append(i, {static_cast<int>(i.index) % lists}, static_cast<int>(i.index)); }
COPPICE_KERNEL(mark_items, Read<int> list, Entry<1> e, int lists, uint32_t* marks)
{ coppice_fetch_add_u32(marks + list[e], list[e] % lists == e.coord(0) ? 1 : 100); }

// ---- plants

// Never ends: nobody writes to the flag.
COPPICE_KERNEL(spin_for_ever, Item, uint32_t* flag)
{
  while (*const_cast<volatile uint32_t*>(flag) == 0) continue;
}
COPPICE_KERNEL(store_nowhere, Item i, uint64_t nowhere)
{ *reinterpret_cast<volatile uint32_t*>(nowhere + 4 * static_cast<uint64_t>(i.index)) = 1; }
