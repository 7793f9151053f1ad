// Particles are prepared on the host before they are drawn: range, order, colours; ticks of a legend.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "apps/render/color_scale.h"
#include "apps/render/draw_cost.h"
#include "apps/render/legend.h"
#include "apps/render/point_order.h"
#include "apps/render/staged_points.h"
#include "apps/render/value_range.h"

namespace coppice::render {
namespace {

std::vector<PackedPoint> with_values(const std::vector<float>& values) {
  std::vector<PackedPoint> points;
  for (const float value : values) points.push_back({Vec3f::Zero(), value});
  return points;
}

TEST(PointRange, IsThePercentilesOfFiniteValues) {
  std::vector<float> values(1001);
  std::iota(values.begin(), values.end(), 0.0f);
  std::reverse(values.begin() + 200, values.begin() + 700);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  values.insert(values.begin() + 300, {nan, infinity, -infinity, nan});
  const ScalarRange all = percentile_range(with_values(values), {0.0f, 100.0f});
  EXPECT_EQ(all.min, 0.0f);
  EXPECT_EQ(all.max, 1000.0f);
  const ScalarRange robust = percentile_range(with_values(values));
  EXPECT_EQ(robust.min, 10.0f);
  EXPECT_EQ(robust.max, 990.0f);
}

TEST(PointRange, IgnoresOutliersAndSamplesLargeSets) {
  std::vector<float> values(500000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000);
  for (size_t i = 0; i < values.size(); i += 1000) values[i] = 1e20f;
  const ScalarRange range = percentile_range(with_values(values));
  EXPECT_NEAR(range.min, 10.0f, 5.0f);
  EXPECT_NEAR(range.max, 990.0f, 5.0f);
}

TEST(PointRange, OfNothingFiniteIsTheUnitRange) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto& values : {std::vector<float>{}, std::vector<float>{nan, nan}}) {
    const ScalarRange range = percentile_range(with_values(values));
    EXPECT_EQ(range.min, 0.0f);
    EXPECT_EQ(range.max, 1.0f);
  }
}

TEST(PointRange, OfPositiveValuesLeavesOutTheOthers) {
  std::vector<float> values;
  for (int i = -500; i <= 500; ++i) values.push_back(static_cast<float>(i));
  const ScalarRange range = percentile_range(with_values(values), {0, 100}, true);
  EXPECT_EQ(range.min, 1.0f);
  EXPECT_EQ(range.max, 500.0f);
}

// A volume of one brick, as floats and as halves.
TEST(VolumeRange, KnowsThePercentilesOfWhatIsThereAndCountsWhatIsNotFinite) {
  const auto value = [](int cell) { return cell < 101 ? static_cast<float>(cell) : 0.0f; };  // 1 to 100
  for (const BrickFormat format : {BrickFormat::kFloat, BrickFormat::kHalf}) {
    BrickVolume v;
    v.format = format;
    v.origins = {{0, 0, 0}};
    v.stats = {{0, 100, 1}};
    v.values.resize(kBrickValues * bytes_per_value(format));
    const auto set = [&](int cell, float x) {
      const int at = (cell / 64 * kBrickSide + cell / 8 % 8) * kBrickSide + cell % 8;
      const auto half = [&] {  // of a small whole number, an infinity or a NaN
        if (!std::isfinite(x)) return static_cast<uint16_t>(std::isnan(x) ? 0x7e00 : 0x7c00);
        int exponent = 0;
        const float fraction = std::frexp(x, &exponent);
        return x == 0 ? uint16_t{0}
                      : static_cast<uint16_t>((exponent + 14) << 10 |
                                              (static_cast<int>(fraction * 2048) - 1024));
      };
      if (format == BrickFormat::kFloat) {
        std::memcpy(v.values.data() + 4 * at, &x, 4);
      } else {
        const uint16_t bits = half();
        std::memcpy(v.values.data() + 2 * at, &bits, 2);
      }
    };
    for (int cell = 0; cell < 512; ++cell) set(cell, value(cell));
    const ScalarRange all = percentile_range(v, {0, 100}), middle = percentile_range(v, {25, 75});
    EXPECT_EQ(all, (ScalarRange{1, 100}));
    EXPECT_NEAR(middle.min, 26, 1);
    EXPECT_NEAR(middle.max, 75, 1);
    EXPECT_EQ(whole_range(v), (ScalarRange{0, 100}));
    EXPECT_EQ(count_not_finite(v), 0u);
    set(7, std::numeric_limits<float>::infinity()), set(300, std::nanf(""));
    v.stats[0] = {-std::numeric_limits<float>::infinity(), std::numeric_limits<float>::infinity(), 2};
    EXPECT_EQ(count_not_finite(v), 2u);
    EXPECT_EQ(percentile_range(v, {0, 100}), (ScalarRange{1, 100}));
  }
}

