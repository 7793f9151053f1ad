// Computes a random module (random_graph.h) serially, over plain numbers and errors.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "executor/module.h"

namespace coppice::executor {

// A number (of a bool: 0 or 1), or an error's message.
struct Outcome {
  int32_t value = 0;
  std::string error;
  bool operator==(const Outcome&) const = default;
};

class SerialInterpreter {
 public:
  explicit SerialInterpreter(const Module& module) {
    for (const Function& f : module.functions) functions_[f.name] = &f;
  }

  std::vector<Outcome> run(const std::string& name, const std::vector<Outcome>& arguments) const {
    const Function& f = *functions_.at(name);
    std::vector<Outcome> registers = arguments, returned;
    for (const Operation& op : f.operations) {
      std::vector<Outcome> in;
      for (const uint32_t r : op.arguments) in.push_back(registers[r]);
      const std::vector<Outcome> out = control_flow(op, in);
      registers.insert(registers.end(), out.begin(), out.end());
    }
    for (const uint32_t r : f.returns) returned.push_back(registers[r]);
    return returned;
  }

 private:
  using Values = std::vector<Outcome>;
  static const std::string& function(const Operation& op, size_t i) {
    return std::get<FunctionRef>(op.attributes[i]).name;
  }

  Values control_flow(const Operation& op, const Values& in) const {
    if (op.name == "call") return run(function(op, 0), in);
    const bool is_loop = op.name == "repeat" || op.name == "while";
    if (!is_loop && op.name != "if" && op.name != "case") return strict(op, in);
    Values carried(in.begin() + 1, in.end());
    if (!in[0].error.empty()) return Values(op.results.size(), in[0]);
    if (op.name == "repeat") {
      for (int32_t i = 0; i < in[0].value; ++i) carried = run(function(op, 0), carried);
    } else if (op.name == "while") {
      for (Outcome more = in[0]; more.value != 0;) {
        carried = run(function(op, 0), carried);
        more = carried.back();
        carried.pop_back();
        if (!more.error.empty()) return Values(op.results.size(), more);
      }
    } else if (op.name == "if") {
      carried = run(function(op, in[0].value != 0 ? 0 : 1), carried);
    } else {
      if (in[0].value < 0 || in[0].value > 2)
        return Values(op.results.size(), {0, fmt::format("case {} of 3 functions", in[0].value)});
      carried = run(function(op, static_cast<size_t>(in[0].value)), carried);
    }
    return carried;
  }

  static Values strict(const Operation& op, const Values& in) {
    for (const Outcome& argument : in) {
      if (!argument.error.empty()) return Values(op.results.size(), argument);
    }
    const auto wrapped = [](uint32_t value) { return Outcome{static_cast<int32_t>(value), ""}; };
    const int32_t a = in.empty() ? 0 : in[0].value, b = in.size() < 2 ? 0 : in[1].value;
    const auto ua = static_cast<uint32_t>(a), ub = static_cast<uint32_t>(b);
    const std::string& name = op.name;
    if (name == "constant.i32") return {wrapped(static_cast<uint32_t>(std::get<int64_t>(op.attributes[0])))};
    if (name == "add.i32" || name == "async_add.i32") return {wrapped(ua + ub)};
    if (name == "sub.i32" || name == "async_sub.i32") return {wrapped(ua - ub)};
    if (name == "mul.i32") return {wrapped(ua * ub)};
    if (name == "min.i32") return {{std::min(a, b), ""}};
    if (name == "max.i32") return {{std::max(a, b), ""}};
    if (name == "less.i32") return {{a < b ? 1 : 0, ""}};
    if (name == "div.i32") {
      if (b == 0) return {{0, fmt::format("{} divided by zero", a)}};
      return {b == -1 ? wrapped(0 - ua) : Outcome{a / b, ""}};
    }
    if (name == "fail_with.i32" || name == "async_fail_with.i32")
      return {{0, fmt::format("failure {}", std::get<int64_t>(op.attributes[0]))}};
    if (name == "swap.i32") return {in[1], in[0]};
    if (name == "sum_and_difference.i32") return {wrapped(ua + ub), wrapped(ua - ub)};
    if (name == "async_twice.i32") return {wrapped(ua + ub), wrapped(ua + ub)};
    return {in[0]};  // same.i32, compute.i32, blocking.i32
  }

  std::map<std::string, const Function*> functions_;
};

}  // namespace coppice::executor
