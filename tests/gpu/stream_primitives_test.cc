// gpu/stream_primitives.h on every device, given at once and in a recording, against gpu/primitives.h on the
// host.
//
// On cuda that compares CUB with Thrust; "cuda_on_fake" is the cuda device's own code on the fake driver.
// Nothing begins where memory begins, and what lies behind an output stays. Floats are small integers, whose
// sums are exact in any order. Breaks that were seen to fail here: a result that is not written for n = 0; a
// bin count that is one too small; the keys of one digit not sorted.
#include "gpu/stream_primitives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "core/error.h"
#include "gpu/cuda/cuda_device.h"
#include "gpu/device.h"
#include "gpu/primitives.h"
#include "tests/gpu/fake_driver.h"

namespace coppice {
namespace {

constexpr uint64_t kSeed = 20261122;
constexpr size_t kBefore = 3, kBehind = 5;  // values around an array
constexpr unsigned char kPoison = 0xA5;

template <class T>
std::vector<T> random_values(size_t n, uint64_t largest) {
  std::mt19937_64 random(kSeed + n);
  std::uniform_int_distribution<uint64_t> distribution(0, largest);
  std::vector<T> values(n);
  for (T& value : values) {
    value = static_cast<T>(distribution(random));
    if constexpr (std::is_floating_point_v<T>) value -= static_cast<T>(largest / 2);
  }
  return values;
}

struct Where {
  std::string device;
  bool is_recorded;
};
std::vector<Where> everywhere() {
  std::vector<Where> all;
  for (const char* device : {"cpu", "simt", "cuda_on_fake", "cuda"}) {
    for (const bool is_recorded : {false, true}) all.push_back({device, is_recorded});
  }
  return all;
}

class StreamPrimitives : public testing::TestWithParam<Where> {
 protected:
  // An array on the device, with other memory around it.
  template <class T>
  class Array {
   public:
    Array(StreamPrimitives& test, const std::vector<T>& values) : Array(test, values.size()) {
      if (size_ > 0) test.device->wait_copy(data(), values.data(), size_ * sizeof(T));
    }
    Array(StreamPrimitives& test, size_t size) : test_(test), size_(size) {
      const std::vector<unsigned char> poison((kBefore + size + kBehind) * sizeof(T), kPoison);
      buffer_ = test.device->reserve(poison.size(), poison.size());
      test.device->wait_copy(buffer_->data(), poison.data(), poison.size());
    }
    T* data() const { return buffer_->template as<T>() + kBefore; }
    // Returns its values; the memory around it must be as it was.
    std::vector<T> wait_values() const {
      std::vector<T> all(kBefore + size_ + kBehind);
      test_.device->wait_copy(all.data(), buffer_->data(), all.size() * sizeof(T));
      const auto is_poison = [](const T& value) {
        const auto* const bytes = reinterpret_cast<const unsigned char*>(&value);
        return std::all_of(bytes, bytes + sizeof(T), [](unsigned char byte) { return byte == kPoison; });
      };
      EXPECT_TRUE(std::all_of(all.begin(), all.begin() + kBefore, is_poison)) << "before the array";
      EXPECT_TRUE(std::all_of(all.end() - kBehind, all.end(), is_poison)) << "behind the array";
      return {all.begin() + kBefore, all.end() - kBehind};
    }
    T wait_value() const { return wait_values().at(0); }

   private:
    StreamPrimitives& test_;
    const size_t size_;
    IntrusivePtr<Buffer> buffer_;
  };