TEST(ColorScale, RunsEvenlyInValuesOrInTheirLogarithms) {
  const ColorScale linear({10, 30}), log({1, 1000}, true);
  EXPECT_FLOAT_EQ(linear.at(15), 0.25f);
  EXPECT_EQ(linear.at(-5), 0);
  EXPECT_EQ(linear.at(50), 1);
  EXPECT_TRUE(std::isnan(linear.at(std::nanf(""))));
  EXPECT_FLOAT_EQ(log.at(10), 1 / 3.0f);
  EXPECT_EQ(log.at(0), 0);
  EXPECT_EQ(log.at(-3), 0);
  for (const ColorScale& scale : {linear, log, ColorScale({3, -7}), ColorScale({90, 2}, true)}) {
    for (const float t : {0.0f, 0.3f, 1.0f}) EXPECT_NEAR(scale.at(scale.value_at(t)), t, 1e-5f);
  }
  EXPECT_EQ(ColorScale({5, 5}).at(7), 0.5f);
  // Bounds without a logarithm are replaced.
  EXPECT_EQ(ColorScale({0, 50}, true).range(), (ScalarRange{50 * 1e-4f, 50}));
  EXPECT_EQ(ColorScale({-2, -1}, true).range(), (ScalarRange{1e-4f, 1}));
}

TEST(LogarithmicTicks, AreDecadesAndFineWhereTheyFit) {
  EXPECT_EQ(logarithmic_ticks(1, 1000, 5), (std::vector<double>{1, 10, 100, 1000}));
  EXPECT_EQ(logarithmic_ticks(1e-6, 1e6, 5), (std::vector<double>{1e-6, 1e-3, 1, 1e3, 1e6}));
  EXPECT_EQ(logarithmic_ticks(0.8, 30, 6), (std::vector<double>{1, 2, 5, 10, 20}));
  EXPECT_EQ(logarithmic_ticks(210, 290, 5), legend_ticks(210, 290, 5));
  EXPECT_TRUE(logarithmic_ticks(0, 10, 5).empty());
}

TEST(PointOrder, IsAPermutationWithItsInverse) {
  for (const size_t n :
       {size_t{0}, size_t{1}, size_t{16384}, size_t{16385}, size_t{100003}, size_t{300000}}) {
    const PointOrder order(n);
    EXPECT_EQ(order.n_points(), n);
    std::vector<bool> taken(n);
    for (size_t i = 0; i < n; ++i) {
      const size_t stored = order.stored_from_point(i);
      ASSERT_LT(stored, n);
      ASSERT_FALSE(taken[stored]);
      taken[stored] = true;
      ASSERT_EQ(order.point_from_stored(stored), i);
    }
  }
}

TEST(PointOrder, FirstChunksAreEvenlySpreadAndOfEqualSize) {
  const size_t n = 200000;
  const PointOrder order(n);
  ASSERT_EQ(order.n_chunks(), 16u);
  for (size_t chunk = 0; chunk < order.n_chunks(); ++chunk) {
    EXPECT_NEAR(static_cast<double>(order.chunk_begin(chunk + 1) - order.chunk_begin(chunk)), n / 16.0, 1.0);
  }
  for (const size_t chunks : {1u, 2u, 4u, 8u}) {
    std::vector<size_t> points;
    for (size_t s = 0; s < order.chunk_begin(chunks); ++s) points.push_back(order.point_from_stored(s));
    std::sort(points.begin(), points.end());
    // Within a row of 16 the distances are equal; from row to row they are at most twice as large.
    for (size_t i = 1; i < points.size(); ++i) {
      const size_t distance = points[i] - points[i - 1];
      if (points[i] / 16 == points[i - 1] / 16) {
        ASSERT_EQ(distance, 16 / chunks);
      }
      ASSERT_LT(distance, 32 / chunks);
    }
  }
}

TEST(PointOrder, NeighboursOfAChunkAreNeighboursInTheLayer) {
  const PointOrder order(200000);
  for (size_t s = 1; s < order.chunk_begin(1); ++s) {
    ASSERT_EQ(order.point_from_stored(s) / order.n_chunks(),
              order.point_from_stored(s - 1) / order.n_chunks() + 1);
  }
}

