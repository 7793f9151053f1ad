// The sparse operations as functions run them: on the request's stream, without the host.
#include "sparse/operations.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <latch>
#include <numeric>
#include <set>
#include <string>

#include "core/error.h"
#include "executor/builtin_operations.h"
#include "executor/executor.h"
#include "executor/planned/instance.h"
#include "executor/planned/planned_function.h"
#include "executor/text.h"
#include "heat.kernels.h"
#include "jit.kernels.h"
#include "sparse/read_back.h"
#include "sparse/tree_storage.h"
#include "tests/sparse/staging.h"
#include "tests/sparse/test_devices.h"

namespace coppice {
namespace {

using Value = RCReference<AsyncValue>;

template <class T>
Value value(T given) {
  return make_available_async_value<T>(std::move(given));
}

// Returns bindings of names and things, one behind the other.
template <class... Given>
executor::Bindings bound_to(const Given&... given) {
  executor::Bindings bindings;
  (bindings.add(given.first, given.second), ...);
  return bindings;
}
template <class T>
std::pair<const char*, T> named(const char* name, T thing) {
  return {name, std::move(thing)};
}

class Operations : public testing::Test {
 protected:
  Operations() {
    executor::add_builtin_operations(registry);
    add_sparse_operations(registry);
  }
  // One function, @main, of a chain.
  std::vector<Value> run(std::string_view text, executor::Bindings bindings) {
    module = executor::LoadedModule::load(executor::parse(text, "test.graph"), registry, std::move(bindings));
    return execute(module->function("main"), {value(Chain())}, *request);
  }
  // The message of the first error among the results, when all have come; "": there is none.
  std::string outcome(const std::vector<Value>& results) {
    for (const Value& result : results) wait(*result);
    for (const Value& result : results) {
      if (result->is_error()) return result->error().message();
    }
    return "";
  }
  template <class T>
  IntrusivePtr<Buffer> buffer(const std::vector<T>& items) {
    return wait_device_copy(*device, items);
  }
  template <class T>
  std::vector<T> read(const IntrusivePtr<Buffer>& from, size_t n) {
    std::vector<T> items(n);
    device->wait_copy(items.data(), from->data(), n * sizeof(T));
    return items;
  }
  IntrusivePtr<executor::Request> request_on(Stream& stream) { return host->start_request(share(&stream)); }