  void SetUp() override {
    const std::string& name = GetParam().device;
    if (name == "cuda_on_fake") driver = std::make_unique<fake::FakeDriver>();
    try {
      device = driver ? cuda::make_device(driver->table()) : Device::named(name);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnavailable) throw;
      GTEST_SKIP() << error.what();
    }
    stream = device->create_stream();
  }
  void TearDown() override {
    stream.reset();
    device.reset();
    if (driver) {
      EXPECT_EQ(driver->report(), "");
    }
  }
  std::vector<size_t> sizes() const {
    std::vector<size_t> sizes{0, 1, 3, 1023, 1024, 200'003};
    if (GetParam().device == "cuda") sizes.push_back(5'000'011);  // more than the whole GPU takes at once
    return sizes;
  }
  // In the stream's order; from a recording where the case says so.
  void give(const std::function<void(InStream&)>& calls) {
    const auto done = stream->issue("test.primitives", [&](InStream& s) {
      if (!GetParam().is_recorded) return calls(s);
      const IntrusivePtr<Recording> recording = s.record(calls);
      s.replay(*recording);
    });
    wait(done);
    if (done.is_error()) throw done.error();
  }
  template <class Key>
  void expect_sorts(uint64_t largest_key) {
    for (const size_t n : sizes()) {
      SCOPED_TRACE(testing::Message() << "n " << n << ", keys to " << largest_key << ", seed " << kSeed + n);
      std::vector<Key> keys = random_values<Key>(n, largest_key);
      std::vector<uint32_t> values(n);
      for (size_t i = 0; i < n; ++i)
        values[i] = static_cast<uint32_t>(i);  // shows an order that is not stable
      const Array<Key> own_keys(*this, keys);
      const Array<uint32_t> own_values(*this, values);
      give([&](InStream& s) { primitives::sort_by_key(s, own_keys.data(), own_values.data(), n); });
      primitives::sort_by_key(keys.data(), values.data(), n);
      EXPECT_TRUE(own_keys.wait_values() == keys);
      EXPECT_TRUE(own_values.wait_values() == values);
    }
  }
  template <class T>
  void expect_sums(uint64_t largest) {
    for (const size_t n : sizes()) {
      SCOPED_TRACE(testing::Message() << "n " << n << ", seed " << kSeed + n);
      const std::vector<T> in = random_values<T>(n, largest);
      // Segments without anything, short ones and, last, one long one.
      std::vector<uint32_t> starts{0};
      for (size_t s = 0; starts.back() < n / 2; ++s)
        starts.push_back(static_cast<uint32_t>(std::min(n, starts.back() + s * s % 7 * s)));
      starts.push_back(static_cast<uint32_t>(n));
      const size_t segments = starts.size() - 1;
      const Array<T> own_in(*this, in);
      const Array<uint32_t> own_starts(*this, starts);
      const Array<primitives::SumOf<T>> own_sum(*this, 1), own_sums(*this, segments);
      const Array<T> own_largest(*this, 1);
      give([&](InStream& s) {
        primitives::sum(s, own_in.data(), n, own_sum.data());
        primitives::max(s, own_in.data(), n, own_largest.data());
        primitives::segmented_sum(s, own_in.data(), own_starts.data(), segments, own_sums.data());
      });
      std::vector<primitives::SumOf<T>> sums(segments);
      primitives::segmented_sum(in.data(), starts.data(), segments, sums.data());
      EXPECT_EQ(own_sum.wait_value(), primitives::sum(in.data(), n));
      EXPECT_EQ(own_largest.wait_value(), primitives::max(in.data(), n));
      EXPECT_TRUE(own_sums.wait_values() == sums);
    }
  }

  std::unique_ptr<fake::FakeDriver> driver;
  IntrusivePtr<Device> device;
  IntrusivePtr<Stream> stream;
};

TEST_P(StreamPrimitives, SortsByKeyStably) {
  expect_sorts<uint32_t>(7);
  expect_sorts<uint32_t>(UINT32_MAX);
}

TEST_P(StreamPrimitives, SortsByLongKeyStably) {
  expect_sorts<uint64_t>(300);
  expect_sorts<uint64_t>(UINT64_MAX);
}

TEST_P(StreamPrimitives, ScansExclusivelyWithATotalOf64Bits) {
  for (const size_t n : sizes()) {
    for (const uint64_t largest : {uint64_t{9}, uint64_t{UINT32_MAX}}) {
      SCOPED_TRACE(testing::Message() << "n " << n << ", to " << largest << ", seed " << kSeed + n);
      const std::vector<uint32_t> in = random_values<uint32_t>(n, largest);
      std::vector<uint32_t> out(n);
      const uint64_t total = primitives::exclusive_scan(in.data(), out.data(), n);
      const Array<uint32_t> own_in(*this, in), own_out(*this, n);
      const Array<uint64_t> own_total(*this, 1), own_total_in_place(*this, 1);
      give([&](InStream& s) {
        primitives::exclusive_scan(s, own_in.data(), own_out.data(), n, own_total.data());
        primitives::exclusive_scan(s, own_in.data(), own_in.data(), n, own_total_in_place.data());
        primitives::exclusive_scan(s, own_out.data(), own_out.data(), 0, nullptr);
      });
      EXPECT_TRUE(own_out.wait_values() == out);
      EXPECT_EQ(own_total.wait_value(), total);
      EXPECT_TRUE(own_in.wait_values() == out) << "in place";
      EXPECT_EQ(own_total_in_place.wait_value(), total) << "in place";
    }
  }
}

TEST_P(StreamPrimitives, SumsAndFindsTheLargestOfIntegers) {
  expect_sums<uint32_t>(UINT32_MAX);
  expect_sums<uint64_t>(UINT64_MAX);
}

TEST_P(StreamPrimitives, SumsAndFindsTheLargestOfFloats) {
  expect_sums<float>(1 << 20);
  expect_sums<double>(1 << 20);
}

TEST_P(StreamPrimitives, SelectsTheIndicesOfSetFlags) {
  for (const size_t n : sizes()) {
    SCOPED_TRACE(testing::Message() << "n " << n << ", seed " << kSeed + n);
    std::vector<uint32_t> flags = random_values<uint32_t>(n, 2);
    for (uint32_t& flag : flags) flag <<= flag == 2 ? 30 : 0;  // any bit counts
    std::vector<uint32_t> indices(n);
    const size_t count = primitives::select_if_flag(flags.data(), indices.data(), n);
    const Array<uint32_t> own_flags(*this, flags), own_indices(*this, n);
    const Array<uint64_t> own_count(*this, 1);
    give([&](InStream& s) {
      primitives::select_if_flag(s, own_flags.data(), own_indices.data(), n, own_count.data());
    });
    ASSERT_EQ(own_count.wait_value(), count);
    std::vector<uint32_t> selected = own_indices.wait_values();
    selected.resize(count), indices.resize(count);
    EXPECT_TRUE(selected == indices);
  }
}

TEST_P(StreamPrimitives, EncodesRunsOfEqualNeighbours) {
  for (const size_t n : sizes()) {
    for (const uint64_t largest : {uint64_t{1}, uint64_t{1000}}) {
      SCOPED_TRACE(testing::Message() << "n " << n << ", to " << largest << ", seed " << kSeed + n);
      const std::vector<uint32_t> keys = random_values<uint32_t>(n, largest);
      std::vector<uint32_t> unique(n), counts(n);
      const size_t runs = primitives::run_length_encode(keys.data(), unique.data(), counts.data(), n);
      const Array<uint32_t> own_keys(*this, keys), own_unique(*this, n), own_counts(*this, n);
      const Array<uint64_t> own_runs(*this, 1);
      give([&](InStream& s) {
        primitives::run_length_encode(s, own_keys.data(), own_unique.data(), own_counts.data(), n,
                                      own_runs.data());
      });
      ASSERT_EQ(own_runs.wait_value(), runs);
      std::vector<uint32_t> found_unique = own_unique.wait_values(), found_counts = own_counts.wait_values();
      found_unique.resize(runs), unique.resize(runs), found_counts.resize(runs), counts.resize(runs);
      EXPECT_TRUE(found_unique == unique);
      EXPECT_TRUE(found_counts == counts);
    }
  }
}

// Few bins and many; about half of the keys lie in none.
TEST_P(StreamPrimitives, CountsKeysInBinsAndFindsWhereBinsBegin) {
  for (const size_t n : sizes()) {
    for (const size_t n_bins : {size_t{0}, size_t{1}, size_t{100}, size_t{2048}, size_t{2049}, n / 3}) {
      SCOPED_TRACE(testing::Message() << "n " << n << ", bins " << n_bins << ", seed " << kSeed + n);
      std::vector<uint32_t> keys = random_values<uint32_t>(n, 2 * n_bins);
      std::vector<uint32_t> counts(n_bins), starts(n_bins + 1);
      primitives::histogram(keys.data(), n, counts.data(), n_bins);
      const Array<uint32_t> own_keys(*this, keys), own_counts(*this, n_bins), own_starts(*this, n_bins + 1);
      std::sort(keys.begin(), keys.end());
      primitives::bin_starts(keys.data(), n, starts.data(), n_bins);
      const Array<uint32_t> own_sorted(*this, keys);
      give([&](InStream& s) {
        primitives::histogram(s, own_keys.data(), n, own_counts.data(), n_bins);
        primitives::bin_starts(s, own_sorted.data(), n, own_starts.data(), n_bins);
      });
      EXPECT_TRUE(own_counts.wait_values() == counts);
      EXPECT_TRUE(own_starts.wait_values() == starts);
    }
  }
}

TEST_P(StreamPrimitives, BringsResultsToTheHost) {
  if (GetParam().is_recorded) GTEST_SKIP() << "a recording reads nothing back";
  const std::vector<uint32_t> in = random_values<uint32_t>(5000, UINT32_MAX);
  std::vector<uint32_t> expected(in.size()), second(in.size());
  const Array<uint32_t> own_in(*this, in), out(*this, in.size()), other(*this, in.size());
  give([&](InStream& s) {
    EXPECT_EQ(primitives::wait_sum(s, own_in.data(), in.size()), primitives::sum(in.data(), in.size()));
    EXPECT_EQ(primitives::wait_max(s, own_in.data(), in.size()), primitives::max(in.data(), in.size()));
    EXPECT_EQ(primitives::wait_exclusive_scan(s, own_in.data(), out.data(), in.size()),
              primitives::exclusive_scan(in.data(), expected.data(), in.size()));
    EXPECT_EQ(primitives::wait_select_if_flag(s, own_in.data(), out.data(), in.size()),
              primitives::select_if_flag(in.data(), expected.data(), in.size()));
    EXPECT_EQ(primitives::wait_run_length_encode(s, own_in.data(), out.data(), other.data(), in.size()),
              primitives::run_length_encode(in.data(), expected.data(), second.data(), in.size()));
    EXPECT_EQ(primitives::wait_sum(s, own_in.data(), 0), 0u);
  });
}

// Each replay works on what is there then: the same memory with other values, and what the stream does
// between.
TEST_P(StreamPrimitives, AreDoneAgainByEachReplay) {
  if (!GetParam().is_recorded) GTEST_SKIP() << "of recordings";
  constexpr size_t kCount = 3000;
  const Array<uint32_t> values(*this, kCount), larger(*this, 20 * kCount);
  const Array<uint64_t> total(*this, 1);
  IntrusivePtr<Recording> recording;
  wait(stream->issue("test.record", [&](InStream& s) {
    recording = s.record([&](InStream& r) {
      primitives::exclusive_scan(r, values.data(), values.data(), kCount, total.data());
      primitives::sort_by_key(r, values.data(), larger.data(), kCount);
    });
  }));
  for (uint32_t round = 1; round < 4; ++round) {
    const std::vector<uint32_t> in(kCount, round);
    wait(stream->copy(values.data(), in.data(), kCount * sizeof(uint32_t)));
    const auto done = stream->issue("test.replay", [&](InStream& s) {
      primitives::sort_by_key(s, larger.data(), larger.data() + 10 * kCount,
                              10 * kCount);  // more scratch
      s.replay(*recording);
    });
    wait(done);
    ASSERT_FALSE(done.is_error()) << done.error().what();
    EXPECT_EQ(total.wait_value(), uint64_t{round} * kCount);
    const std::vector<uint32_t> sums = values.wait_values();
    for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(sums[i], round * i);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, StreamPrimitives, testing::ValuesIn(everywhere()), [](const auto& info) {
  return info.param.device + (info.param.is_recorded ? "_recorded" : "_at_once");
});

}  // namespace
}  // namespace coppice