TEST(PointOrder, FirstChunkTakesEveryPhaseOfARegularPattern) {
  // Points that repeat with a period of n_chunks, as the particles of a lattice do.
  const PointOrder order(200000);
  std::vector<int> phases(order.n_chunks());
  for (size_t s = 0; s < order.chunk_begin(1); ++s) ++phases[order.point_from_stored(s) % order.n_chunks()];
  const double expected = static_cast<double>(order.chunk_begin(1)) / static_cast<double>(order.n_chunks());
  for (const int count : phases) EXPECT_NEAR(count, expected, 0.2 * expected);
}

TEST(PointOrder, HasABoundedNumberOfChunks) {
  EXPECT_EQ(PointOrder(10'000'000).n_chunks(), 1024u);
  EXPECT_EQ(PointOrder(100'000'000).n_chunks(), 1024u);
}

TEST(StagedPoints, HaveColoursOfTheMapWithReversedAndEmptyRanges) {
  const std::vector<PackedPoint> points = with_values({1.0f, 2.0f, 3.0f, 99.0f, -99.0f});
  PointLayer layer;
  layer.points = points;
  const auto indices = [&](const ScalarRange& range) {
    layer.range = range;
    StagedPoints staged;
    stage_points(layer, &staged);
    std::vector<uint32_t> found;
    for (const StagedPoint& p : staged.points) found.push_back(p.color_index);
    return found;
  };
  EXPECT_EQ(indices({1.0f, 3.0f}), (std::vector<uint32_t>{0, 128, 255, 255, 0}));
  EXPECT_EQ(indices({3.0f, 1.0f}), (std::vector<uint32_t>{255, 128, 0, 0, 255}));
  EXPECT_EQ(indices({2.0f, 2.0f}), (std::vector<uint32_t>{128, 128, 128, 128, 128}));
}

TEST(StagedPoints, AreFarAwayWhereTheyAreHidden) {
  const std::vector<PackedPoint> points = with_values({1.0f, 2.0f, 3.0f});
  const std::vector<uint8_t> is_hidden = {0, 1, 0};
  PointLayer layer;
  layer.points = points, layer.is_hidden = is_hidden;
  StagedPoints staged;
  stage_points(layer, &staged);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(staged.points[staged.order.stored_from_point(i)].position.norm() > 1e17f, i == 1);
  EXPECT_EQ(staged.n_bad_positions, 0u) << "hidden ones are not broken";
  layer.is_hidden = std::span(is_hidden).first(2);
  EXPECT_THROW(stage_points(layer, &staged), Error);
}

TEST(StagedPoints, CountCategoriesThatAreNoIndex) {
  const std::vector<PackedPoint> points =
      with_values({0.0f, 5.0f, -1.0f, 1e30f, std::numeric_limits<float>::quiet_NaN()});
  const std::vector<Rgb> palette(4, Rgb::Zero());
  PointLayer layer;
  layer.points = points;
  layer.is_categorical = true;
  layer.palette = palette;
  StagedPoints staged;
  stage_points(layer, &staged);
  EXPECT_EQ(staged.n_bad_values, 3u);
  EXPECT_EQ(staged.points[1].color_index, 1u);
  EXPECT_EQ(staged.points[2].color_index, 4u);
  EXPECT_EQ(staged.colors.size(), 5u);
  EXPECT_EQ(staged.colors[4], (std::array<uint8_t, 4>{255, 0, 255, 255}));
  // With names, there are no more than are named. Seen to fail: the colours began anew.
  layer.n_categories = 4;
  stage_points(layer, &staged);
  EXPECT_EQ(staged.n_bad_values, 4u);
  EXPECT_EQ(staged.points[0].color_index, 0u);
  EXPECT_EQ(staged.points[1].color_index, 4u);
}

TEST(StagedPoints, CountOverManyThreads) {
  std::vector<PackedPoint> points(300000);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (size_t i = 0; i < points.size(); ++i) {
    points[i] = {Vec3f(i % 7 == 0 ? nan : static_cast<float>(i), 0.0f, 0.0f), i % 5 == 0 ? nan : 1.0f};
  }
  PointLayer layer;
  layer.points = points;
  StagedPoints staged;
  stage_points(layer, &staged);
  EXPECT_EQ(staged.n_bad_positions, (300000u + 6) / 7);
  EXPECT_EQ(staged.n_bad_values, 60000u);
  EXPECT_EQ(staged.points[staged.order.stored_from_point(123457)].position.x(), 123457.0f);
  // Shaders need not treat what is not finite alike.
  for (const StagedPoint& p : staged.points) ASSERT_TRUE(p.position.allFinite());
  EXPECT_LE(staged.sample.size(), 1024u);
  EXPECT_GE(staged.sample.size(), 700u);
}