  IntrusivePtr<Device> device = cpu_or_test_device();
  Program program{device};
  executor::Registry registry;
  IntrusivePtr<executor::Host> host = make_intrusive<executor::Host>();
  IntrusivePtr<executor::Request> request = request_on(device->default_stream());
  IntrusivePtr<executor::LoadedModule> module;
};

constexpr std::string_view kTwoLaunches = R"(
func @main(%start: chain) -> chain {
  %e0 = stream.start (%start)
  %e1 = sparse.launch $a (%e0)
  %e2 = sparse.launch $b (%e1)
  %done = stream.done (%e2)
  return %done
})";

TEST_F(Operations, LaunchesAreAllQueuedBeforeTheDeviceHasRunTheFirst) {
  const auto numbers = buffer<int>({9, 9, 9});
  std::latch release(1);
  device->default_stream().enqueue("parked", [&](InStream&) { release.wait(); });
  const auto results =
      run(kTwoLaunches, bound_to(named("a", program.bind(write_index, range(3), numbers->as<int>())),
                                 named("b", program.bind(add_one, range(3), numbers->as<int>()))));
  EXPECT_EQ(request->describe_waiting(), "") << "an operation waited for the device";
  EXPECT_FALSE(results[0]->is_available());
  EXPECT_FALSE(results[0]->is_indirect()) << "the event itself, not one that the host completes";
  release.count_down();
  EXPECT_EQ(outcome(results), "");
  EXPECT_EQ(read<int>(numbers, 3), (std::vector{1, 2, 3}));
}

TEST_F(Operations, ABoundLaunchRunsOftenAndOutlivesItsProgram) {
  const auto numbers = buffer<int>({0, 0});
  auto bound = [&] { return Program(device).bind(add_one, range(2), numbers->as<int>()); }();
  EXPECT_EQ(bound.name(), "jit.add_one");
  for (int i = 0; i < 100; ++i) bound.launch();
  wait(bound.launch());
  EXPECT_EQ(read<int>(numbers, 2), (std::vector{101, 101}));
}

TEST_F(Operations, ABoundLaunchThatRunsOutOfCellsGrowsTheTreeAndRunsAgain) {
  Tree tree(device);
  Node leaf = tree.root().pointer({64, 64}).dense({16, 16});
  Field<int> x = leaf.place<int>("x");
  std::vector<int> coords;
  for (int i = 0; i < 1024; ++i) coords.insert(coords.end(), {i / 32 * 16, i % 32 * 16});
  const auto at = buffer(coords);
  const BoundLaunch grow = program.bind(grow_coords2, range(1024), x, at->as<int>(), 5);
  for (int round = 0; round < 2; ++round) {
    wait(grow.launch());
    EXPECT_EQ(leaf.wait_num_active_blocks(), 1024u);
    EXPECT_EQ(wait_read(x, {16, 16}), 5);
    wait(tree.deactivate_all());
  }
}

TEST_F(Operations, TheErrorOfALaunchArrivesInItsEventAndSkipsWhatFollows) {
  Tree tree(device, {.name = "grid"});
  Field<int> x = tree.root().pointer({8}).dense({4}).place<int>("x");
  const auto numbers = buffer<int>({0});
  const auto results =
      run(kTwoLaunches, bound_to(named("a", program.bind(add_coords1, range(3), x, 32)),
                                 named("b", program.bind(add_one, range(1), numbers->as<int>()))));
  EXPECT_NE(outcome(results).find("kernel heat.add_coords1: "), std::string::npos) << outcome(results);
  EXPECT_EQ(read<int>(numbers, 1), (std::vector{0}));
  device->default_stream().clear_error();
}

TEST_F(Operations, ARequestWithoutAStreamIsRefused) {
  request = host->start_request();
  const auto numbers = buffer<int>({0});
  const auto bound = program.bind(add_one, range(1), numbers->as<int>());
  const auto results = run(kTwoLaunches, bound_to(named("a", bound), named("b", bound)));
  ASSERT_TRUE(results[0]->is_error());
  const Error error = results[0]->error();
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error.message(), "the request was started without a stream; give one to start_request()");
  EXPECT_EQ(error.location().line, 4);
  EXPECT_EQ(error.path().front(), "@main sparse.launch");
}

TEST_F(Operations, WhatBelongsToAnotherStreamIsRefused) {
  const auto other = device->create_stream();
  request = request_on(*other);
  const auto numbers = buffer<int>({0});
  const auto bound = program.bind(add_one, range(1), numbers->as<int>());
  EXPECT_EQ(
      outcome(run(kTwoLaunches, bound_to(named("a", bound), named("b", bound)))),
      fmt::format(
          "launch jit.add_one belongs to the default stream of its device ({}), and the request has another",
          device->name()));
  Tree tree(device, {.name = "grid"});
  constexpr std::string_view kCollect = R"(
func @main(%start: chain) -> chain {
  %e0 = stream.start (%start)
  %e1 = sparse.collect $tree (%e0)
  %done = stream.done (%e1)
  return %done
})";
  EXPECT_EQ(
      outcome(run(kCollect, bound_to(named("tree", tree)))),
      fmt::format("tree 'grid' belongs to the default stream of its device ({}), and the request has another",
                  device->name()));
  wait(other->barrier());
  EXPECT_EQ(read<int>(numbers, 1), (std::vector{0}));
}

TEST_F(Operations, CountsListsAndDeactivates) {
  Tree tree(device);
  Node leaf = tree.root().pointer({16, 16}).dense({4, 4});
  Field<int> x = leaf.place<int>("x");
  std::vector<int> coords{5, 6, 20, 20, 21, 21};
  const auto at = buffer(coords);
  const auto results = run(R"(
func @main(%start: chain) -> (i64, i64, chain) {
  %e0 = stream.start (%start)
  %e1 = sparse.launch $grow (%e0)
  %e2 = sparse.update_list true, $leaf (%e1)
  %e3, %before = sparse.count_blocks $leaf (%e2)
  %e4 = sparse.launch $set (%e3)
  %e5 = sparse.deactivate_all $root (%e4)
  %e6, %after = sparse.count_blocks $leaf (%e5)
  %e7 = sparse.launch $grow (%e6)
  %done = stream.done (%e7)
  return %before, %after, %done
})",
                           bound_to(named("root", tree.root()), named("leaf", leaf),
                                    named("grow", program.bind(grow_coords2, range(3), x, at->as<int>(), 9)),
                                    named("set", program.bind(set_cells2, over(leaf), x))));
  ASSERT_EQ(outcome(results), "");
  EXPECT_EQ(results[0]->get<int64_t>(), 2);
  EXPECT_EQ(results[1]->get<int64_t>(), 0);
  EXPECT_EQ(wait_read(x, {5, 6}), 9);
  EXPECT_EQ(wait_read(x, {4, 4}), 0) << "cells that were recycled are zero again";
}

