// Functions of cheap operations, beside oneTBB's flow graph and a loop over function pointers.
//
// All three add small integers: ours as async values of type i32 that are made and dropped, oneTBB's nodes
// into an array of plain integers, the floor's loop the same in the order of the operations.
#include <fmt/format.h>

#include <memory>
#include <random>
#include <utility>

#include "benchmarks/executor_cases.h"
#include "benchmarks/peers/tbb_flow_graph.h"
#include "executor/builtin_operations.h"
#include "executor/executor.h"
#include "executor/planned/instance.h"

namespace coppice::bench {
namespace {

namespace ex = coppice::executor;
using Shape = GraphShape;

Shape chain(uint32_t n) {
  Shape shape(n);
  for (uint32_t i = 1; i < n; ++i) shape[i] = {i - 1};
  return shape;
}
// A source, n - 1 users of it.
Shape fan_out(uint32_t n) {
  Shape shape(n);
  for (uint32_t i = 1; i < n; ++i) shape[i] = {0};
  return shape;
}
Shape random_shape(uint32_t n) {
  std::mt19937 random(7);
  Shape shape(n);
  for (uint32_t i = 1; i < n; ++i) {
    for (uint32_t k = 0; k <= random() % 2; ++k) shape[i].push_back(random() % i);
  }
  return shape;
}

ex::Module module_of(const Shape& shape, const std::string& operation = "add.i32") {
  ex::Function f{.name = "main", .argument_types = {"i32"}, .result_types = {"i32"}};
  f.registers.push_back({.name = "x"});
  for (uint32_t i = 0; i < shape.size(); ++i) {
    f.registers.push_back({.name = fmt::format("v{}", i)});
    const uint32_t a = shape[i].empty() ? 0 : shape[i].front() + 1,
                   b = shape[i].empty() ? 0 : shape[i].back() + 1;
    f.operations.push_back({.name = operation, .arguments = {a, b}, .results = {i + 1}});
  }
  f.returns = {static_cast<uint32_t>(shape.size())};
  ex::count_uses(f);
  ex::Module module;
  module.functions.push_back(std::move(f));
  return module;
}

const ex::Registry& registry() {
  static const ex::Registry& all = *[] {
    auto* r = new ex::Registry;
    ex::add_builtin_operations(*r);
    // Dispatched to any thread when several are ready.
    r->add("add_compute.i32", [](int32_t a, int32_t b) { return a + b; }, {.run = ex::Run::kCompute});
    return r;
  }();
  return all;
}

// A loaded module and what it takes to execute it; without a queue everything happens on the calling thread.
struct Loaded {
  explicit Loaded(ex::Module module, IntrusivePtr<ex::WorkQueue> queue = nullptr)
      : module(ex::LoadedModule::load(std::move(module), registry())),
        request(make_intrusive<ex::Host>(std::move(queue))->start_request()) {}
  // One result of type i32.
  int32_t run(std::initializer_list<AsyncValue*> arguments) const {
    AsyncValue* result = nullptr;
    ex::execute(*module->functions().front(), std::span(arguments.begin(), arguments.size()), {&result, 1},
                *request);
    const auto owned = RCReference<AsyncValue>::reclaim(result);
    wait(*owned);
    return owned->get<int32_t>();
  }
  IntrusivePtr<ex::LoadedModule> module;
  IntrusivePtr<ex::Request> request;
};

// A loop over these measures the cost of calls that nothing schedules.
struct HandNode {
  int32_t (*add)(int32_t, int32_t);
  uint32_t a, b;
};
std::vector<HandNode> hand_nodes(const Shape& shape) {
  std::vector<HandNode> nodes;
  for (const auto& arguments : shape) {
    nodes.push_back({[](int32_t a, int32_t b) { return a + b; }, arguments.empty() ? 0 : arguments.front(),
                     arguments.empty() ? 0 : arguments.back()});
  }
  return nodes;
}

MicroCase graph_case(const std::string& name, const Shape& shape) {
  MicroCase c;
  c.name = name, c.units = static_cast<int>(shape.size()), c.n = 20;
  c.detail = fmt::format("{} additions; floor: a loop over function pointers", shape.size());
  auto hand = std::make_shared<std::vector<HandNode>>(hand_nodes(shape));
  c.floor = [hand](int n) {
    std::vector<int32_t> values(hand->size() + 1);
    for (int k = 0; k < n; ++k) {
      for (size_t i = 0; i < hand->size(); ++i)
        values[i] = (*hand)[i].add(values[(*hand)[i].a], values[(*hand)[i].b]);
      keep(values);
    }
  };
  return c;
}

AsyncValueRef<int32_t> zero() { return make_available_async_value<int32_t>(0); }

std::function<void(int)> run_loaded(const Shape& shape) {
  auto ours = std::make_shared<Loaded>(module_of(shape));
  return [ours, x = zero()](int n) {
    for (int k = 0; k < n; ++k) keep(ours->run({x.get_async_value()}));
  };
}
std::function<void(int)> run_built(const Shape& shape, int threads) {
  auto peer = std::make_shared<FlowGraph>(shape, threads);
  return [peer](int n) {
    for (int k = 0; k < n; ++k) peer->run();
  };
}
void build_and_run_flow_graphs(const Shape& shape, int n) {
  for (int k = 0; k < n; ++k) FlowGraph(shape).run();
}

// Runs again what was loaded or built before.
MicroCase run_case(const std::string& name, const Shape& shape) {
  MicroCase c = graph_case("graph_" + name + "/run", shape);
  c.target = ours_at_most(40);
  c.peer_name = "oneTBB flow graph, built before";
  c.ours = run_loaded(shape);
  c.peer = run_built(shape, 1);
  return c;
}
// Runs a planned function's instance, beside the same function as the executor runs it.
struct Planned {
  explicit Planned(ex::Module module)
      : loaded(std::move(module)),
        instance(ex::PlannedFunction::create(*loaded.module->functions().front())->instance()) {}
  int32_t run(std::initializer_list<AsyncValue*> arguments) const {
    AsyncValue* result = nullptr;
    instance->run(std::span(arguments.begin(), arguments.size()), {&result, 1}, *loaded.request);
    return RCReference<AsyncValue>::reclaim(result)->get<int32_t>();
  }
  Loaded loaded;
  IntrusivePtr<ex::Instance> instance;
};
MicroCase planned_case(const std::string& name, const Shape& shape) {
  MicroCase c = graph_case("graph_" + name + "/planned", shape);
  c.target = ours_at_most(15);
  c.peer_name = "the same function, not planned";
  auto ours = std::make_shared<Planned>(module_of(shape));
  c.ours = [ours, x = zero()](int n) {
    for (int k = 0; k < n; ++k) keep(ours->run({x.get_async_value()}));
  };
  c.peer = run_loaded(shape);
  return c;
}
// As oneTBB's published numbers are taken: a graph is built for every run. Ours never is.
MicroCase per_run_case(const std::string& name, const Shape& shape) {
  MicroCase c = graph_case("graph_" + name + "/per_run", shape);
  c.n = 3;
  c.target = ratio_at_most(0.2);
  c.peer_name = "oneTBB flow graph, built, run and freed each time";
  c.ours = run_loaded(shape);
  c.peer = [shape](int n) { build_and_run_flow_graphs(shape, n); };
  return c;
}
// Measures what a user of each pays who has a graph to run once; ours is checked and typed on the way.
MicroCase build_case(const std::string& name, const Shape& shape) {
  MicroCase c = graph_case("graph_" + name + "/build_run", shape);
  c.n = 3;
  c.peer_name = "oneTBB flow graph, built, run and freed";
  c.ours = [shape](int n) {
    const auto x = zero();
    for (int k = 0; k < n; ++k) keep(Loaded(module_of(shape)).run({x.get_async_value()}));
  };
  c.peer = [shape](int n) { build_and_run_flow_graphs(shape, n); };
  return c;
}
// Two threads that share the work, each operation a task: the price of handing over what is too cheap for it.
MicroCase two_threads_case(const Shape& shape) {
  MicroCase c = graph_case("graph_random/2_threads", shape);
  c.peer_name = "oneTBB flow graph, built before, 2 threads";
  auto ours =
      std::make_shared<Loaded>(module_of(shape, "add_compute.i32"), ex::WorkQueue::create({.threads = 2}));
  c.ours = [ours, x = zero()](int n) {
    for (int k = 0; k < n; ++k) keep(ours->run({x.get_async_value()}));
  };
  c.peer = run_built(shape, 2);
  return c;
}

// One operation that runs a function of one addition 1000 times, or 1000 that call it.
ex::Module calls(bool repeat) {
  ex::Function f{.name = "main", .argument_types = {"i32", "i32"}, .result_types = {"i32"}};
  f.registers = {{.name = "n"}, {.name = "x"}};
  if (repeat) {
    f.registers.push_back({.name = "y"});
    f.operations.push_back(
        {.name = "repeat", .attributes = {ex::FunctionRef{"body"}}, .arguments = {0, 1}, .results = {2}});
  } else {
    for (uint32_t i = 0; i < 1000; ++i) {
      f.registers.push_back({.name = fmt::format("y{}", i)});
      f.operations.push_back({.name = "call",
                              .attributes = {ex::FunctionRef{"body"}},
                              .arguments = {i + 1},
                              .results = {i + 2}});
    }
  }
  f.returns = {static_cast<uint32_t>(f.registers.size() - 1)};
  ex::Function body{.name = "body", .argument_types = {"i32"}, .result_types = {"i32"}};
  body.registers = {{.name = "x"}, {.name = "y"}};
  body.operations = {{.name = "add.i32", .arguments = {0, 0}, .results = {1}}};
  body.returns = {1};
  ex::Module module;
  module.functions = {std::move(f), std::move(body)};
  for (ex::Function& function : module.functions) ex::count_uses(function);
  return module;
}

template <class Runner>
std::function<void(int)> run_calls(bool repeat, int times) {
  auto runner = std::make_shared<Runner>(calls(repeat));
  return [runner, times](int n) {
    const auto count = make_available_async_value<int32_t>(int32_t{times});
    const auto x = make_available_async_value<int32_t>(1);
    for (int k = 0; k < n; ++k) keep(runner->run({count.get_async_value(), x.get_async_value()}));
  };
}
MicroCase calls_case(bool repeat, bool is_planned) {
  static constexpr int kTimes = 1000;
  MicroCase c;
  c.name = fmt::format("{}{}", repeat ? "repeat_iteration" : "call", is_planned ? "/planned" : "");
  c.units = kTimes, c.n = 20;
  c.detail = "of a function of one addition; floor: a call of the addition through a pointer";
  c.ours = run_calls<Loaded>(repeat, kTimes);
  if (is_planned) {
    c.peer_name = "the same, not planned";
    c.peer = std::exchange(c.ours, run_calls<Planned>(repeat, kTimes));
  }
  c.floor = [](int n) {
    int32_t (*volatile add)(int32_t, int32_t) = [](int32_t a, int32_t b) { return a + b; };
    uint32_t x = 1;
    for (int k = 0; k < n * kTimes; ++k) x = static_cast<uint32_t>(add(static_cast<int32_t>(x >> 1), 1));
    keep(x);
  };
  return c;
}

}  // namespace

std::vector<MicroCase> graph_cases() {
  std::vector<MicroCase> cases;
  for (const auto& [name, shape] : {std::pair("chain", chain(1000)), std::pair("fan_out", fan_out(1000)),
                                    std::pair("random", random_shape(1000))}) {
    cases.push_back(run_case(name, shape));
    cases.push_back(planned_case(name, shape));
    cases.push_back(per_run_case(name, shape));
    cases.push_back(build_case(name, shape));
  }
  cases.push_back(two_threads_case(random_shape(1000)));
  for (const bool is_planned : {false, true}) {
    cases.push_back(calls_case(false, is_planned));
    cases.push_back(calls_case(true, is_planned));
  }
  return cases;
}

}  // namespace coppice::bench
