// Random modules for stress tests. What they compute: serial_interpreter.h.
//
// Functions are (i32, i32) -> (i32, i32), bodies of `while` (i32 left, i32, i32) -> (i32, i32, i32, bool),
// @main returns any registers, some of them several times. A function refers to earlier ones only,
// repetitions and cases are limited, so that every module ends after a few thousand operations.
// Operations: random_graph_run.h.
#pragma once
#include <fmt/format.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "executor/module.h"

namespace coppice::executor {

class RandomGraph {
 public:
  // @main has about n operations of its own.
  static Module make(uint64_t seed, size_t n) {
    RandomGraph graph(seed);
    graph.make_functions(n);
    return std::move(graph.module_);
  }

 private:
  static constexpr int kMostCost = 3000;  // operations that one call of @main may run, estimated
  using Random = std::mt19937_64;

  explicit RandomGraph(uint64_t seed) : random_(seed) { module_.file = "random.graph"; }

  int below(size_t n) { return static_cast<int>(random_() % n); }

  void make_functions(size_t n) {
    for (int i = 0, count = below(5); i < count; ++i) {
      const bool is_body = below(3) == 0;
      begin(fmt::format("f{}", i), is_body ? 3 : 2);
      add_operations(1 + below(8), kMostCost / 20);
      is_body ? end_body() : end({any(), any()});
      (is_body ? bodies_ : functions_).emplace_back(function_.name, cost_);
      module_.functions.push_back(std::move(function_));
    }
    begin("main", 2);
    add_operations(n, kMostCost);
    std::vector<uint32_t> returned;
    for (int i = 1 + below(6); i > 0; --i) returned.push_back(any());
    if (below(2) == 0) returned.push_back(returned[0]);
    end(std::move(returned));
    module_.functions.push_back(std::move(function_));
  }

  void begin(std::string name, size_t arguments) {
    function_ = Function();
    function_.name = std::move(name);
    function_.argument_types.assign(arguments, "i32");
    for (size_t i = 0; i < arguments; ++i) new_register();
    // The first of a body's is its counter.
    ints_ = arguments == 3 ? std::vector<uint32_t>{1, 2} : std::vector<uint32_t>{0, 1};
    cost_ = 1;
  }
  void end(std::vector<uint32_t> returned) {
    if (function_.result_types.empty()) function_.result_types.assign(returned.size(), "i32");
    function_.returns = std::move(returned);
    count_uses(function_);
  }
  // One less to do; more while that is positive.
  void end_body() {
    const uint32_t one = emit("constant.i32", {int64_t{1}}, {}),
                   zero = emit("constant.i32", {int64_t{0}}, {});
    const uint32_t left = emit(below(2) == 0 ? "sub.i32" : "async_sub.i32", {}, {0, one});
    const uint32_t more = emit("less.i32", {}, {zero, left});
    function_.result_types = {"i32", "i32", "i32", "bool"};
    end({left, any(), any(), more});
  }

  uint32_t new_register() {
    const auto r = static_cast<uint32_t>(function_.registers.size());
    function_.registers.push_back({fmt::format("r{}", r), 1, {}});
    return r;
  }
  uint32_t any() { return ints_[static_cast<size_t>(below(ints_.size()))]; }
  uint32_t recent() {  // makes chains longer than a uniform choice does
    return below(2) == 0 ? ints_.back() : any();
  }
  // The first of the results, which have consecutive numbers.
  uint32_t emit(std::string name, std::vector<Attribute> attributes, std::vector<uint32_t> arguments,
                size_t n = 1) {
    std::vector<uint32_t> results;
    for (size_t i = 0; i < n; ++i) results.push_back(new_register());
    function_.operations.push_back({std::move(name),
                                    std::move(attributes),
                                    std::move(arguments),
                                    results,
                                    {static_cast<uint32_t>(function_.operations.size() + 1), 1}});
    return results[0];
  }
  // min(max(r, low), high)
  uint32_t clip(uint32_t r, int64_t low, int64_t high) {
    const uint32_t least = emit("constant.i32", {low}, {}), most = emit("constant.i32", {high}, {});
    return emit("min.i32", {}, {emit("max.i32", {}, {r, least}), most});
  }

