// Random functions, beside a twin that is given the same one by one (random_world.h).
//
// A seed draws a body and a function that it may run. One world traces both, loads the body again from its
// text, and runs either, several times, with slots that change, other launches and trimming in between. Its
// twin, on another device of the same kind and seed, gives the statements one by one, and reads back what
// control flow needs. All that can be seen of both must be the same, bit for bit. COPPICE_FUNCTION_SEED=n
// runs that seed, behind those of its group.
//
// Breaks that were seen to fail here: launches behind one that ran out of cells are not given; and
// Node::deactivate_all() took no launch's number, so that other random numbers were drawn than in a function.
#pragma once
#include <cstdlib>
#include <string>
#include <vector>

#include "executor/text.h"
#include "tests/sparse/random_world.h"
#include "tests/sparse/test_devices.h"

namespace coppice::random_functions {

// Gives a body while it is traced; `called` is the function that it may run.
inline void trace_statements(World& world, const Statements& all, const Function* called) {
  for (const Statement& s : all) {
    const auto body = [&] { trace_statements(world, s.body, called); };
    switch (s.deed) {
      case Deed::kRepeat:
        repeat(s.n[1] % 3, body);
        break;
      case Deed::kRepeatBySlot:
        repeat(world.times(s.n[1] % kSlots), body);
        break;
      case Deed::kWhile:
        world.set_flag(s);
        loop_while(world.device_flag(s), [&] { body(), world.lower_flag(s); });
        break;
      case Deed::kBranch:
        world.set_flag(s);
        branch(world.device_flag(s), body, [&] { trace_statements(world, s.otherwise, called); });
        break;
      case Deed::kCall:
        called->run(s.n[1] % 3);
        break;
      default:
        world.give(s);
    }
  }
}

// Gives a body at once.
inline void wait_perform(World& world, const Statements& all, const Statements& called) {
  for (const Statement& s : all) {
    const auto body = [&] { wait_perform(world, s.body, called); };
    switch (s.deed) {
      case Deed::kRepeat:
        repeat(s.n[1] % 3, body);
        break;
      case Deed::kRepeatBySlot:
        repeat(world.count(s.n[1] % kSlots), body);
        break;
      case Deed::kWhile:
        for (world.set_flag(s); world.wait_flag(s); world.lower_flag(s)) body();
        break;
      case Deed::kBranch:
        world.set_flag(s);
        wait_perform(world, world.wait_flag(s) ? s.body : s.otherwise, called);
        break;
      case Deed::kCall:
        repeat(s.n[1] % 3, [&] { wait_perform(world, called, {}); });
        break;
      default:
        world.give(s);
    }
  }
}

// Holds what a seed has drawn, traced in a world, which must outlive it.
struct TracedBody {
  TracedBody(World& world, StatementDraw& draw)
      : called_statements(draw.draw_called(4)),
        statements(draw.draw_body(10)),
        called(trace(
            world.device(), [&] { trace_statements(world, called_statements, nullptr); }, "called")),
        function(trace(world.device(), [&] { trace_statements(world, statements, &called); })) {}

  Statements called_statements, statements;
  Function called, function;
};

inline Function loaded_again(const Function& f, const IntrusivePtr<Device>& device) {
  const std::string text = print(f);
  Function loaded = Function::load(device, executor::parse(text), f.loaded().bindings());
  EXPECT_EQ(print(loaded), text);
  return loaded;
}

inline void expect_same(World& world, World& twin) {
  const std::vector<Observed> found = world.wait_observe(), expected = twin.wait_observe();
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].values, expected[i].values) << found[i].name;
}

// Does something to both worlds between two runs.
inline void change_between(StatementDraw& draw, World& world, World& twin) {
  const int what = draw.pick(6), which = draw.pick(kSlots), value = draw.pick(4);
  const Statement s = draw.draw_leaf();
  for (World* const w : {&world, &twin}) {
    if (what == 0) w->set_times(which, value - 1);
    if (what == 1) w->set_value(which, value * 1000);
    if (what == 2) w->give(s);
    if (what == 3) w->trim();
    if (what == 4) w->activate(which, value * 100);
  }
}

inline void run_seed(World& world, World& twin, uint64_t seed) {
  StatementDraw draw(seed);
  const TracedBody body(world, draw);
  const Function again = loaded_again(body.function, world.device());
  world.reset(), twin.reset();
  for (int round = 0; round < 4 && !testing::Test::HasFailure(); ++round) {
    SCOPED_TRACE(testing::Message() << "round " << round);
    for (int changes = draw.pick(3); changes > 0; --changes) change_between(draw, world, twin);
    const int times = round == 0 ? 1 : draw.pick(3);
    (draw.pick(2) == 0 ? body.function : again).run(times);
    for (int i = 0; i < times; ++i) wait_perform(twin, body.statements, body.called_statements);
    if (round == 3 || draw.pick(3) == 0) expect_same(world, twin);
  }
  if (testing::Test::HasFailure()) ADD_FAILURE() << print(body.called) << '\n' << print(body.function);
}

// Seeds go in groups, each with worlds of its own: making these takes longer than a seed.
inline constexpr uint64_t kGroup = 8;

// Runs seeds of one group on a device, and gives the same one by one on the other.
inline void run_group(const IntrusivePtr<Device>& device, const IntrusivePtr<Device>& other, uint64_t first,
                      uint64_t last, const CodegenOptions& options) {
  device->set_seed(first), other->set_seed(first);
  World world(device, options), twin(other, options);
  for (uint64_t seed = first; seed < last && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "COPPICE_FUNCTION_SEED=" << seed);
    run_seed(world, twin, seed);
  }
}

// Calls run(first, last) for the seeds of each group, or for the one that COPPICE_FUNCTION_SEED names.
template <class Run>
void for_each_group(uint64_t first, uint64_t last, Run&& run) {
  if (const char* const one = std::getenv("COPPICE_FUNCTION_SEED"))
    last = std::strtoull(one, nullptr, 10) + 1, first = (last - 1) / kGroup * kGroup;
  for (; first < last && !testing::Test::HasFailure() && !testing::Test::IsSkipped(); first += kGroup)
    run(first, std::min(last, first + kGroup));
}

inline void run_seeds(const std::string& device_name, uint64_t first, uint64_t last,
                      const CodegenOptions& options = codegen_options()) {
  for_each_group(first, last, [&](uint64_t begin, uint64_t end) {
    std::string reason;
    const auto device = test_device(device_name, reason, begin),
               other = test_device(device_name, reason, begin);
    if (!device) GTEST_SKIP() << reason;
    run_group(device, other, begin, end, options);
  });
}

// Returns how many seeds a device has in the stress test; the long test has nine times as many. The thread
// sanitizer takes fifty times as long.
inline uint64_t seeds_of(const std::string& device_name) {
#ifdef __SANITIZE_THREAD__
  constexpr uint64_t kFewer = 10;
#else
  constexpr uint64_t kFewer = 1;
#endif
  if (is_emulated_device(device_name)) return 1000 / kFewer;
  return (device_name.starts_with("cpu") ? 5000 : 500) / kFewer;
}

}  // namespace coppice::random_functions