TEST(DrawCost, LearnsFromMeasurementsAndForgetsADisturbedOne) {
  DrawCost cost(1.0);
  EXPECT_EQ(cost.affordable(10.0, 1000), 10u);
  cost.learn(1000, 10.0);
  EXPECT_EQ(cost.affordable(10.0, 1'000'000), 1000u);
  EXPECT_EQ(cost.affordable(10.0, 500), 500u) << "not more than there are";
  EXPECT_EQ(cost.affordable(1e30, 500), 500u);
  EXPECT_EQ(cost.affordable(-1.0, 500), 0u);
  EXPECT_EQ(cost.affordable(std::nan(""), 500), 0u);
  cost.learn(1000, 1000.0);
  for (int i = 0; i < 10; ++i) cost.learn(1000, 10.0);
  EXPECT_NEAR(cost.ms(1000), 10.0, 1.0);
  cost.learn(0, 5.0);
  EXPECT_NEAR(cost.ms(1000), 10.0, 1.0);
  cost.learn(1000, 0.0);
  for (int i = 0; i < 100; ++i) cost.learn(1000, 0.0);
  EXPECT_EQ(cost.affordable(1.0, 777), 777u) << "a clock that stands still";
}

TEST(LegendTicks, AreNiceNumbersWithinTheRange) {
  EXPECT_EQ(legend_ticks(0.0, 1.0, 6), (std::vector<double>{0.0, 0.2, 0.4, 0.6, 0.8, 1.0}));
  EXPECT_EQ(legend_ticks(0.0, 1.0, 5), (std::vector<double>{0.0, 0.5, 1.0}));
  EXPECT_EQ(legend_ticks(-3.7, 12.2, 5), (std::vector<double>{0.0, 5.0, 10.0}));
  EXPECT_EQ(legend_ticks(0.1, 0.3, 3), (std::vector<double>{0.1, 0.2, 0.3}));
  EXPECT_EQ(legend_ticks(1234.0, 5678.0, 5), (std::vector<double>{2000.0, 3000.0, 4000.0, 5000.0}));
  EXPECT_EQ(legend_ticks(12.2, -3.7, 5), legend_ticks(-3.7, 12.2, 5));
  EXPECT_EQ(legend_ticks(1.1, 1.9, 1), (std::vector<double>{1.5}));
}

TEST(LegendTicks, NeverExceedTheirNumberNorLeaveTheRange) {
  for (const double scale : {1e-30, 1e-3, 1.0, 7.3, 1e12, 1e30}) {
    for (const double offset : {-1.0, -0.3, 0.0, 2.0, 1000.0}) {
      for (int most = 1; most <= 12; ++most) {
        const double min = offset * scale;
        const double max = (offset + 1.0) * scale;
        const std::vector<double> ticks = legend_ticks(min, max, most);
        ASSERT_LE(ticks.size(), static_cast<size_t>(most));
        ASSERT_GE(ticks.size(), most >= 2 ? 1u : 0u) << min << " " << max << " " << most;
        ASSERT_GE(ticks.size(), most >= 5 ? 2u : 0u);
        const double slack = 1e-6 * (max - min);
        for (const double tick : ticks) ASSERT_TRUE(tick >= min - slack && tick <= max + slack) << tick;
      }
    }
  }
}

TEST(LegendTicks, EndForRangesWithoutATick) {
  EXPECT_EQ(legend_ticks(2.5, 2.5, 5), (std::vector<double>{2.5}));
  EXPECT_EQ(legend_ticks(1e9, std::nextafter(1e9, 2e9), 5), (std::vector<double>{1e9}));
  EXPECT_EQ(legend_ticks(0.0, 1e-310, 5), (std::vector<double>{0.0}));
  EXPECT_TRUE(legend_ticks(0.0, std::numeric_limits<double>::infinity(), 5).empty());
  EXPECT_TRUE(legend_ticks(std::nan(""), 1.0, 5).empty());
  EXPECT_TRUE(legend_ticks(0.0, 1.0, 0).empty());
  EXPECT_FALSE(legend_ticks(-1.7e308, 1.7e308, 5).empty());
}

}  // namespace
}  // namespace coppice::render
