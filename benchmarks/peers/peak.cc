// Multiply-adds on registers (see peak.h). Compiled with -O3 -march=native -ffp-contract=fast.
#include "benchmarks/peers/peak.h"

namespace coppice::bench {
namespace {

#ifdef __AVX512F__
constexpr size_t kBytes = 64;
#else
constexpr size_t kBytes = 32;
#endif
typedef float Vector __attribute__((vector_size(kBytes)));
constexpr size_t kLanes = kBytes / sizeof(float);

}  // namespace

double multiply_and_add(size_t rounds, float* sink) {
  // Twelve chains: two units, each with a latency of four or five cycles, and no more than sixteen registers.
  constexpr size_t kChains = 12;
  Vector chain[kChains], factor = {}, term = {};
  factor += 0.999f, term += *sink;
  for (size_t i = 0; i < kChains; ++i) chain[i] = term + static_cast<float>(i);
  for (size_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (size_t i = 0; i < kChains; ++i) chain[i] = chain[i] * factor + term;
  }
  for (size_t i = 0; i < kChains; ++i) {
    for (size_t lane = 0; lane < kLanes; ++lane) *sink += chain[i][lane];
  }
  return 2.0 * kLanes * kChains * static_cast<double>(rounds);
}

}  // namespace coppice::bench