TEST_F(Operations, UpdateListBuildsTheNeighbourTableWhenAskedTo) {
  Tree tree(device);
  Node leaf = tree.root().pointer({16, 16}).dense({4, 4});
  leaf.place<int>("x");
  wait(leaf.activate({{4, 4, 0}, {8, 4, 0}}));
  uint64_t list_version = 0, neighbour_version = 0;
  for (const char* with_neighbours : {"false", "true"}) {
    const auto results = run(std::string(R"(
func @main(%start: chain) -> chain {
  %e0 = stream.start (%start)
  %e1 = sparse.update_list )") + with_neighbours +
                                 R"(, $leaf (%e0)
  %done = stream.done (%e1)
  return %done
})",
                             bound_to(named("leaf", leaf)));
    ASSERT_EQ(outcome(results), "");
    wait(device->default_stream().enqueue("look", [&](InStream& s) {
      const LoopList& list = leaf.storage().lists().update(s, leaf.id(), false);
      list_version = list.version, neighbour_version = list.neighbour_version;
    }));
    EXPECT_EQ(neighbour_version == list_version, with_neighbours == std::string("true"));
  }
}

TEST_F(Operations, CollectRecyclesWhatWasDeactivated) {
  Tree tree(device);
  Node block = tree.root().pointer({16, 16}), leaf = block.dense({4, 4});
  leaf.place<int>("x");
  wait(leaf.activate({{4, 4, 0}, {8, 4, 0}}));
  ASSERT_EQ(leaf.wait_num_active_blocks(), 2u);
  device->default_stream().enqueue("drop",
                                   [&](InStream& s) { tree.storage().collector().recycle_below(s, 0); });
  const auto recycled = [&] {
    uint32_t size = 0;
    wait(device->default_stream().enqueue("look", [&](InStream& s) {
      size = tree.storage().memory().wait_read_state(s).allocators[0].recycled_size;
    }));
    return size;
  };
  ASSERT_EQ(recycled(), 2u);
  const auto results = run(R"(
func @main(%start: chain) -> chain {
  %e0 = stream.start (%start)
  %e1 = sparse.collect $tree (%e0)
  %done = stream.done (%e1)
  return %done
})",
                           bound_to(named("tree", tree)));
  ASSERT_EQ(outcome(results), "");
  EXPECT_EQ(recycled(), 0u);
  EXPECT_EQ(leaf.wait_num_active_blocks(), 0u);
}

// Fills `bytes` of $to from its begin on, and copies as many from $from to its byte `at`.
std::string copy_and_fill(int64_t at, int64_t bytes) {
  return fmt::format(R"(
func @main(%start: chain) -> (chain, chain) {{
  %e0 = stream.start (%start)
  %e1 = buffer.fill 255, $to, 0, {1} (%e0)
  %e2 = buffer.copy $to, {0}, $from, 0, {1} (%e1)
  %filled = stream.done (%e1)
  %copied = stream.done (%e2)
  return %filled, %copied
}})",
                     at, bytes);
}

TEST_F(Operations, CopiesAndFillsBuffers) {
  const auto to = buffer<uint32_t>({1, 2, 3}), from = buffer<uint32_t>({7, 8});
  EXPECT_EQ(outcome(run(copy_and_fill(4, 8), bound_to(named("to", to), named("from", from)))), "");
  EXPECT_EQ(read<uint32_t>(to, 3), (std::vector<uint32_t>{~0u, 7, 8}));
}

