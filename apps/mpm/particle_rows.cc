// Deals out particles as records of floats (see particle_rows.h).
#include "apps/mpm/particle_rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "apps/mpm/launched.h"
#include "core/check.h"

namespace coppice::mpm {
namespace {

constexpr uint64_t kDealtAtOnce = uint64_t{1} << 16;  // particles of a rank, between two exchanges

ParticleSnapshot make_snapshot(uint64_t n, int dim, const SnapshotParts& parts) {
  const auto matrices = n * static_cast<uint64_t>(dim * dim);
  ParticleSnapshot s;
  s.position.resize(n);
  s.velocity.resize(n);
  s.volume_ratio.resize(n);
  s.material_scalar.resize(n);
  s.material.resize(n);
  s.emitter.resize(n);
  s.mass.resize(n);
  if (parts.affine) s.affine.resize(matrices);
  if (parts.deformation) s.deformation.resize(matrices);
  if (parts.stress) s.stress.resize(n * static_cast<uint64_t>(dim * (dim + 1) / 2));
  return s;
}

// Deals out particles over ranks: rank r gets those with ids from begin[r] on and below begin[r + 1].
template <int D>
class Dealer {
 public:
  Dealer(const SolverState<D>& state, std::span<const uint64_t> ends) : state_(state), ends_(ends) {
    COPPICE_CHECK(ends.size() == static_cast<size_t>(state.cluster ? state.cluster->n_ranks() : 1) &&
                      ends.back() == state.particles.num_everywhere(),
                  "{} ends", ends.size());
    wait_find_begins();
  }

  // pack(rows, i, record) fills the record of a particle, u32[`width`], whose first number is its id, from
  // `attributes`; take(record) gets those that are dealt to this rank.
  template <class Pack, class Take>
  void wait_deal(std::span<const int> attributes, size_t width, Pack pack, Take take) const;
  // Returns the row, among this rank's, of a particle that was dealt to it. wait_order() comes before.
  size_t row_of(uint32_t id) const {
    const uint64_t above = id - begin_[self()];
    if (is_whole_) return above;
    if (!table_.empty()) return table_[above];
    return static_cast<size_t>(std::ranges::lower_bound(sorted_, id) - sorted_.begin());
  }
  void wait_order();
  uint64_t num_rows() const { return ends_[self()] - (self() == 0 ? 0 : ends_[self() - 1]); }

 private:
  using A = Attribute<D>;
  size_t self() const { return state_.cluster ? static_cast<size_t>(state_.cluster->rank()) : 0; }
  void wait_find_begins();

