// The particles of a solver in device memory: arrays by attribute (solver_types.h), a spare one, and what
// sorts them.
//
// A reordering moves all arrays by one place in their memory, one at a time, from the end that has the free
// place: each goes where the one before has come from. The next reordering moves them back.
//
// Over ranks each has particles of its own, and ids are the same whoever has them. Functions that add or
// remove particles are called by all ranks together then.
//
// Functions that wait are for when nothing is queued that touches particles. Thread-compatible.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "apps/mpm/emission.h"
#include "apps/mpm/solver_types.h"
#include "gpu/device.h"
#include "mpm.kernels.h"
#include "sparse/program.h"
#include "sparse/ranks/cluster.h"

namespace coppice::mpm {

// New particles of an emitter begin with this.
struct ParticleStart {
  Vec3f velocity;  // m/s
  float scalar;    // the material's (Attribute::kScalar)
  // Snow's stiffness is drawn evenly from 1 - this to 1 + this times the material's, by seed and id: as snow
  // of another plastic volume ratio, which is its scalar, has it.
  float stiffness_spread = 0;
  float hardening = 0;  // of snow with a spread
  uint64_t seed = 0;
};

template <int D>
class ParticleStore {
 public:
  explicit ParticleStore(IntrusivePtr<Device> device, std::optional<Cluster> cluster = {})
      : device_(std::move(device)), cluster_(std::move(cluster)) {}

  uint64_t size() const { return n_; }                       // this rank's
  uint64_t num_everywhere() const { return n_everywhere_; }  // of all ranks
  uint64_t capacity() const { return static_cast<uint64_t>(arrays_.stride); }
  uint64_t next_id() const { return next_id_; }  // ids are below; where particles were cut some are missing
  // The arrays are in device memory, and others once particles are added, reordered or cut.
  const ParticleArrays& arrays() const { return arrays_; }
  // Where reordered particles go.
  ParticleArrays next_arrays() const {
    const bool is_first = arrays_.base == memory_->as<float>();
    return {is_first ? arrays_.base + arrays_.stride : arrays_.base - arrays_.stride, arrays_.stride};
  }
  // Between reorderings nobody needs this memory; floats, as many as capacity().
  float* spare_array() const {
    const ParticleArrays next = next_arrays();
    return next.base < arrays_.base ? next.base : arrays_.base + A::kCount * arrays_.stride;
  }
  uint32_t* flags() const { return reinterpret_cast<uint32_t*>(spare_array()); }  // for wait_keep_flagged()
  // u32[capacity]: particles are sorted by these, which they keep until the next sorting; new ones have
  // kNoParticleKey.
  const IntrusivePtr<Buffer>& keys() const { return keys_; }
  const IntrusivePtr<Buffer>& starts() const { return starts_; }  // u32[n_bins + 1]: where each bin begins

  // Makes room for `n` particles; those that are there stay.
  void wait_reserve(uint64_t n);
  // Makes room for the starts of so many bins, whose values are lost.
  void reserve_starts(uint64_t n_bins);
  // Adds undeformed particles, with the next ids; each rank its share of them. `starts` has one entry per
  // emitter, and `origin` is the world's position (m) of the grid's node (0, 0, 0).
  void wait_add(const EmittedParticles& emitted, std::span<const ParticleStart> starts, const Vec3f& origin);
  // Queues the launches of a reordering: particle i of `to` is particle order[i] of `from`, which are
  // arrays() and next_arrays(), or slots of these. Returns the last launch. Where one fails, particles are
  // lost.
  template <class Arrays, class Order>
  static AsyncValueRef<Chain> reorder(Program& program, int64_t n, const Arrays& from, const Arrays& to,
                                      Order order);
  // The first `n` particles of next_arrays() become the particles.
  void take_next(uint64_t n);
  // Keeps the particles whose flag is not 0, in their order; returns how many are gone, of all ranks' where
  // there are several. Flags, u32[size()], are at flags().
  uint64_t wait_keep_flagged(Program& program);
  // Sends particles to other ranks, and gets theirs. order[0 ... n_kept - 1], u32 in device memory, has the
  // places of those that stay, in their order; to[r] of those that go to rank r. Those that come are the last
  // ones, by rank. `places`, u64 for each particle, go with them; they are in another buffer then. All ranks
  // call it together.
  void wait_migrate(Program& program, const uint32_t* order, uint64_t n_kept,
                    const std::vector<std::vector<uint32_t>>& to, IntrusivePtr<Buffer>& places);