TEST_F(Operations, NothingIsCopiedOrFilledBeyondABuffersEnd) {
  const auto to = buffer<uint32_t>({1, 2, 3}), from = buffer<uint32_t>({7, 8});
  const auto failure = [&](int64_t at, int64_t bytes) {
    const auto results = run(copy_and_fill(at, bytes), bound_to(named("to", to), named("from", from)));
    const std::string message = outcome(results);
    EXPECT_EQ(results[1]->error().code(), ErrorCode::kOutOfRange);
    device->default_stream().clear_error();
    return message;
  };
  EXPECT_EQ(failure(8, 8), "buffer.copy: 8 bytes from byte 8 on, of a buffer of 12 bytes");
  EXPECT_EQ(failure(-4, 4), "buffer.copy: 4 bytes from byte -4 on, of a buffer of 12 bytes");
  EXPECT_EQ(failure(0, 12), "buffer.copy: 12 bytes from byte 0 on, of a buffer of 8 bytes");
  EXPECT_EQ(failure(0, -1), "buffer.fill: -1 bytes from byte 0 on, of a buffer of 12 bytes");
  EXPECT_EQ(failure(INT64_MAX, INT64_MAX),
            "buffer.fill: 9223372036854775807 bytes from byte 0 on, of a buffer of 12 bytes");
}

TEST_F(Operations, ABufferMayGrowInStreamOrderBeforeItIsUsed) {
  const auto to = device->reserve(1 << 20, 4), from = buffer<uint32_t>({7, 8});
  std::latch release(1);
  device->default_stream().enqueue("grow", [&](InStream&) {
    release.wait();
    to->grow(12);
  });
  const auto results = run(copy_and_fill(4, 8), bound_to(named("to", to), named("from", from)));
  release.count_down();
  EXPECT_EQ(outcome(results), "");
  EXPECT_EQ(read<uint32_t>(to, 3), (std::vector<uint32_t>{~0u, 7, 8}));
}

TEST_F(Operations, SortsKeysWithTheirValues) {
  const auto keys = buffer<uint32_t>({3, 1, 2, 1}), order = buffer<uint32_t>({0, 1, 2, 3});
  const auto wide = buffer<uint64_t>({uint64_t{1} << 40, 5}), wide_order = buffer<uint32_t>({0, 1});
  const auto results = run(
      R"(
func @main(%start: chain) -> chain {
  %e0 = stream.start (%start)
  %e1 = primitives.sort_by_key.u32 $keys, $order, 4 (%e0)
  %e2 = primitives.sort_by_key.u64 $wide, $wide_order, 2 (%e1)
  %done = stream.done (%e2)
  return %done
})",
      bound_to(named("keys", keys), named("order", order), named("wide", wide),
               named("wide_order", wide_order)));
  ASSERT_EQ(outcome(results), "");
  EXPECT_EQ(read<uint32_t>(keys, 4), (std::vector<uint32_t>{1, 1, 2, 3}));
  EXPECT_EQ(read<uint32_t>(order, 4), (std::vector<uint32_t>{1, 3, 2, 0}));
  EXPECT_EQ(read<uint64_t>(wide, 2), (std::vector<uint64_t>{5, uint64_t{1} << 40}));
  EXPECT_EQ(read<uint32_t>(wide_order, 2), (std::vector<uint32_t>{1, 0}));
}

TEST_F(Operations, SumsAndMaximaAreValuesOfTheHost) {
  const auto results = run(
      R"(
func @main(%start: chain) -> (f64, f64, i64, i64, f32, f64, i64, i64) {
  %e0 = stream.start (%start)
  %e1, %a = primitives.sum.f32 $f, 2 (%e0)
  %e2, %b = primitives.sum.f64 $d, 2 (%e1)
  %e3, %c = primitives.sum.u32 $u, 2 (%e2)
  %e4, %g = primitives.sum.u64 $w, 2 (%e3)
  %e5, %h = primitives.max.f32 $f, 2 (%e4)
  %e6, %i = primitives.max.f64 $d, 2 (%e5)
  %e7, %j = primitives.max.u32 $u, 2 (%e6)
  %e8, %k = primitives.max.u64 $w, 2 (%e7)
  return %a, %b, %c, %g, %h, %i, %j, %k
})",
      bound_to(named("f", buffer<float>({1.5f, -3.0f})), named("d", buffer<double>({0.25, 4.0})),
               named("u", buffer<uint32_t>({~0u, 2})), named("w", buffer<uint64_t>({uint64_t{1} << 40, 3}))));
  ASSERT_EQ(outcome(results), "");
  EXPECT_EQ(results[0]->get<double>(), -1.5);
  EXPECT_EQ(results[1]->get<double>(), 4.25);
  EXPECT_EQ(results[2]->get<int64_t>(), (int64_t{1} << 32) + 1);
  EXPECT_EQ(results[3]->get<int64_t>(), (int64_t{1} << 40) + 3);
  EXPECT_EQ(results[4]->get<float>(), 1.5f);
  EXPECT_EQ(results[5]->get<double>(), 4.0);
  EXPECT_EQ(results[6]->get<int64_t>(), 0xffffffff);
  EXPECT_EQ(results[7]->get<int64_t>(), int64_t{1} << 40);
}