  void add_operations(size_t n, int budget) {
    for (size_t i = 0; i < n; ++i) {
      ++cost_;
      const int kind = below(100);
      if (kind < 12 && add_control_flow(budget)) continue;
      kind < 90 ? add_plain() : add_special();
    }
  }
  void add_plain() {
    static constexpr const char* kBinary[] = {"add.i32", "sub.i32",       "mul.i32",       "min.i32",
                                              "max.i32", "async_add.i32", "async_sub.i32", "async_add.i32"};
    if (below(8) == 0) return ints_.push_back(emit("constant.i32", {int64_t{below(20) - 5}}, {}));
    ints_.push_back(emit(kBinary[below(std::size(kBinary))], {}, {recent(), any()}));
  }
  void add_special() {
    const auto two = [&](const char* name) {
      const uint32_t first = emit(name, {}, {any(), any()}, 2);
      ints_.insert(ints_.end(), {first, first + 1});
    };
    switch (below(9)) {
      case 0:
        return ints_.push_back(emit("div.i32", {}, {recent(), any()}));
      case 1:
        return ints_.push_back(emit("fail_with.i32", {int64_t{below(1000)}}, {any()}));
      case 2:
        return ints_.push_back(emit("async_fail_with.i32", {int64_t{below(1000)}}, {any()}));
      case 3:
        return ints_.push_back(emit("compute.i32", {}, {recent()}));
      case 4:
        return ints_.push_back(emit("blocking.i32", {}, {recent()}));
      case 5:
        return two("swap.i32");
      case 6:
        return two("sum_and_difference.i32");
      case 7:
        return two("async_twice.i32");
      default:
        return ints_.push_back(emit("same.i32", {}, {recent()}));
    }
  }
  bool add_control_flow(int budget) {
    const int kind = below(5);
    const auto& choices = kind == 4 ? bodies_ : functions_;
    if (choices.empty()) return false;
    const auto& [f, f_cost] = choices[static_cast<size_t>(below(choices.size()))];
    const auto& [g, g_cost] = choices[static_cast<size_t>(below(choices.size()))];
    const int times = kind < 2 ? 1 : kind == 4 ? 4 : 3;
    if (cost_ + times * (f_cost + g_cost) > budget) return false;
    cost_ += times * (f_cost + g_cost);
    std::vector<Attribute> loop{FunctionRef{f}};
    if (below(2) == 0) loop.emplace_back(int64_t{1 + below(4)});
    uint32_t first = 0;
    switch (kind) {
      case 0:
        first = emit("call", {FunctionRef{f}}, {any(), recent()}, 2);
        break;
      case 1:
        first = emit("if", {FunctionRef{f}, FunctionRef{g}},
                     {emit("less.i32", {}, {any(), any()}), any(), recent()}, 2);
        break;
      case 2:
        first = emit("case", {FunctionRef{f}, FunctionRef{g}, FunctionRef{f}},
                     {clip(any(), -1, 3), any(), recent()}, 2);
        break;
      case 3:
        first = emit("repeat", loop, {clip(any(), -1, 3), any(), recent()}, 2);
        break;
      default:
        first = emit("while", loop,
                     {emit("less.i32", {}, {any(), any()}), clip(any(), 0, 4), any(), recent()}, 3);
    }
    ints_.insert(ints_.end(), {first, first + 1});
    return true;
  }

  Random random_;
  Module module_;
  Function function_;
  int cost_ = 0;
  std::vector<uint32_t> ints_;
  std::vector<std::pair<std::string, int>> functions_, bodies_;
};

}  // namespace coppice::executor
