// Every event between operations of a traced function is needed: without it, the function is refused.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "core/error.h"
#include "sparse/device_operations.h"
#include "tests/sparse/random_functions.h"

namespace coppice::random_functions {
namespace {

// An argument of an operation of one of a module's functions.
struct Edge {
  size_t function, operation, argument;
};

class Edges : public testing::Test {
 protected:
  // Returns the module without that event.
  static executor::Module without(const Function& f, const Edge& e) {
    executor::Module module = f.module();
    std::vector<uint32_t>& arguments = module.functions[e.function].operations[e.operation].arguments;
    arguments.erase(arguments.begin() + static_cast<ptrdiff_t>(e.argument));
    if (arguments.empty()) arguments = {0};
    count_uses(module.functions[e.function]);
    return module;
  }
  std::string refusal(const Function& f, executor::Module module) const {
    try {
      Function::load(device_, std::move(module), f.loaded().bindings());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.what();
    }
    return "accepted";
  }
  // Returns what may be said of a missing event: that nothing orders its two operations, or one that came
  // before the former by its way and the latter.
  static std::set<std::string> reasons(const executor::LoadedFunction& f, uint32_t first, uint32_t second) {
    const std::vector<ResourceUses> uses = uses_of_operations(f);
    std::vector<uint32_t> open{first};
    std::set<std::string> texts;
    const auto name = [&](uint32_t i) { return f.register_names[f.operations[i].results[0]]; };
    while (!open.empty()) {
      const uint32_t i = open.back();
      open.pop_back();
      if (const ResourceUse* const what = conflict(uses[i], uses[second]))
        texts.insert(fmt::format("@{}: no event orders %{} and %{}, which both use {}", f.name, name(i),
                                 name(second), what->name));
      for (const uint32_t r : f.operations[i].arguments)
        if (f.registers[r].producer != executor::kNoOperation) open.push_back(f.registers[r].producer);
    }
    return texts;
  }
  void expect_needed(const Function& f, const Edge& e) {
    const executor::LoadedFunction& loaded = *f.loaded().functions()[e.function];
    const executor::LoadedOperation& op = loaded.operations[e.operation];
    const uint32_t from = loaded.registers[op.arguments[e.argument]].producer;
    if (from == executor::kNoOperation) return;
    const std::string text = refusal(f, without(f, e)),
                      name = loaded.register_names[op.arguments[e.argument]];
    ++num_edges_;
    if (op.info->name == "stream.join") {
      const std::string expected =
          fmt::format("@{}: the event that the function returns does not follow %{}", loaded.name, name);
      EXPECT_TRUE(text.ends_with(expected)) << text << "\n not: " << expected;
      return;
    }
    const std::set<std::string> expected = reasons(loaded, from, static_cast<uint32_t>(e.operation));
    EXPECT_TRUE(std::any_of(expected.begin(), expected.end(),
                            [&](const std::string& one) { return text.ends_with(one); }))
        << text << "\nwithout %" << name << " of\n"
        << executor::print(f.module().functions[e.function]) << "expected one of "
        << fmt::to_string(fmt::join(expected, "\n"));
  }
  void expect_all_needed(const Function& f) {
    for (size_t i = 0; i < f.module().functions.size(); ++i) {
      const executor::Function& function = f.module().functions[i];
      for (size_t op = 0; op < function.operations.size(); ++op) {
        for (size_t a = 0; a < function.operations[op].arguments.size(); ++a) expect_needed(f, {i, op, a});
      }
    }
  }

  const IntrusivePtr<Device> device_ = cpu_or_test_device(1);
  Program program_{device_};
  Tree tree_{device_, {.name = "line"}};
  Node upper_ = tree_.root().pointer({32}), leaf_ = upper_.dense({16});
  Field<int> x_ = leaf_.place<int>("x"), y_ = leaf_.place<int>("y"), z_ = leaf_.place<int>("z");
  const BufferRef words_ = device_->reserve(1024, 1024), others_ = device_->reserve(1024, 1024);
  int num_edges_ = 0;
};

TEST_F(Edges, OfAStepAreAllNeeded) {
  expect_all_needed(trace(device_, [&] {
    program_.launch(assign, over(leaf_), x_, 3);
    program_.launch(assign, over(leaf_), y_, 4);
    program_.launch(deposit, over(leaf_), x_, z_, 0);
    program_.launch(deposit, over(leaf_), y_, z_, 0);
    program_.launch(copy_scaled, over(leaf_), z_, x_, 1);
    program_.launch(grow_at, range(4), x_, words_->as<uint32_t>(), 1);
    tree_.deactivate_all();
    program_.launch(assign, over(leaf_), z_, 4);
    program_.launch(assign, over(leaf_), y_, 4);
  }));
  EXPECT_EQ(num_edges_, 10);
}

TEST_F(Edges, OfBuffersAreAllNeeded) {
  uint32_t* const words = words_->as<uint32_t>();
  expect_all_needed(trace(device_, [&] {
    fill(*device_, words_, 1, 0, 64);
    fill(*device_, others_, 2, 0, 64);
    sort_by_key<uint32_t>(*device_, words_, others_, 16);
    exclusive_scan(*device_, others_, others_, 16);
    program_.launch(mix_words, range(16), words, words, 3);
    program_.launch(mix_behind_members, range(16), CoppiceWords{words, words, 1});
    histogram(*device_, words_, 16, others_, 16);
    program_.launch(load, over(leaf_), x_, words);
    copy(*device_, words_, 0, words_, 512, 64);
  }));
  EXPECT_GE(num_edges_, 8);
}

TEST_F(Edges, OfControlFlowAreAllNeeded) {
  Slot<int32_t> times(device_, 2);
  const Function called = trace(
      device_, [&] { program_.launch(deposit, over(leaf_), x_, y_, 0); }, "called");
  expect_all_needed(trace(device_, [&] {
    program_.launch(assign, over(leaf_), x_, 3);
    repeat(times, [&] {
      program_.launch(assign, over(leaf_), z_, 1);
      loop_while({words_, 0}, [&] {
        program_.launch(change, over(leaf_), x_, 4);
        program_.launch(change, over(leaf_), y_, 4);
        program_.launch(lower_word, range(1), words_->as<uint32_t>());
      });
      program_.launch(copy_scaled, over(leaf_), z_, y_, 4);
    });
    called.run();
    called.run(3);
    branch({others_, 8}, [&] { program_.launch(change, over(leaf_), y_, 1); });
    fill(*device_, others_, 0, 0, 64);
    program_.launch(noise, over(leaf_), x_);
  }));
  EXPECT_GE(num_edges_, 12);
}

TEST_F(Edges, OfRandomFunctionsAreAllNeeded) {
  World world(device_, codegen_options());
  for (uint64_t seed = 0; seed < 40 && !HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    StatementDraw draw(seed);
    const TracedBody body(world, draw);
    expect_all_needed(body.function);
  }
  EXPECT_GE(num_edges_, 300);
}

}  // namespace
}  // namespace coppice::random_functions