  const SolverState<D>& state_;
  const std::span<const uint64_t> ends_;
  bool is_whole_ = false;         // no id is missing
  std::vector<uint64_t> begin_;   // [n_ranks + 1]
  std::vector<uint32_t> table_;   // rows of the ids from begin on; empty where most ids are missing
  std::vector<uint32_t> sorted_;  // or else the ids that are here
};

template <int D>
void Dealer<D>::wait_find_begins() {
  const ParticleStore<D>& particles = state_.particles;
  const uint64_t n = particles.num_everywhere(), n_ids = particles.next_id();
  is_whole_ = n_ids == n;
  begin_.assign(1, 0);
  begin_.insert(begin_.end(), ends_.begin(), ends_.end());
  if (is_whole_) return;
  // Nobody has to look for the first id and the last.
  bool is_known = true;
  for (uint64_t& row : begin_) {
    is_known = is_known && (row == 0 || row == n);
    if (row == n) row = n_ids;
  }
  if (is_known) return;
  std::vector<uint32_t> own;
  own.reserve(particles.size());
  particles.wait_for_each(std::array{int{A::kId}}, [&](const auto& rows, uint64_t i) {
    own.push_back(std::bit_cast<uint32_t>(rows[A::kId][i]));
  });
  std::ranges::sort(own);
  // The lowest id with so many below it is between these.
  std::vector<uint64_t> low(ends_.size(), 0), high(ends_.size(), n_ids), below(ends_.size());
  for (uint64_t width = n_ids; width > 0; width /= 2) {
    const auto middle = [&](size_t r) { return low[r] + (high[r] - low[r]) / 2; };
    for (size_t r = 0; r < ends_.size(); ++r)
      below[r] = static_cast<uint64_t>(
          std::ranges::lower_bound(own, middle(r), {}, [](uint32_t id) { return uint64_t{id}; }) -
          own.begin());
    state_.cluster->wait_sum_each(std::span<uint64_t>(below));
    for (size_t r = 0; r < ends_.size(); ++r) {
      if (low[r] == high[r]) continue;
      if (below[r] >= ends_[r])
        high[r] = middle(r);
      else
        low[r] = middle(r) + 1;
    }
  }
  for (size_t r = 0; r < ends_.size(); ++r)
    if (ends_[r] < n) begin_[r + 1] = high[r];
}

template <int D>
template <class Pack, class Take>
void Dealer<D>::wait_deal(std::span<const int> attributes, size_t width, Pack pack, Take take) const {
  const ParticleStore<D>& particles = state_.particles;
  const size_t n_ranks = ends_.size(), self = this->self();
  const uint64_t n = particles.size();
  uint64_t rounds = (n + kDealtAtOnce - 1) / kDealtAtOnce;
  if (state_.cluster) rounds = state_.cluster->wait_max(rounds);
  std::vector<uint32_t> record(width);
  const auto bytes_of_record = std::as_bytes(std::span(record));
  for (uint64_t round = 0; round < rounds; ++round) {
    std::vector<RankLink::Bytes> parts(n_ranks);
    const uint64_t first = std::min(n, round * kDealtAtOnce), end = std::min(n, first + kDealtAtOnce);
    particles.wait_for_each(attributes, first, end, [&](const auto& rows, uint64_t i) {
      pack(rows, i, record.data());
      // Where several ranks begin at one id, all but the last get nothing.
      const size_t to =
          n_ranks == 1
              ? 0
              : static_cast<size_t>(std::upper_bound(begin_.begin() + 1, begin_.end() - 1, record[0]) -
                                    begin_.begin() - 1);
      if (to == self)
        take(static_cast<const uint32_t*>(record.data()));
      else
        parts[to].insert(parts[to].end(), bytes_of_record.begin(), bytes_of_record.end());
    });
    if (!state_.cluster) continue;
    for (const RankLink::Bytes& part : state_.cluster->wait_exchange(std::move(parts))) {
      COPPICE_CHECK(part.size() % bytes_of_record.size() == 0, "{} bytes", part.size());
      for (size_t at = 0; at < part.size(); at += bytes_of_record.size()) {
        std::memcpy(record.data(), part.data() + at, bytes_of_record.size());
        take(static_cast<const uint32_t*>(record.data()));
      }
    }
  }
}

template <int D>
void Dealer<D>::wait_order() {
  if (is_whole_) return;
  constexpr uint64_t kSparse = 8;  // ids for each particle: where they stream through, ids go up for ever
  const uint64_t begin = begin_[self()], n_ids = begin_[self() + 1] - begin;
  if (n_ids <= kSparse * num_rows())
    table_.resize(n_ids);
  else
    sorted_.reserve(num_rows());
  wait_deal(
      std::array{int{A::kId}}, 1,
      [](const auto& rows, uint64_t i, uint32_t* record) {
        record[0] = std::bit_cast<uint32_t>(rows[A::kId][i]);
      },
      [&](const uint32_t* record) {
        if (!table_.empty())
          table_[record[0] - begin] = 1;
        else
          sorted_.push_back(record[0]);
      });
  std::exclusive_scan(table_.begin(), table_.end(), table_.begin(), 0u);
  std::ranges::sort(sorted_);
}

// Writes and reads a record's numbers, one behind the other.
struct Put {
  uint32_t* at;
  void operator()(float value) { *at++ = std::bit_cast<uint32_t>(value); }
};
struct Get {
  const uint32_t* at;
  float operator()() { return std::bit_cast<float>(*at++); }
};

}  // namespace

template <int D>
ParticleSnapshot wait_rows(const SolverState<D>& state, const SnapshotParts& parts,
                           std::span<const uint64_t> ends) {
  using A = Attribute<D>;
  wait_done(state.device->default_stream().barrier());
  Dealer<D> dealer(state, ends);
  dealer.wait_order();
  ParticleSnapshot s = make_snapshot(dealer.num_rows(), D, parts);
  constexpr size_t n_matrix = D * D, n_stress = D * (D + 1) / 2;
  const Vec3f shift = state.origin().template cast<float>();
  // A record has these, and the volume ratio, which the deformation gives.
  std::vector<int> copied{A::kId, A::kGroup, A::kScalar}, needed;
  const auto need = [](std::vector<int>& list, int first, size_t count) {
    for (size_t k = 0; k < count; ++k) list.push_back(first + static_cast<int>(k));
  };
  need(copied, A::kPosition, D), need(copied, A::kVelocity, D);
  if (parts.deformation) need(copied, A::kDeformation, n_matrix);
  if (parts.affine) need(copied, A::kAffine, n_matrix);
  if (parts.stress) need(copied, A::kStress, n_stress);
  needed = copied;
  if (!parts.deformation) need(needed, A::kDeformation, n_matrix);
  const auto pack = [&](const auto& rows, uint64_t i, uint32_t* record) {
    Put put{record};
    for (const int a : copied) put(rows[static_cast<size_t>(a)][i]);
    const auto e = static_cast<size_t>(rows[A::kGroup][i]);
    SmallMat<float, D> f{};
    for (size_t k = 0; k < n_matrix; ++k) f.m[k] = rows[A::kDeformation + k][i];
    put(state.groups[e].kind == MaterialKind::kWater ? rows[A::kScalar][i] : determinant(f));
  };
  const auto take = [&](const uint32_t* record) {
    const size_t row = dealer.row_of(record[0]);
    COPPICE_CHECK(row < dealer.num_rows(), "row {} of particle {}", row, record[0]);
    Get get{record + 1};
    const auto e = static_cast<size_t>(get());
    s.emitter[row] = static_cast<uint32_t>(e);
    s.mass[row] = state.groups[e].mass;
    s.material[row] = static_cast<uint32_t>(state.scene.emitters[e].material_id);
    s.material_scalar[row] = get();
    s.position[row] = s.velocity[row] = Vec3f::Zero();
    for (int k = 0; k < D; ++k) s.position[row][k] = get() + shift[k];
    for (int k = 0; k < D; ++k) s.velocity[row][k] = get();
    for (size_t k = 0; parts.deformation && k < n_matrix; ++k) s.deformation[row * n_matrix + k] = get();
    for (size_t k = 0; parts.affine && k < n_matrix; ++k) s.affine[row * n_matrix + k] = get();
    for (size_t k = 0; parts.stress && k < n_stress; ++k) s.stress[row * n_stress + k] = get();
    s.volume_ratio[row] = get();
  };
  dealer.wait_deal(needed, copied.size() + 1, pack, take);
  return s;
}

template ParticleSnapshot wait_rows<2>(const SolverState<2>&, const SnapshotParts&,
                                       std::span<const uint64_t>);
template ParticleSnapshot wait_rows<3>(const SolverState<3>&, const SnapshotParts&,
                                       std::span<const uint64_t>);

}  // namespace coppice::mpm
