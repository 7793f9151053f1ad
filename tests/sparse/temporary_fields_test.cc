// Temporary fields: what they share, what is kept apart, and what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "executor/plan/verify.h"
#include "executor/text.h"
#include "gpu/codegen_options.h"
#include "sparse/buffer_operations.h"
#include "sparse/bulk_append.h"
#include "sparse/cell_memory.h"
#include "sparse/function.h"
#include "sparse/memory_report.h"
#include "sparse/read_back.h"
#include "sparse/topology_tools.h"
#include "sparse/tree_storage.h"
#include "temporary_fields.kernels.h"
#include "tests/sparse/temporary_fields_line.h"
#include "tests/sparse/test_devices.h"

namespace coppice {
namespace {

const TreeField& laid_out(const Field<float>& f) { return f.tree->layout().field(f.id.field); }

class TemporaryFields : public DeviceTest {
 protected:
  void step(const Line& x) {
    const Loop cells = over(x.leaf);
    program().launch(store_ramp, cells, x.a, 3.0f);
    program().launch(mix, cells, x.a, x.a, x.b, 0.5f);
    program().launch(mix, cells, x.b, x.out, x.c, 0.25f);
    program().launch(add_in_place, cells, x.c, 1.0f);
    program().launch(mix, cells, x.c, x.c, x.out, 2.0f);
  }
  std::vector<float> values(const Line& x) { return wait_read(x.out, {0}, {128}); }
};

TEST_P(TemporaryFields, OfDifferentStagesShareBytes) {
  Line x(device);
  x.tree.freeze();
  EXPECT_EQ(laid_out(x.a).offset, laid_out(x.c).offset);
  EXPECT_NE(laid_out(x.a).offset, laid_out(x.b).offset);
  EXPECT_GE(laid_out(x.b).offset, laid_out(x.out).offset + 64);
  const CellMemory m = memory_of(x.leaf);
  EXPECT_EQ(plan::find_fault(m.problem, m.plan), std::nullopt);
  EXPECT_EQ(m.naive_bytes(), 3 * 64);
  EXPECT_EQ(m.plan.bytes, 2 * 64);
  EXPECT_EQ(text_of(m), "3 temporaries of 12 bytes per cell together in 8; no plan needs less");
  EXPECT_TRUE(has(
      x.tree.wait_memory_report().text(),
      "line.pointer[8].dense[16]: 3 temporaries of 12 bytes per cell together in 8; no plan needs less\n"));
  EXPECT_TRUE(has(memory_picture(x.leaf), ">c<"));
  EXPECT_EQ(text_of(memory_of(x.block)), "");
  Line apart(device, false, false);
  apart.tree.freeze();
  EXPECT_EQ(apart.leaf.storage().layout().node(1).cell_bytes - x.leaf.storage().layout().node(1).cell_bytes,
            64u);
}

TEST_P(TemporaryFields, GiveTheSameResultsAsFieldsOfTheirOwn) {
  for (const bool is_masked : {false, true}) {
    Line shared(device, is_masked), apart(device, is_masked, false);
    for (const Line* x : {&shared, &apart}) {
      finish(x->leaf.activate({{0}, {5}, {40}, {41}, {127}}));
      step(*x), step(*x);
      finish(x->leaf.activate({{6}, {100}}));
      finish(x->block.deactivate({{2}}));
      step(*x);
      const Function f = trace(device, [&] { step(*x); });
      finish(f.run(3));
    }
    EXPECT_EQ(values(shared), values(apart));
    EXPECT_NE(values(shared)[5], 0);
  }
}

TEST_P(TemporaryFields, OfTwoTreesAreEachTheirOwn) {
  Line x(device), y(device, true, true, {.name = "other"});
  finish(x.leaf.activate({{3}})), finish(y.leaf.activate({{3}}));
  program().launch(store_ramp, over(x.leaf), x.a, 1.0f);
  program().launch(store_ramp, over(y.leaf), y.c, 2.0f);
  program().launch(mix, over(x.leaf), x.a, x.a, x.out, 1.0f);
  program().launch(mix, over(y.leaf), y.c, y.c, y.out, 1.0f);
  EXPECT_EQ(values(x)[3], 8);
  EXPECT_EQ(values(y)[3], 10);
  EXPECT_TRUE(
      has(refusal([&] { program().launch(add_in_place, over(y.leaf), y.a, 1.0f); }), "'a' on other."));
}

TEST_P(TemporaryFields, ThatLostTheirBytesAreNotRead) {
  Line x(device);
  finish(x.leaf.activate({{3}}));
  step(x);
  const std::string lost = refusal([&] { program().launch(mix, over(x.leaf), x.a, x.b, x.out, 1.0f); });
  EXPECT_EQ(
      lost,
      "temporary_fields.mix needs the temporary 'a' on line.pointer[8].dense[16], whose bytes hold 'c' since "
      "temporary_fields.mix; its stages must reach to there");
  EXPECT_TRUE(
      has(refusal([&] { program().launch(add_in_place, over(x.leaf), x.a, 1.0f); }), "whose bytes hold 'c'"));
  EXPECT_TRUE(has(refusal([&] { program().launch(add_to_fours, over(x.leaf), x.a, x.out); }),
                  "whose bytes hold 'c'"));
  const BoundLaunch bound = program().bind(smooth, over(x.leaf), x.a, x.out);
  EXPECT_TRUE(has(refusal([&] { bound.launch(); }), "smooth needs the temporary 'a'"));
  EXPECT_EQ(refusal([&] { wait_read(x.a, {3}); }),
            "a value to read: 'a' on line.pointer[8].dense[16] is a temporary, whose bytes hold 'c' since "
            "temporary_fields.mix");
  EXPECT_EQ(wait_read(x.c, {3}), values(x)[3] / 3);
  // A launch that was refused has changed nothing, and a new life begins with the next store.
  program().launch(store_ramp, over(x.leaf), x.a, 5.0f);
  finish(bound.launch());
  EXPECT_EQ(wait_read(x.a, {3}), 8);
  EXPECT_TRUE(
      has(refusal([&] { wait_read(x.c, {3}); }), "whose bytes hold 'a' since temporary_fields.store_ramp"));
}

TEST_P(TemporaryFields, ThatWereNeverWrittenAreNotRead) {
  Line x(device, true);
  finish(x.leaf.activate({{3}}));
  EXPECT_EQ(refusal([&] { program().launch(smooth, over(x.leaf), x.b, x.out); }),
            "temporary_fields.smooth needs the temporary 'b' on line.pointer[8].bitmasked[16], to which "
            "nothing has been "
            "written before");
  EXPECT_TRUE(has(refusal([&] { wait_read(x.b, {3}); }), "to which nothing has been written"));
  const BufferRef read = device->reserve(4, 4);
  EXPECT_TRUE(
      has(refusal([&] { program().launch(read_at, range(1), x.b, 3, read->as<float>()); }), "nothing"));
  EXPECT_TRUE(has(refusal([&] { program().launch(double_block, over(x.leaf), x.b, 16); }), "nothing"));
  // Setting a cell, or a block, begins a life.
  wait_room(*device, x.block, 8);
  program().launch(set_at, range(1), x.b, 4, 2.5f);
  finish(program().launch(read_at, range(1), x.b, 4, read->as<float>()));
  EXPECT_EQ(wait_read(x.b, {4}), 2.5f);
  program().launch(store_block, over(x.leaf), x.b, 16, 1.5f);
  program().launch(double_block, over(x.leaf), x.b, 16);
  program().launch(sum_block, over(x.leaf), x.b, x.out, 16);
  EXPECT_EQ(wait_read(x.out, {3}), 48);
  EXPECT_EQ(wait_read(x.b, {5}), 0) << "an inactive cell reads as zero, whatever was stored there";
}

TEST_P(TemporaryFields, OfOneLaunchMustNotShareBytes) {
  Line x(device);
  EXPECT_EQ(
      refusal([&] { program().launch(smooth, over(x.leaf), x.a, x.c); }),
      "kernel temporary_fields.smooth: fields 'a' on line.pointer[8].dense[16] and 'c' are temporaries that "
      "share bytes: no stage has both");
  EXPECT_TRUE(has(refusal([&] { trace(device, [&] { program().launch(smooth, over(x.leaf), x.c, x.a); }); }),
                  "'c' on line.pointer[8].dense[16] and 'a' are temporaries that share bytes"));
}

TEST_P(TemporaryFields, AreOrderedByTheBytesThatTheyShare) {
  Line x(device);
  const Function f = trace(device, [&] {
    program().launch(store_ramp, over(x.leaf), x.a, 1.0f);  // store_ramp
    program().launch(store_ramp, over(x.leaf), x.b, 2.0f);  // .2 beside it
    program().launch(smooth, over(x.leaf), x.a, x.out);     // smooth reads a
    program().launch(store_ramp, over(x.leaf), x.c, 3.0f);  // .3 stores to a's bytes
  });
  const std::string text = print(f);
  EXPECT_TRUE(has(text, "%store_ramp.2 = sparse.launch $temporary_fields.store_ramp.2 (%begin)")) << text;
  EXPECT_TRUE(has(text, "%store_ramp.3 = sparse.launch $temporary_fields.store_ramp.3 (%smooth)")) << text;
  // Text in which nothing orders the two is refused.
  std::string open = text;
  const size_t at = open.find("store_ramp.3 (%smooth)");
  open.replace(at, std::strlen("store_ramp.3 (%smooth)"), "store_ramp.3 (%begin)");
  open.replace(open.find("(%store_ramp.2, %store_ramp.3)"), std::strlen("(%store_ramp.2, %store_ramp.3)"),
               "(%store_ramp.2, %store_ramp.3, %smooth)");
  EXPECT_TRUE(
      has(refusal([&] { Function::load(device, executor::parse(open, "open"), f.loaded().bindings()); }),
          "no event orders"))
      << open;
}

TEST_P(TemporaryFields, ThatAFunctionLosesAreFoundWhenItIsTraced) {
  Line x(device);
  const auto store = [&](const Field<float>& to) { program().launch(store_ramp, over(x.leaf), to, 1.0f); };
  const auto read = [&](const Field<float>& from) { program().launch(smooth, over(x.leaf), from, x.out); };
  const auto traced = [&](const std::function<void()>& code) {
    return refusal([&] { trace(device, code, "step"); });
  };
  EXPECT_TRUE(
      has(traced([&] { store(x.a), store(x.c), read(x.a); }),
          "@step: temporary_fields.smooth needs the temporary 'a' on line.pointer[8].dense[16], whose bytes "
          "hold 'c' since temporary_fields.store_ramp; its stages must reach to there"));
  EXPECT_EQ(traced([&] { store(x.a), store(x.b), read(x.a), store(x.c), read(x.b), read(x.c); }), "accepted");
  // A loop's second round comes behind its first one.
  EXPECT_TRUE(
      has(traced([&] { store(x.a), repeat(2, [&] { read(x.a), store(x.c); }); }), "whose bytes hold 'c'"));
  EXPECT_EQ(traced([&] { store(x.a), repeat(1, [&] { read(x.a), store(x.c); }); }), "accepted");
  EXPECT_EQ(traced([&] { store(x.a), repeat(0, [&] { store(x.c); }), read(x.a); }), "accepted");
  EXPECT_EQ(traced([&] { repeat(3, [&] { store(x.a), read(x.a), store(x.c), read(x.c); }); }), "accepted");
  const BufferRef flag = device->reserve(4, 4);
  EXPECT_TRUE(has(traced([&] {
                    store(x.a), loop_while({flag, 0}, [&] { store(x.c); }), read(x.a);
                  }),
                  "hold 'c'"));
  EXPECT_TRUE(has(traced([&] {
                    store(x.a),
                        branch(
                            {flag, 0}, [&] { read(x.a); }, [&] { store(x.c); }),
                        read(x.a);
                  }),
                  "hold 'c'"));
  EXPECT_EQ(traced([&] {
              store(x.a), branch(
                              {flag, 0}, [&] { read(x.a); }, [&] { store(x.b); });
            }),
            "accepted");
  Slot<int32_t> times(device, 2);
  EXPECT_TRUE(has(traced([&] { store(x.a), repeat(times, [&] { store(x.c); }), read(x.a); }), "hold 'c'"));
  // So is what another function does that it runs.
  const Function takes = trace(
      device, [&] { store(x.c); }, "takes");
  EXPECT_TRUE(has(traced([&] { store(x.a), takes.run(), read(x.a); }), "hold 'c'"));
}

// A loop that may have no round, or one side of a branch, has not written for sure: who read behind it
// saw another field's bytes, without an error.
TEST_P(TemporaryFields, ThatMayNotHaveBeenWrittenAreNotRead) {
  const std::string not_counted =
      "; a loop that may have no round, or one side of a branch, does not count as having written it";
  const std::string needs_c =
      "temporary_fields.add_in_place needs the temporary 'c' on line.pointer[8].dense[16]";
  const BufferRef off = device->reserve(4, 4);
  wait(device->default_stream().fill(off->data(), 0, 4));
  const DeviceFlag flag{off, 0};
  Slot<int32_t> none(device, 0);
  for (int way = 0; way < 5; ++way) {
    Line x(device);
    finish(x.leaf.activate({{3}}));
    const auto store = [&](const Field<float>& f) { program().launch(store_ramp, over(x.leaf), f, 1.0f); };
    const auto change = [&](const Field<float>& f) { program().launch(add_in_place, over(x.leaf), f, 1.0f); };
    const auto store_c = [&] { store(x.c); };
    const auto store_out = [&] { store(x.out); };
    const auto maybe_store_c = [&] {
      if (way == 0) repeat(none, store_c);
      if (way == 1) loop_while(flag, store_c);
      if (way == 2) branch(flag, store_c, [] {});
      if (way == 3) branch(flag, store_c, store_out);
      if (way == 4) branch(flag, store_out, store_c);
    };
    const auto traced = [&](const std::function<void()>& code) { return trace(device, code, "step"); };
    // Nothing has written c.
    const Function uses_c = traced([&] { maybe_store_c(), change(x.c); });
    EXPECT_EQ(refusal([&] { uses_c.run(); }),
              needs_c + ", to which nothing has been written before" + not_counted);
    const std::string holds_a = needs_c + ", whose bytes hold 'a' since temporary_fields.store_ramp";
    EXPECT_TRUE(has(refusal([&] { traced([&] { store(x.a), maybe_store_c(), change(x.c); }); }),
                    holds_a + not_counted));
    // The same is true behind the function.
    finish(traced([&] { store(x.a), maybe_store_c(); }).run());
    EXPECT_EQ(refusal([&] { change(x.c); }), holds_a + not_counted);
    // But it may have been written, and then the bytes are no longer a's.
    EXPECT_TRUE(has(refusal([&] { traced([&] { store(x.a), maybe_store_c(), change(x.a); }); }), "hold 'c'"));
    // A value from before is there in any case, and so is one that both sides of a branch write.
    finish(traced([&] { store(x.c), maybe_store_c(), change(x.c); }).run());
    EXPECT_EQ(wait_read(x.c, {3}), 5);
    store(x.a);
    finish(traced([&] { branch(flag, store_c, store_c), change(x.c); }).run());
    finish(traced([&] { maybe_store_c(), change(x.c); }).run());
    EXPECT_EQ(wait_read(x.c, {3}), way == 4 ? 5 : 6);
  }
}

// A launch that was skipped behind an error has written nothing.
TEST_P(TemporaryFields, AreForgottenWithErrors) {
  Line x(device);
  finish(x.leaf.activate({{3}}));
  Stream& stream = device->default_stream();
  program().launch(store_ramp, over(x.leaf), x.a, 1.0f);
  stream.enqueue("fails", [](InStream&) { throw Error(ErrorCode::kInternal, "on purpose"); });
  program().launch(store_ramp, over(x.leaf), x.c, 1.0f);
  wait(program().launch(add_in_place, over(x.leaf), x.c, 1.0f));
  stream.clear_error();
  for (const Field<float>& f : {x.a, x.c}) {
    EXPECT_TRUE(has(refusal([&] { program().launch(add_in_place, over(x.leaf), f, 1.0f); }),
                    "to which nothing has been written before"));
    EXPECT_TRUE(has(refusal([&] { wait_read(f, {3}); }), "to which nothing has been written"));
  }
  finish(program().launch(store_ramp, over(x.leaf), x.c, 1.0f));
  EXPECT_EQ(wait_read(x.c, {3}), 4);
}

TEST_P(TemporaryFields, GoFromFunctionToFunction) {
  Line x(device);
  finish(x.leaf.activate({{3}}));
  const Function first = trace(
      device, [&] { program().launch(store_ramp, over(x.leaf), x.a, 1.0f); }, "first");
  const Function second = trace(
      device, [&] { program().launch(mix, over(x.leaf), x.a, x.a, x.out, 1.0f); }, "second");
  const Function third = trace(
      device, [&] { program().launch(store_ramp, over(x.leaf), x.c, 1.0f); }, "third");
  const Function both = trace(
      device, [&] { second.run(), third.run(); }, "both");
  EXPECT_TRUE(has(refusal([&] { second.run(); }),
                  "mix needs the temporary 'a' on line.pointer[8].dense[16], to which"));
  second.run(0);
  finish(first.run());
  finish(second.run(3));
  EXPECT_EQ(values(x)[3], 8);
  EXPECT_TRUE(has(refusal([&] { both.run(2); }), "whose bytes hold 'c'"));
  finish(both.run());
  EXPECT_TRUE(
      has(refusal([&] { second.run(); }), "mix needs the temporary 'a' on line.pointer[8].dense[16], whose"));
  finish(first.run()), finish(both.run());
}

TEST_P(TemporaryFields, AreNotZeroedWhenCellsAreUsedAgain) {
  Line x(device);
  std::vector<std::array<int32_t, 3>> all;
  for (int k = 0; k < 8; ++k) all.push_back({16 * k});
  finish(x.leaf.activate(all));
  program().launch(store_ramp, over(x.leaf), x.b, 100.0f);
  program().launch(store_ramp, over(x.leaf), x.out, 100.0f);
  finish(x.tree.deactivate_all());
  finish(x.leaf.activate(all));
  EXPECT_EQ(values(x), std::vector<float>(128, 0.0f));
  // They hold what some cell held before: nobody looks at this but a test.
  const std::vector<float> b = wait_read(x.b, {0}, {128});
  EXPECT_TRUE(std::all_of(b.begin(), b.end(), [](float v) { return v >= 100; }));
}

TEST_P(TemporaryFields, AreNoValuesThatKeepACell) {
  Line x(device);
  finish(x.leaf.activate({{0}, {40}}));
  wait_room(*device, x.block, 8);
  program().launch(store_ramp, over(x.leaf), x.b, 100.0f);
  finish(program().launch(set_at, range(1), x.out, 40, 1.0f));
  EXPECT_TRUE(
      has(refusal([&] { prune(x.leaf, 0.0, x.b); }), "'b' on line.pointer[8].dense[16] is a temporary"));
  const AsyncValueRef<uint64_t> pruned = prune(x.leaf);
  wait(pruned);
  EXPECT_EQ(pruned.get(), 1u);
  EXPECT_EQ(x.block.wait_num_active_cells(), 1u);
  // Where they lie in the middle of a cell it cannot tell them from values.
  Tree tree(device, {.name = "two"});
  const Node block = tree.root().pointer({4});
  const Node one = block.dense({8}), other = block.dense({8});
  one.place<float>("x"), one.temporary<float>("t"), other.temporary<float>("u");
  EXPECT_TRUE(has(refusal([&] { prune(one); }), "name fields to compare"));
}

TEST_P(TemporaryFields, LieOnNodesOfAllKinds) {
  for (const bool shares : {true, false}) {
    Tree tree(device, {.name = "kinds"});
    const auto add = [&](const Node& node, const std::string& name, Stages stages) {
      return shares ? node.temporary<float>(name, stages) : node.place<float>(name);
    };
    const Node block = tree.root().pointer({8});
    const Field<float> on_block = block.place<float>("kept"), p = add(block, "p", {0, 1}),
                       q = add(block, "q", {2, 3});
    const Node structs = block.dense({4}).layout(CellLayout::kArrayOfStructs);
    const Field<float> in_struct = structs.place<float>("s"), s = add(structs, "s0", {0, 0}),
                       t = add(structs, "s1", {1, 1});
    const Node outer = block.dense({2});
    const Field<float> u = add(outer, "u", {0, 0}), v = add(outer, "v", {1, 1});
    const Node inner = outer.bitmasked({4});
    const Field<float> w = add(inner, "w", {0, 0}), z = add(inner, "z", {1, 1}),
                       sum = inner.place<float>("sum");
    const Field<float> total = outer.place<float>("total");
    finish(inner.activate({{3}, {20}, {63}}));
    const auto run_pair = [&](const Node& node, const Field<float>& one, const Field<float>& other,
                              const Field<float>& to) {
      program().launch(store_ramp, over(node), one, 1.0f);
      program().launch(mix, over(node), one, one, to, 1.0f);
      program().launch(store_ramp, over(node), other, 7.0f);
      program().launch(add_in_place, over(node), to, 0.5f);
      program().launch(smooth, over(node), other, to);
    };
    run_pair(block, p, q, on_block);
    run_pair(structs, s, t, in_struct);
    run_pair(outer, u, v, total);
    program().launch(store_block, over(inner), w, 4, 0.0f);
    program().launch(store_block, over(inner), z, 4, 0.0f);
    run_pair(inner, w, z, sum);
    static std::vector<float> expected[3];
    const std::vector<float> got[3] = {wait_read(on_block, {0}, {8}), wait_read(in_struct, {0}, {32}),
                                       wait_read(total, {0}, {16})};
    for (int k = 0; k < 3; ++k) {
      if (shares)
        expected[k] = got[k];
      else
        EXPECT_EQ(got[k], expected[k]) << k;
    }
    EXPECT_EQ(got[1][0], 15);  // 7 of its own, 8 of the next one
    EXPECT_EQ(wait_read(sum, {20}), 27);
  }
}

TEST_P(TemporaryFields, OfListsHaveAValuePerElement) {
  Tree tree(device, {.name = "lists"});
  const Node lists = tree.root().dense({4}).dynamic(1000, 16);
  const Field<float> x = lists.place<float>("x"), y = lists.place<float>("y");
  const Field<float> t = lists.temporary<float>("t", {0, 0}), u = lists.temporary<float>("u", {1, 1});
  EXPECT_EQ(text_of(memory_of(lists)), "2 temporaries of 8 bytes per cell together in 4; no plan needs less");
  EXPECT_TRUE(
      has(refusal([&] { program().launch(append_numbers, range(4), t, 4); }), "appends to field 't' on"));
  EXPECT_TRUE(has(refusal([&] { append(t, nullptr, nullptr, 0); }),
                  "'t' on lists.dense[4].dynamic[1000] is a temporary"));
  wait_room(*device, lists, 20);
  for (int round = 0; round < 2; ++round) {
    finish(program().launch(append_numbers, range(200), x, 4));
    program().launch(store_entries, over(lists), x, t, 2.0f);
    program().launch(add_entries, over(lists), t, y);
    program().launch(store_entries, over(lists), x, u, 3.0f);
    finish(program().launch(add_entries, over(lists), u, y));
    const std::vector<float> numbers = wait_read_list(x, {1}), sums = wait_read_list(y, {1}),
                             last = wait_read_list(u, {1});
    ASSERT_EQ(numbers.size(), 50u);
    for (size_t k = 0; k < 50; ++k) {
      ASSERT_EQ(sums[k], 5 * numbers[k]) << k;
      ASSERT_EQ(last[k], 3 * numbers[k]) << k;
    }
    EXPECT_TRUE(has(refusal([&] { wait_read_list(t, {1}); }), "a list to read: 't' on"));
    finish(tree.deactivate_all());
  }
}

TEST_P(TemporaryFields, AreReadByStencilsAndAddedToThroughTiles) {
  for (const bool shares : {true, false}) {
    for (const bool is_masked : {false, true}) {
      Tree tree(device);
      const Node block = tree.root().pointer({4, 4});
      const Node leaf = is_masked ? block.bitmasked({8, 8}) : block.dense({8, 8});
      const auto add = [&](const std::string& name, Stages stages) {
        return shares ? leaf.temporary<float>(name, stages) : leaf.place<float>(name);
      };
      const Field<float> out = leaf.place<float>("out"), a = add("a", {0, 1}), b = add("b", {1, 2}),
                         c = add("c", {2, 3});
      std::vector<std::array<int32_t, 3>> cells;
      for (int i = 0; i < 8; ++i) {
        for (int j = 0; j < 24; ++j) cells.push_back({4 + i, j});  // halves of leaves
      }
      finish(leaf.activate(cells));
      // Nothing zeroes a masked leaf's inactive cells, so the program does.
      for (int round = 0; round < 3; ++round) {
        const auto clear = [&](const Field<float>& f) {
          if (is_masked) program().launch(clear_block2, over(leaf), f, 64);
        };
        clear(a), program().launch(store_ramp2, over(leaf), a, 3.0f);
        clear(b), program().launch(smooth2, over(leaf), a, b);
        program().launch(clear_block2, over(leaf), c, 64);
        program().launch(scatter2, over(leaf), b, c);
        program().launch(add2, over(leaf), b, c, out);
      }
      static std::vector<float> expected[2];
      const std::vector<float> got = wait_read(out, {0, 0}, {32, 32});
      if (shares)
        expected[is_masked] = got;
      else
        EXPECT_EQ(got, expected[is_masked]) << is_masked;
      EXPECT_NE(got[32 * 5 + 5], 0);
    }
  }
}

// Programs of many temporaries, with stages and sizes of their own.
TEST_P(TemporaryFields, OfAnyStagesGiveTheSameResults) {
  std::mt19937 random(5);
  const int programs = is_emulated() ? 6 : 40;
  for (int k = 0; k < programs; ++k) {
    constexpr int kStages = 6;
    const int n = 2 + static_cast<int>(random() % 9);
    std::vector<Stages> stages;
    std::vector<bool> is_double;
    for (int i = 0; i < n; ++i) {
      const auto first = static_cast<int32_t>(random() % kStages);
      stages.push_back({first, std::min<int32_t>(kStages - 1, first + static_cast<int32_t>(random() % 3))});
      is_double.push_back(random() % 3 == 0);
    }
    std::vector<float> results[2];
    for (const bool shares : {false, true}) {
      Tree tree(device);
      const Node leaf =
          k % 2 == 0 ? tree.root().pointer({4}).dense({8}) : tree.root().pointer({4}).bitmasked({8});
      if (k % 3 == 0) leaf.layout(CellLayout::kArrayOfStructs);
      const Field<float> out = leaf.place<float>("out");
      std::vector<Field<float>> singles(static_cast<size_t>(n));
      std::vector<Field<double>> doubles(static_cast<size_t>(n));
      for (size_t i = 0; i < singles.size(); ++i) {
        const std::string name = std::to_string(i);
        if (is_double[i])
          doubles[i] = shares ? leaf.temporary<double>(name, stages[i]) : leaf.place<double>(name);
        else
          singles[i] = shares ? leaf.temporary<float>(name, stages[i]) : leaf.place<float>(name);
      }
      finish(leaf.activate({{1}, {9}, {10}, {31}}));
      const Function f = trace(device, [&] {
        for (int stage = 0; stage < kStages; ++stage) {
          for (size_t i = 0; i < singles.size(); ++i) {
            if (stages[i].first == stage && is_double[i])
              program().launch(store_double, over(leaf), doubles[i], 10.0 * static_cast<double>(i));
            else if (stages[i].first == stage)
              program().launch(store_ramp, over(leaf), singles[i], 10.0f * static_cast<float>(i));
          }
          for (size_t i = 0; i < singles.size(); ++i) {
            if (stages[i].last != stage) continue;
            if (is_double[i])
              program().launch(add_double, over(leaf), doubles[i], out);
            else
              program().launch(add_single, over(leaf), singles[i], out);
          }
        }
      });
      finish(f.run(2));
      results[shares] = wait_read(out, {0}, {32});
      if (!shares) continue;
      const CellMemory m = memory_of(leaf);
      ASSERT_EQ(plan::find_fault(m.problem, m.plan), std::nullopt);
    }
    ASSERT_EQ(results[0], results[1]) << k;
  }
}

TEST_P(TemporaryFields, AreDescribedBeforeTheTreeIsUsed) {
  Tree tree(device, {.name = "line"});
  const Node leaf = tree.root().dense({8});
  EXPECT_EQ(refusal([&] {
              leaf.temporary<float>("t", {3, 2});
            }),
            "temporary 't': its stages end with 2, before they begin with 3");
  leaf.temporary<double>("t"), leaf.temporary<float>("u", {7, 7}), leaf.temporary<float>("v", {-2, 3});
  EXPECT_TRUE(has(refusal([&] { leaf.temporary<float>("u"); }), "has a field of this name"));
  // Without stages it is needed in all of them.
  EXPECT_EQ(text_of(memory_of(leaf)),
            "3 temporaries of 16 bytes per cell together in 12; no plan needs less");
  EXPECT_TRUE(has(refusal([&] { leaf.temporary<float>("w"); }), "the tree is in use"));
}

INSTANTIATE_TEST_SUITE_P(Sparse, TemporaryFields, testing::ValuesIn(test_devices()), device_test_name);

}  // namespace
}  // namespace coppice
