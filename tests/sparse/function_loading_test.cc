// Loading, printing and parsing functions takes a time that is linear in their number.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <string>
#include <utility>

#include "executor/text.h"
#include "random_functions.kernels.h"
#include "sparse/device_operations.h"
#include "sparse/function.h"
#include "sparse/function_events.h"
#include "tests/sparse/test_devices.h"

namespace coppice {
namespace {

// Returns the median of three times that `f` takes of a processor, in seconds: what else runs does not count.
template <class F>
double median_time_s(const F& f) {
  std::array<double, 3> times{};
  for (double& time : times) {
    const std::clock_t begin = std::clock();
    f();
    time = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  }
  std::sort(times.begin(), times.end());
  return times[1];
}

class FunctionLoading : public testing::Test {
 protected:
  static constexpr int kFew = 2000, kMany = 20'000;
  static constexpr double kMostTimes = 25;  // that ten times as many take; quadratic is 100

  FunctionLoading() {
    bindings_.add("deposit", program_.bind(deposit, over(leaf_), x_, y_, 0));
    bindings_.add("times", Slot<int32_t>(device_, 2));
  }
  static void add(executor::Function& f, std::string name, std::vector<executor::Attribute> attributes) {
    add_operation(f, {.name = std::move(name), .attributes = std::move(attributes)}, "e");
    f.operations.back().arguments = {0};
  }
  // Lets the function return when all of its operations are done, which may run in any order.
  static void join(executor::Function& f) {
    std::vector<uint32_t> all;
    for (const executor::Operation& op : f.operations) all.push_back(op.results[0]);
    add_operation(f, {.name = "stream.join", .arguments = std::move(all)}, "end");
    f.returns = f.operations.back().results;
    count_uses(f);
  }
  // Each function has two others as bodies, so that the first leads to all. Their sums may come in any order,
  // so that no pair of uses ends the search for a conflict early.
  static executor::Module module_of(int functions) {
    executor::Module module{.file = "built"};
    const auto name = [](int i) { return fmt::format("f{}", i); };
    for (int i = 0; i < functions; ++i) {
      executor::Function f = event_function(name(i));
      add(f, "sparse.launch", {executor::BindingRef{"deposit"}});
      if (2 * i + 1 < functions)
        add(f, "sparse.repeat", {int64_t{2}, executor::FunctionRef{name(2 * i + 1)}});
      if (2 * i + 2 < functions)
        add(f, "sparse.repeat_by", {executor::BindingRef{"times"}, executor::FunctionRef{name(2 * i + 2)}});
      join(f);
      module.functions.push_back(std::move(f));
    }
    return module;
  }
  template <class F>
  static void expect_linear(const F& f) {
    const double few = median_time_s([&] { f(kFew); }), many = median_time_s([&] { f(kMany); });
    EXPECT_LT(many, kMostTimes * few) << few << " s and " << many << " s";
  }

  const IntrusivePtr<Device> device_ = cpu_or_test_device(1);
  Program program_{device_};
  Tree tree_{device_};
  Node leaf_ = tree_.root().pointer({32}).dense({16});
  Field<int> x_ = leaf_.place<int>("x"), y_ = leaf_.place<int>("y");
  executor::Bindings bindings_;
};

TEST_F(FunctionLoading, IsLinear) {
  const std::pair<int, executor::Module> modules[]{{kFew, module_of(kFew)}, {kMany, module_of(kMany)}};
  expect_linear([&](int functions) {
    const auto& module = functions == kFew ? modules[0].second : modules[1].second;
    EXPECT_EQ(Function::load(device_, module, bindings_).module().functions.size(), functions);
  });
}

TEST_F(FunctionLoading, OfTextIsLinear) {
  const std::string few = print(module_of(kFew)), many = print(module_of(kMany));
  expect_linear([&](int functions) {
    const std::string& text = functions == kFew ? few : many;
    EXPECT_TRUE(print(executor::parse(text)) == text);
  });
}

TEST_F(FunctionLoading, NamesManyLaunchesOfOneKernelInOrder) {
  const Function f = trace(device_, [&] {
    for (int i = 0; i < 3000; ++i) program_.launch(deposit, over(leaf_), x_, y_, 0);
  });
  const executor::Function& main = f.module().functions[0];
  for (const size_t i : {0, 1, 2999}) {
    const std::string number = i == 0 ? "" : fmt::format(".{}", i + 1);
    EXPECT_EQ(main.registers[main.operations[i].results[0]].name, "deposit" + number);
    EXPECT_EQ(std::get<executor::BindingRef>(main.operations[i].attributes[0]).name,
              "random_functions.deposit" + number);
  }
}

// 2^40 runs of the innermost are in it.
TEST_F(FunctionLoading, OfFunctionsThatRunOthersTwiceIsLinear) {
  Function f = trace(device_, [&] { program_.launch(deposit, over(leaf_), x_, y_, 0); });
  for (int depth = 0; depth < 40; ++depth) f = trace(device_, [&, inner = f] { inner.run(), inner.run(); });
  EXPECT_EQ(f.work().uses.size(), 3u) << "a use for each thing";
}
TEST_F(FunctionLoading, OfBodiesThatAreNamedTwiceIsLinear) {
  executor::Module module;
  for (int depth = 0; depth < 40; ++depth) {
    executor::Function f = event_function(fmt::format("f{}", depth));
    for (int i = 0; i < 2; ++i) {
      if (depth == 39)
        add(f, "sparse.launch", {executor::BindingRef{"deposit"}});
      else
        add(f, "sparse.repeat", {int64_t{2}, executor::FunctionRef{fmt::format("f{}", depth + 1)}});
    }
    join(f);
    module.functions.push_back(std::move(f));
  }
  EXPECT_EQ(Function::load(device_, std::move(module), bindings_).module().functions.size(), 40u);
}

}  // namespace
}  // namespace coppice