  // Replaces all particles of this rank: rows[attribute][particle], and a key for each.
  void wait_set(const std::vector<float>& rows, const std::vector<uint32_t>& keys, uint64_t n_everywhere,
                uint64_t next_id);

  // Calls visit(rows, i) for every particle, in order, with attribute a of it at rows[a][i]; only those
  // attributes that are asked for.
  template <class F>
  void wait_for_each(std::span<const int> attributes, F&& visit) const {
    wait_for_each(attributes, 0, n_, std::forward<F>(visit));
  }
  // The same for particles from `begin` on and before `end`.
  template <class F>
  void wait_for_each(std::span<const int> attributes, uint64_t begin, uint64_t end, F&& visit) const;

  uint64_t array_bytes() const;
  uint64_t sorting_bytes() const;

 private:
  using A = Attribute<D>;
  // Attributes of so many particles are on the host at a time: they stay in the processor's cache while
  // they are read.
  static constexpr uint64_t kRowParticles = uint64_t{1} << 14;

  float* attribute(int number) const { return arrays_.base + number * arrays_.stride; }  // in device memory
  // value(i) of an attribute goes to `n` particles from `begin` on.
  template <class F>
  void wait_upload(int number, uint64_t begin, uint64_t n, F&& value);
  template <class F>
  void wait_upload(float* to, uint64_t n, F&& value);

  // Keeps the particles at these places, u32 in device memory.
  void wait_keep(Program& program, const uint32_t* kept, uint64_t n);
  // Attributes of chosen particles, attribute after attribute; each as many as are chosen.
  std::vector<float> wait_gather_rows(Program& program, const uint32_t* chosen, uint64_t n) const;

  IntrusivePtr<Device> device_;
  std::optional<Cluster> cluster_;
  uint64_t n_ = 0, n_everywhere_ = 0, next_id_ = 0;
  ParticleArrays arrays_{};  // in memory_, from its first array on or its second
  IntrusivePtr<Buffer> memory_, keys_, starts_;
};

template <int D>
template <class Arrays, class Order>
AsyncValueRef<Chain> ParticleStore<D>::reorder(Program& program, int64_t n, const Arrays& from,
                                               const Arrays& to, Order order) {
  AsyncValueRef<Chain> last;
  for (int turn = 0; turn < A::kCount; ++turn)
    last = program.launch(kernels::reorder_particles, range(n), from, to, order, turn, int{A::kCount});
  return last;
}

template <int D>
template <class F>
void ParticleStore<D>::wait_for_each(std::span<const int> attributes, uint64_t begin, uint64_t end,
                                     F&& visit) const {
  const uint64_t room = std::min(end - begin, kRowParticles);
  std::vector<float> values(attributes.size() * room);
  std::array<const float*, A::kCount> rows{};
  for (size_t a = 0; a < attributes.size(); ++a)
    rows[static_cast<size_t>(attributes[a])] = values.data() + a * room;
  for (uint64_t first = begin; first < end; first += kRowParticles) {
    const uint64_t n = std::min(end - first, kRowParticles);
    for (size_t a = 0; a < attributes.size(); ++a)
      device_->wait_copy(values.data() + a * room, attribute(attributes[a]) + first, n * sizeof(float));
    for (uint64_t i = 0; i < n; ++i) visit(rows, i);
  }
}

}  // namespace coppice::mpm