TEST_F(Operations, ScansSelectsEncodesRunsAndFindsBins) {
  const auto keys = buffer<uint32_t>({0, 0, 2, 2, 2});
  const auto scanned = buffer<uint32_t>(std::vector<uint32_t>(5)),
             indices = buffer<uint32_t>(std::vector<uint32_t>(5)),
             unique = buffer<uint32_t>(std::vector<uint32_t>(5)),
             counts = buffer<uint32_t>(std::vector<uint32_t>(5)),
             starts = buffer<uint32_t>(std::vector<uint32_t>(4));
  const auto results =
      run(R"(
func @main(%start: chain) -> (i64, i64, i64, chain) {
  %e0 = stream.start (%start)
  %e1, %total = primitives.scan_and_sum $keys, $scanned, 5 (%e0)
  %e2, %selected = primitives.select_if_flag $keys, $indices, 5 (%e1)
  %e3, %runs = primitives.run_length_encode $keys, $unique, $counts, 5 (%e2)
  %e4 = primitives.bin_starts $keys, 5, $starts, 3 (%e3)
  %done = stream.done (%e4)
  return %total, %selected, %runs, %done
})",
          bound_to(named("keys", keys), named("scanned", scanned), named("indices", indices),
                   named("unique", unique), named("counts", counts), named("starts", starts)));
  ASSERT_EQ(outcome(results), "");
  EXPECT_EQ(results[0]->get<int64_t>(), 6);
  EXPECT_EQ(results[1]->get<int64_t>(), 3);
  EXPECT_EQ(results[2]->get<int64_t>(), 2);
  EXPECT_EQ(read<uint32_t>(scanned, 5), (std::vector<uint32_t>{0, 0, 0, 2, 4}));
  EXPECT_EQ(read<uint32_t>(indices, 3), (std::vector<uint32_t>{2, 3, 4}));
  EXPECT_EQ(read<uint32_t>(unique, 2), (std::vector<uint32_t>{0, 2}));
  EXPECT_EQ(read<uint32_t>(counts, 2), (std::vector<uint32_t>{2, 3}));
  EXPECT_EQ(read<uint32_t>(starts, 4), (std::vector<uint32_t>{0, 2, 2, 5}));
}

TEST_F(Operations, APrimitiveThatABufferHasNoRoomForIsRefused) {
  constexpr const char* kBins = R"(
func @main(%start: chain) -> chain {{
  %e0 = stream.start (%start)
  %e1 = primitives.bin_starts $keys, {}, $starts, {} (%e0)
  %done = stream.done (%e1)
  return %done
}})";
  const auto keys = buffer<uint32_t>({0, 1}), starts = buffer<uint32_t>({7, 7, 7});
  const auto failure = [&](int64_t n, int64_t n_bins) {
    const auto results = run(fmt::format(fmt::runtime(kBins), n, n_bins),
                             bound_to(named("keys", keys), named("starts", starts)));
    const std::string message = outcome(results);
    device->default_stream().clear_error();
    return message;
  };
  EXPECT_EQ(failure(3, 2), "primitives.bin_starts: 3 items of 4 bytes, of a buffer of 8 bytes");
  EXPECT_EQ(failure(2, 3), "primitives.bin_starts: 4 items of 4 bytes, of a buffer of 12 bytes");
  EXPECT_EQ(failure(-1, 2), "primitives.bin_starts: -1 items of 4 bytes, of a buffer of 8 bytes");
  EXPECT_EQ(failure(2, INT64_MAX),
            "primitives.bin_starts: 9223372036854775807 items of 4 bytes, of a buffer of 12 bytes");
  EXPECT_EQ(failure(2, 2), "");
}

