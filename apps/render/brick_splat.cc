// Finds the bricks that are needed, adds up in fixed point, smooths, and cuts the sum into bricks with
// aprons.
#include "apps/render/brick_splat.h"

#include <fmt/format.h>
#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/hash.h"

namespace coppice::render {
namespace {

constexpr float kFixed = 1 << 18;  // per 1: sums up to 16384 fit
constexpr size_t kGrain = 256;
constexpr size_t kMostBricks = size_t{1} << 24;

Vec3i floor_of(const Vec3f& p) { return p.array().floor().cast<int>(); }
Vec3i brick_of(const Vec3i& cell) { return {cell.x() >> 3, cell.y() >> 3, cell.z() >> 3}; }
size_t in_brick(const Vec3i& cell) {
  return static_cast<size_t>(((cell.x() & 7) * kBrickCells + (cell.y() & 7)) * kBrickCells + (cell.z() & 7));
}

}  // namespace

BrickSplat::BrickSplat(std::span<const ParticleKernel> kernels, float cell_m, int passes) : cell_m_(cell_m) {
  find_bricks(kernels, passes + 1);
  std::vector<uint32_t> sums(origins_.size() * kCells, 0);
  tbb::parallel_for(tbb::blocked_range<size_t>(0, kernels.size(), kGrain),
                    [&](const tbb::blocked_range<size_t>& range) {
                      for (size_t i = range.begin(); i != range.end(); ++i)
                        if (kernels[i].peak > 0) add(kernels[i], sums);
                    });
  values_.resize(sums.size());
  std::transform(sums.begin(), sums.end(), values_.begin(),
                 [](uint32_t sum) { return static_cast<float>(sum) / kFixed; });
  for (int i = 0; i < 3 * passes; ++i) smooth(i % 3);
}

size_t BrickSplat::index(const Vec3i& brick) const {
  const Vec3i at = brick - first_;
  return (static_cast<size_t>(at.x()) * static_cast<size_t>(size_.y()) + static_cast<size_t>(at.y())) *
             static_cast<size_t>(size_.z()) +
         static_cast<size_t>(at.z());
}

int BrickSplat::brick_at(const Vec3i& brick) const {
  if (((brick - first_).array() < 0).any() || ((brick - first_ - size_).array() >= 0).any()) return -1;
  return number_of_[index(brick)];
}

// Marks what the kernels touch, and `margin` cells around, where smoothing carries values.
void BrickSplat::find_bricks(std::span<const ParticleKernel> kernels, int margin) {
  const Vec3i around = Vec3i::Constant(margin);
  const auto low_of = [&](const ParticleKernel& k) {
    return brick_of(floor_of((k.center - k.half_size) / cell_m_) - around);
  };
  const auto high_of = [&](const ParticleKernel& k) {
    return brick_of(floor_of((k.center + k.half_size) / cell_m_) + around);
  };
  Vec3i low = Vec3i::Constant(std::numeric_limits<int>::max()), high = -low;
  for (const ParticleKernel& k : kernels) {
    if (k.peak == 0) continue;
    low = low.cwiseMin(low_of(k)), high = high.cwiseMax(high_of(k));
  }
  if (low.x() > high.x()) return;
  first_ = low, size_ = high - low + Vec3i::Ones();
  const double bounds = size_.cast<double>().prod();
  if (bounds > static_cast<double>(kMostBricks)) {
    throw Error(ErrorCode::kOutOfRange,
                fmt::format("the surface of particles spans {} x {} x {} bricks; there is room for {}",
                            size_.x(), size_.y(), size_.z(), kMostBricks));
  }
  number_of_.assign(static_cast<size_t>(bounds), -1);
  for (const ParticleKernel& k : kernels) {
    if (k.peak == 0) continue;
    const Vec3i from = low_of(k), to = high_of(k);
    for (int x = from.x(); x <= to.x(); ++x)
      for (int y = from.y(); y <= to.y(); ++y)
        for (int z = from.z(); z <= to.z(); ++z) number_of_[index({x, y, z})] = 0;
  }
  int32_t count = 0;
  for (int x = 0; x < size_.x(); ++x) {
    for (int y = 0; y < size_.y(); ++y) {
      for (int z = 0; z < size_.z(); ++z) {
        const Vec3i brick = first_ + Vec3i(x, y, z);
        if (number_of_[index(brick)] < 0) continue;
        number_of_[index(brick)] = count++;
        origins_.push_back(brick);
      }
    }
  }
}

void BrickSplat::add(const ParticleKernel& k, std::vector<uint32_t>& sums) const {
  const Vec3i low = floor_of((k.center - k.half_size) / cell_m_ - Vec3f::Constant(0.5f)) + Vec3i::Ones();
  const Vec3i high = floor_of((k.center + k.half_size) / cell_m_ - Vec3f::Constant(0.5f));
  Vec3i cell;
  const Vec3f step = k.unit_from_world.col(2) * cell_m_;
  for (cell.x() = low.x(); cell.x() <= high.x(); ++cell.x()) {
    for (cell.y() = low.y(); cell.y() <= high.y(); ++cell.y()) {
      const Vec3f first =
          (Vec3f(cell.cast<float>().x(), cell.cast<float>().y(), static_cast<float>(low.z())) +
           Vec3f::Constant(0.5f)) *
          cell_m_;
      Vec3f q = k.unit_from_world * (first - k.center);
      for (cell.z() = low.z(); cell.z() <= high.z(); ++cell.z(), q += step) {
        const float inside = 1.0f - q.squaredNorm();
        if (inside <= 0.0f) continue;
        const auto amount = static_cast<uint32_t>(k.peak * inside * inside * inside * kFixed + 0.5f);
        const auto brick = static_cast<size_t>(number_of_[index(brick_of(cell))]);
        std::atomic_ref(sums[brick * kCells + in_brick(cell)]).fetch_add(amount, std::memory_order_relaxed);
      }
    }
  }
}

void BrickSplat::smooth(int axis) {
  const size_t stride = axis == 0 ? 64 : axis == 1 ? 8 : 1;
  std::vector<float> to(values_.size());
  tbb::parallel_for(size_t{0}, origins_.size(), [&](size_t b) {
    const int before = brick_at(origins_[b] - Vec3i::Unit(axis));
    const int behind = brick_at(origins_[b] + Vec3i::Unit(axis));
    const float* const here = &values_[b * kCells];
    for (size_t i = 0; i < kCells; ++i) {
      const size_t at = i / stride % 8;
      // The neighbour's cell of the same row is 7 cells away the other way.
      const float low = at > 0        ? here[i - stride]
                        : before >= 0 ? values_[static_cast<size_t>(before) * kCells + i + 7 * stride]
                                      : 0.0f;
      const float high = at < 7        ? here[i + stride]
                         : behind >= 0 ? values_[static_cast<size_t>(behind) * kCells + i - 7 * stride]
                                       : 0.0f;
      to[b * kCells + i] = 0.25f * (low + high) + 0.5f * here[i];
    }
  });
  values_.swap(to);
}

float BrickSplat::value(const Vec3i& cell) const {
  const int brick = brick_at(brick_of(cell));
  return brick < 0 ? 0.0f : values_[static_cast<size_t>(brick) * kCells + in_brick(cell)];
}

float BrickSplat::sample(const Vec3f& world) const {
  if (is_empty()) return 0.0f;
  const Vec3f at = world / cell_m_ - Vec3f::Constant(0.5f);
  const Vec3i low = floor_of(at);
  const Vec3f part = at - low.cast<float>();
  float sum = 0;
  for (int corner = 0; corner < 8; ++corner) {
    const Vec3i step(corner & 1, corner >> 1 & 1, corner >> 2);
    float weight = 1;
    for (int axis = 0; axis < 3; ++axis) weight *= step[axis] != 0 ? part[axis] : 1.0f - part[axis];
    sum += weight * value(low + step);
  }
  return sum;
}

void BrickSplat::append_to(BrickVolume& volume, const Vec3i& shift) const {
  const size_t before = volume.size();
  const size_t bytes = kBrickValues * sizeof(float);
  volume.origins.resize(before + origins_.size());
  volume.stats.resize(volume.origins.size());
  volume.values.resize(volume.origins.size() * bytes);
  tbb::parallel_for(size_t{0}, origins_.size(), [&](size_t b) {
    const Vec3i origin = 8 * origins_[b];
    const Vec3i moved = origin + shift;
    float values[kBrickValues];
    for (int i = 0; i < kBrickValues; ++i) values[i] = value(origin + Vec3i(i / 81, i / 9 % 9, i % 9));
    const auto [least, most] = std::minmax_element(std::begin(values), std::end(values));
    volume.origins[before + b] = {moved.x(), moved.y(), moved.z()};
    volume.stats[before + b] = {*least, *most, hash64(std::as_bytes(std::span(values)))};
    std::memcpy(&volume.values[(before + b) * bytes], values, bytes);
  });
}

}  // namespace coppice::render
