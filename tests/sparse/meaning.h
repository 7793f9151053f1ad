// Small computations whose result depends on C++'s own rules: storage of one item's own, and the order of its
// accesses.
//
// Device-clean: kernels (meaning.kernels.cc) and the test that expects the same of the host call the same
// functions.
#pragma once

namespace coppice::meaning {

// An array of one item's own, read at an index that only the run knows.
inline float pick(float x, int axis) {
  const float v[3] = {x, 2 * x, 3 * x};
  return v[axis];
}

// The same, written at such an index.
inline float tally(float x, int axis) {
  float sums[4] = {1, 2, 3, 4};
  sums[axis] += x;
  sums[3 - axis] *= 2;
  return sums[0] + 10 * sums[1] + 100 * sums[2] + 1000 * sums[3];
}

// Pointers to an item's variables, in an array.
inline float point(float x, int axis) {
  float a = x, b = x + 1;
  float* const to[2] = {&a, &b};
  *to[axis & 1] = -x;
  return a * 8 + b;
}

// A sort of five values.
inline float middle(float x, int axis) {
  float v[5] = {x, 3 - x, x * x, static_cast<float>(axis), 2};
  for (int i = 1; i < 5; ++i) {
    const float moved = v[i];
    int j = i;
    for (; j > 0 && v[j - 1] > moved; --j) v[j] = v[j - 1];
    v[j] = moved;
  }
  return v[2];
}

struct Pair {
  float first, second;
};
// One of a pair's members is written, then either is read, then the other is written.
inline float through(Pair& pair, const float* any, float x) {
  pair.first = x;
  const float seen = *any;
  pair.second = x + 1;
  return seen;
}

struct Scratch {
  mutable float v[3];
};
struct Measure {
  explicit constexpr Measure(float v) : value(v) {}
  float value;
};

}  // namespace coppice::meaning