// Seen to fail: where the stream had come to the operation when the host looked at its event, and only then,
// the error had a place and a path.
TEST_F(Operations, AnErrorIsTheSameWhenTheStreamHasRunAheadOfTheHost) {
  const auto other = Device::cpu(1);
  const IntrusivePtr<Buffer> others = other->reserve(64, 64);
  const auto numbers = buffer<uint32_t>({1, 2});
  const std::string text = R"(
func @main(%start: chain) -> chain {
  %e0 = stream.start (%start)
  %e1 = buffer.copy $to, 0, $from, 0, 4 (%e0)
  %e2 = buffer.fill 0, $to, 0, 4 (%e1)
  %done = stream.done (%e2)
  return %done
})";
  std::set<std::string> texts;
  for (int i = 0; i < 50; ++i) {
    const auto results = run(text, bound_to(named("to", numbers), named("from", others)));
    wait(*results[0]);
    texts.insert(results[0]->error().what());
    device->default_stream().clear_error();
  }
  EXPECT_EQ(texts, std::set<std::string>{"buffer.copy: what is to be copied is in memory of another device"});
}

// An event that the request's stream has given is not waited for; any other one is, and its error is the
// launch's. Seen to fail: a promise's launch ran at once, also where the promise became an error.
TEST_F(Operations, AnEventOfElsewhereIsAwaited) {
  const auto numbers = buffer<int>({0, 0});
  const auto text = "func @main(%e: event) -> event {\n  %d = sparse.launch $k (%e)\n  return %d\n}";
  module =
      executor::LoadedModule::load(executor::parse(text, "test.graph"), registry,
                                   bound_to(named("k", program.bind(add_one, range(2), numbers->as<int>()))));
  const IntrusivePtr<Device> second = Device::cpu(1);
  const auto planned = executor::PlannedFunction::create(module->function("main"))->instance();
  const auto run_with = [&](bool is_planned, const Value& event) {
    return is_planned ? planned->run({event}, *request)
                      : execute(module->function("main"), {event}, *request);
  };
  int launches = 0;
  for (const bool is_planned : {false, true}) {
    SCOPED_TRACE(is_planned);
    for (const bool is_promise : {true, false}) {
      auto promise = make_promise<Chain>();
      std::latch release(1);
      Value event = promise.value().release_rc_reference();
      if (!is_promise) {
        event = second->default_stream()
                    .enqueue("parked", [&](InStream&) { release.wait(); })
                    .release_rc_reference();
      }
      auto results = run_with(is_planned, event);
      wait(device->default_stream().barrier());
      EXPECT_EQ(read<int>(numbers, 2), (std::vector{launches, launches}));
      is_promise ? promise.emplace() : release.count_down();
      EXPECT_EQ(outcome(results), "");
      ++launches;
      EXPECT_EQ(read<int>(numbers, 2), (std::vector{launches, launches}));
    }
    auto promise = make_promise<Chain>();
    auto results = run_with(is_planned, promise.value().release_rc_reference());
    promise.set_error(Error(ErrorCode::kIo, "no disk"));
    EXPECT_NE(outcome(results).find("no disk"), std::string::npos);
    wait(device->default_stream().barrier());
    EXPECT_EQ(read<int>(numbers, 2), (std::vector{launches, launches}));
    // The stream's own event is there when the work is queued, long before the device has come to it.
    std::latch release(1);
    const Value own =
        device->default_stream().enqueue("parked", [&](InStream&) { release.wait(); }).release_rc_reference();
    results = run_with(is_planned, own);
    EXPECT_FALSE(results[0]->is_indirect()) << "it waited for the stream's own event";
    EXPECT_EQ(request->describe_waiting(), "");
    release.count_down();
    EXPECT_EQ(outcome(results), "");
    ++launches;
  }
  EXPECT_EQ(read<int>(numbers, 2), (std::vector{launches, launches}));
}

TEST_F(Operations, TheHostTakesUpAnEventOnlyThroughStreamDone) {
  registry.add("sum_on_host.i64", [](const Chain&, int64_t a) { return a + 1; });
  const auto numbers = buffer<uint32_t>({4, 5});
  std::latch release(1);
  device->default_stream().enqueue("parked", [&](InStream&) { release.wait(); });
  const auto results = run(R"(
func @main(%start: chain) -> i64 {
  %e0 = stream.start (%start)
  %e1, %sum = primitives.sum.u32 $in, 2 (%e0)
  %done = stream.done (%e1)
  %more = sum_on_host.i64 (%done, %sum)
  return %more
})",
                           bound_to(named("in", numbers)));
  EXPECT_NE(request->describe_waiting().find("sum_on_host.i64"), std::string::npos);
  release.count_down();
  EXPECT_EQ(outcome(results), "");
  EXPECT_EQ(results[0]->get<int64_t>(), 10);
}

}  // namespace
}  // namespace coppice
