// The executor benchmark's parts: what one row times, and the groups of rows.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/report.h"

namespace coppice::bench {

// Programs for the same work. Each does it `n` times and leaves nothing behind.
struct MicroCase {
  using Run = std::function<void(int n)>;
  std::string name;  // without "executor/"
  int units = 1;     // that one of the n counts as: waiters, stages, elements
  std::string unit = "ns";
  Run ours, peer, floor;  // no peer: null
  std::string peer_name;
  std::string detail;  // what the floor is
  std::optional<Target> target;
  int n = 10'000;  // timed at once
};

// The compiler must take `value` for used.
template <class T>
void keep(const T& value) {
  asm volatile("" : : "r"(&value) : "memory");
}

std::vector<MicroCase> async_value_cases();
std::vector<MicroCase> ref_count_cases();
std::vector<MicroCase> graph_cases();

}  // namespace coppice::bench
