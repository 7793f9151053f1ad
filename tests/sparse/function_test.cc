// Functions that are traced from code: what they hold, what they do, and what cannot be traced.
#include "sparse/function.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "executor/text.h"
#include "function.kernels.h"
#include "gpu/host_access.h"
#include "sparse/buffer_operations.h"
#include "sparse/device_operations.h"
#include "sparse/function_text.h"
#include "tests/sparse/refusal.h"
#include "tests/sparse/test_devices.h"

namespace coppice {
namespace {

// Returns what a call is refused with.
template <class F>
std::string refused(const F& f) {
  return refusal(f, {ErrorCode::kInvalidArgument, ErrorCode::kNotFound, ErrorCode::kOutOfRange});
}

class Functions : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    tree_.emplace(device, TreeOptions{.name = "line"});
    leaf_ = tree_->root().pointer({64}).dense({4});
    x_ = leaf_->place<int>("x"), y_ = leaf_->place<int>("y"), z_ = leaf_->place<int>("z");
    words_ = device->reserve(4096, 4096);
    finish(leaf_->activate({{0}, {40}, {81}}));
  }
  void TearDown() override {
    leaf_.reset(), tree_.reset(), words_.reset();
    DeviceTest::TearDown();
  }

  uint32_t word(size_t i) {
    program().wait();
    uint32_t value = 0;
    device->wait_copy(&value, words_->as<uint32_t>() + i, sizeof value);
    return value;
  }
  void set_word(size_t i, uint32_t value) {
    program().wait();
    device->wait_copy(words_->as<uint32_t>() + i, &value, sizeof value);
  }
  uint32_t* words() const { return words_->as<uint32_t>(); }

  std::optional<Tree> tree_;
  std::optional<Node> leaf_;
  Field<int> x_, y_, z_;
  BufferRef words_;
};

TEST_P(Functions, HaveEventsThatFollowFromUses) {
  const Function f = trace(
      device,
      [&] {
        program().launch(set_to, over(*leaf_), x_, 3);       // writes x
        program().launch(set_to, over(*leaf_), y_, 4);       // writes y: no matter when
        program().launch(add_cells, over(*leaf_), x_, z_);   // reads x, adds to z
        program().launch(add_cells, over(*leaf_), y_, z_);   // additions commute
        program().launch(copy_cells, over(*leaf_), z_, x_);  // reads z, writes x
        program().launch(grow_at, range(1), x_, 100);        // all of the tree
      },
      "step");
  EXPECT_EQ(print(f), R"(func @step(%begin: event) -> event {
  %set_to = sparse.launch $function.set_to (%begin)
  %set_to.2 = sparse.launch $function.set_to.2 (%begin)
  %add_cells = sparse.launch $function.add_cells (%set_to)
  %add_cells.2 = sparse.launch $function.add_cells.2 (%set_to.2)
  %copy_cells = sparse.launch $function.copy_cells (%add_cells, %add_cells.2)
  %grow_at = sparse.launch $function.grow_at (%copy_cells)
  return %grow_at
}
)");
  finish(f.run());
  EXPECT_EQ(wait_read(x_, {40}), 7);
  EXPECT_TRUE(leaf_->wait_is_active({100}));
}

TEST_P(Functions, JoinEventsThatNothingComesBehind) {
  const Function f = trace(device, [&] {
    program().launch(set_to, over(*leaf_), x_, 3);
    program().launch(set_to, over(*leaf_), y_, 4);
  });
  EXPECT_NE(print(f).find("%end = stream.join(%set_to, %set_to.2)\n  return %end"), std::string::npos)
      << print(f);
  finish(f.run());
  EXPECT_EQ(wait_read(x_, {0}) + wait_read(y_, {0}), 7);
}

TEST_P(Functions, OfNothingDoNothing) {
  const Function f = trace(device, [] {});
  EXPECT_EQ(print(f), "func @main(%begin: event) -> event {\n  return %begin\n}\n");
  finish(f.run(3));
}

TEST_P(Functions, RunNothingWhileTheyAreTraced) {
  AsyncValueRef<Chain> value;
  const Function f = trace(device, [&] { value = program().launch(set_to, over(*leaf_), x_, 3); });
  EXPECT_EQ(wait_read(x_, {0}), 0);
  ASSERT_TRUE(value.is_error());
  EXPECT_NE(std::string(value.error().what())
                .find("function.set_to is part of the function that is traced at function_test.cc:"),
            std::string::npos)
      << value.error().what();
}

TEST_P(Functions, RepeatABodySoManyTimes) {
  Slot<int32_t> times(device, 2);
  const Function f = trace(device, [&] {
    program().launch(add_one, range(1), words());
    repeat(3, [&] {
      program().launch(add_one, range(1), words() + 1);
      repeat(times, [&] {
        program().launch(add_one, range(1), words() + 2);
        sort_by_key<uint32_t>(*device, words_, words_, 0);
      });
    });
  });
  finish(f.run());
  EXPECT_EQ(word(0), 1u);
  EXPECT_EQ(word(1), 3u);
  EXPECT_EQ(word(2), 6u);
  times.set(5);
  f.run();
  times.set(-1);
  f.run();
  EXPECT_EQ(word(0), 3u);
  EXPECT_EQ(word(1), 9u);
  EXPECT_EQ(word(2), 6u + 15u);
  EXPECT_NE(print(f).find("sparse.repeat 3, @main.repeat1"), std::string::npos) << print(f);
  EXPECT_NE(print(f).find("sparse.repeat_by $slot, @main.repeat2"), std::string::npos) << print(f);
}

TEST_P(Functions, LoopWhileAFlagSaysSo) {
  set_word(0, 7);
  const Function f = trace(device, [&] {
    loop_while({words_, 0}, [&] {
      program().launch(subtract_one, range(1), words());
      program().launch(add_one, range(1), words() + 1);
    });
  });
  finish(f.run());
  EXPECT_EQ(word(0), 0u);
  EXPECT_EQ(word(1), 7u);
  finish(f.run());
  EXPECT_EQ(word(1), 7u);
}

TEST_P(Functions, RefuseAFlagBehindTheEndOfItsBufferAtItsTurn) {
  const BufferRef small = device->reserve(64, 4096);
  small->grow(4096);
  const Function f = trace(device, [&] {
    branch({small, 4092}, [&] { program().launch(add_one, range(1), words()); });
  });
  finish(f.run());
  small->shrink(64);
  const AsyncValueRef<Chain> done = f.run();
  wait(done);
  ASSERT_TRUE(done.is_error());
  EXPECT_EQ(done.error().code(), ErrorCode::kOutOfRange);
  EXPECT_NE(std::string(done.error().what()).find("a flag at byte 4092, of a buffer of "), std::string::npos)
      << done.error().what();
  device->default_stream().clear_error();
}

TEST_P(Functions, BranchByAFlag) {
  const Function f = trace(device, [&] {
    branch(
        {words_, 4}, [&] { program().launch(add_one, range(1), words() + 2); },
        [&] { program().launch(add_one, range(1), words() + 3); });
    branch({words_, 4}, [&] { program().launch(subtract_one, range(1), words() + 1); });
  });
  set_word(1, 2);
  finish(f.run(3));
  EXPECT_EQ(word(1), 0u);
  EXPECT_EQ(word(2), 2u);
  EXPECT_EQ(word(3), 1u);
}

TEST_P(Functions, RunOtherFunctions) {
  const Function one = trace(
      device, [&] { program().launch(add_one, range(1), words()); }, "one");
  const Function two = trace(
      device,
      [&] {
        one.run();
        one.run(4);
      },
      "two");
  EXPECT_NE(print(two).find("sparse.run $one"), std::string::npos) << print(two);
  finish(two.run(2));
  EXPECT_EQ(word(0), 10u);
}

TEST_P(Functions, DrawTheNumbersOfWhatIsGivenOneByOne) {
  const Function f = trace(device, [&] {
    tree_->deactivate_all();
    program().launch(draw_word, range(1), words());
  });
  std::string reason;
  const IntrusivePtr<Device> other = test_device(GetParam(), reason);
  Program others(other);
  Tree tree(other, {.name = "line"});
  const Node leaf = tree.root().pointer({64}).dense({4});
  leaf.place<int>("x");
  const BufferRef drawn = other->reserve(64, 64);
  finish(leaf.activate({{0}}));
  finish(f.run(2));
  for (int i = 0; i < 2; ++i) {
    tree.deactivate_all();
    finish(others.launch(draw_word, range(1), drawn->as<uint32_t>()));
  }
  uint32_t value = 0;
  other->wait_copy(&value, drawn->data(), sizeof value);
  EXPECT_EQ(word(0), value);
}

TEST_P(Functions, HaveBufferOperations) {
  const auto keys = device->reserve(64, 64), order = device->reserve(64, 64),
             starts = device->reserve(64, 64);
  const std::vector<uint32_t> given{3, 1, 2, 1, 0, 3, 3, 1}, places{0, 1, 2, 3, 4, 5, 6, 7};
  device->wait_copy(words_->data(), given.data(), 32);
  device->wait_copy(order->data(), places.data(), 32);
  const Function f = trace(device, [&] {
    fill(*device, keys, 255, 0, 64);
    copy(*device, keys, 0, words_, 0, 32);
    sort_by_key<uint32_t>(*device, keys, order, 8);
    bin_starts(*device, keys, 8, starts, 4);
    exclusive_scan(*device, keys, keys, 8);
  });
  finish(f.run());
  std::vector<uint32_t> sorted(8), begins(5), sums(9);
  device->wait_copy(sorted.data(), order->data(), 32);
  device->wait_copy(begins.data(), starts->data(), 20);
  device->wait_copy(sums.data(), keys->data(), 36);
  EXPECT_EQ(sorted, (std::vector<uint32_t>{4, 1, 3, 7, 2, 0, 5, 6}));
  EXPECT_EQ(begins, (std::vector<uint32_t>{0, 1, 4, 5, 8}));
  EXPECT_EQ(sums, (std::vector<uint32_t>{0, 0, 1, 2, 3, 5, 8, 11, ~0u}));
  // The same calls do the same at once.
  finish(fill(*device, starts, 0, 0, 64));
  finish(bin_starts(*device, order, 0, starts, 4));
}

TEST_P(Functions, LoadFromTheirText) {
  Slot<int32_t> times(device, 2);
  const Function f = trace(
      device,
      [&] {
        program().launch(set_to, over(*leaf_), x_, 3);
        repeat(times, [&] { program().launch(add_cells, over(*leaf_), x_, z_); });
        tree_->deactivate_all();
        fill(*device, words_, 1, 0, 4);
      },
      "step");
  const executor::Module again = executor::parse(print(f), f.module().file);
  EXPECT_EQ(executor::print(again), print(f));
  const Function loaded = Function::load(device, again, f.loaded().bindings());
  EXPECT_EQ(print(loaded), print(f));
  finish(loaded.run());
  EXPECT_EQ(word(0), 0x01010101u);
  EXPECT_EQ(leaf_->wait_num_active_blocks(), 0u);
}

TEST_P(Functions, WhoseEventsLeaveSomethingOpenAreRefused) {
  const Function f = trace(device, [&] {
    program().launch(set_to, over(*leaf_), x_, 3);
    program().launch(copy_cells, over(*leaf_), x_, y_);
  });
  std::string text = print(f);
  const auto load = [&] {
    return refusal(
        [&] { Function::load(device, executor::parse(text, "step.graph"), f.loaded().bindings()); });
  };
  EXPECT_EQ(load(), "accepted");
  const size_t at = text.find("(%set_to)");
  text.replace(at, 9, "(%begin)");
  EXPECT_EQ(load(),
            "step.graph:3:17: @main: no event orders %set_to and %copy_cells, which both use 'x' on "
            "line.pointer[64].dense[4]");
  text = print(f);
  text.replace(text.find("return %copy_cells"), 18, "return %set_to");
  EXPECT_EQ(load(),
            "step.graph:3:17: @main: the event that the function returns does not follow %copy_cells");
}

TEST_P(Functions, AreEdited) {
  Function f = trace(device, [&] {
    program().launch(set_to, over(*leaf_), x_, 3);
    repeat(2, [&] { program().launch(add_cells, over(*leaf_), x_, z_); });
    program().launch(copy_cells, over(*leaf_), z_, y_);
  });
  const Function before = f;
  f.insert_after("function.set_to", program().bind(set_to, over(*leaf_), x_, 5));
  f.insert_before("add_cells", program().bind(add_one, range(1), words()));
  finish(f.run());
  EXPECT_EQ(wait_read(y_, {0}), 10);
  EXPECT_EQ(word(0), 2u) << "it is in the loop";
  f.replace("function.copy", program().bind(add_cells, over(*leaf_), z_, y_));
  f.remove("set_to.2");
  finish(f.run());
  EXPECT_EQ(wait_read(y_, {0}), 10 + 16);
  finish(before.run());
  EXPECT_EQ(wait_read(y_, {0}), 22);
  EXPECT_EQ(word(0), 4u) << "a copy stays as it was";
}

TEST_P(Functions, AreEditedInTheOrderOfTheirEvents) {
  const Function f = trace(device, [&] {
    program().launch(set_to, over(*leaf_), x_, 3);
    program().launch(copy_cells, over(*leaf_), x_, y_);
  });
  std::string text = print(f);
  const size_t first = text.find("  %set_to"), second = text.find("  %copy_cells"),
               end = text.find("  return");
  text = text.substr(0, first) + text.substr(second, end - second) + text.substr(first, second - first) +
         text.substr(end);
  Function moved = Function::load(device, executor::parse(text, "moved.graph"), f.loaded().bindings());
  finish(moved.run());
  EXPECT_EQ(wait_read(y_, {0}), 3);
  moved.insert_after("set_to", program().bind(set_to, over(*leaf_), x_, 5));
  finish(moved.run());
  EXPECT_EQ(wait_read(y_, {0}), 5) << print(moved);
}

TEST_P(Functions, AreEditedByNamesThatTheyHave) {
  Function f = trace(device, [&] {
    program().launch(set_to, over(*leaf_), x_, 3);
    program().launch(set_to, over(*leaf_), y_, 3);
  });
  const BoundLaunch launch = program().bind(add_one, range(1), words());
  EXPECT_EQ(refused([&] { f.insert_after("function.set_ot", launch); }),
            "function @main has no operation function.set_ot; did you mean function.set_to?");
  EXPECT_EQ(refused([&] { f.remove("set_ot"); }),
            "function @main has no operation set_ot; did you mean set_to?");
  EXPECT_EQ(refused([&] { f.remove("advection"); }),
            "function @main has no operation advection; it has function.set_to");
  EXPECT_EQ(refused([&] { f.insert_after("fun", launch); }),
            "2 operations are called fun; name one of them by its event: set_to, set_to.2");
  EXPECT_EQ(refused([&] { f.remove(""); }), "an operation is named by nothing");
}

TEST_P(Functions, CannotBeTracedOfWhatWaitsOrReadsBack) {
  const auto tracing = [&](const std::function<void()>& code) {
    return refused([&] { trace(device, code); });
  };
  const auto message = [&](const char* call, const char* behind) {
    return std::string(call) + " cannot be traced" + behind +
           " in @main: what is traced has not run, so that there "
           "is nothing to wait for or to read back";
  };
  const auto refused = [&](const std::function<void()>& code) {
    const std::string text = tracing(code);
    return text.substr(text.find(": ") + 2);
  };
  const auto launch = [&] { return program().launch(set_to, over(*leaf_), x_, 3); };
  EXPECT_EQ(refused([&] { wait(launch()); }), message("wait()", ", behind set_to"));
  EXPECT_EQ(refused([&] { launch(), wait_read(x_, {0}); }), message("sparse.read", ", behind set_to"));
  EXPECT_EQ(refused([&] { program().wait(); }), message("barrier", ""));
  EXPECT_EQ(refused([&] { device->default_stream().clear_error(); }), message("clear_error", ""));
  EXPECT_EQ(refused([&] { leaf_->activate({{3}}); }), message("sparse.activate", ""));
  EXPECT_EQ(refused([&] { leaf_->wait_num_active_blocks(); }), message("sparse.count", ""));
  EXPECT_EQ(refused([&] { device->default_stream().enqueue("host work", [](InStream&) {}); }),
            message("host work", ""));
  EXPECT_EQ(refused([&] { Slot<int>(device).set(3); }), message("slot.set", ""));
  const std::string nested = tracing([&] { trace(device, [] {}); });
  EXPECT_NE(nested.find("it is inside of the trace() at function_test.cc:"), std::string::npos) << nested;
  // And afterwards all is as before.
  finish(launch());
  EXPECT_EQ(wait_read(x_, {0}), 3);
}

// Seen to fail: what came behind was part of the loop, which was not there.
TEST_P(Functions, ABodyThatThrowsIsLeftOut) {
  const Function f = trace(device, [&] {
    try {
      repeat(5, [&] {
        program().launch(add_one, range(1), words());
        throw 7;
      });
    } catch (int) {
    }
    program().launch(add_one, range(1), words() + 1);
  });
  finish(f.run());
  EXPECT_EQ(word(0), 0u);
  EXPECT_EQ(word(1), 1u);
}

TEST_P(Functions, ControlFlowIsForTracing) {
  int rounds = 0;
  repeat(3, [&] { ++rounds; });
  EXPECT_EQ(rounds, 3);
  EXPECT_EQ(refused([&] {
              loop_while({words_, 0}, [] {});
            }),
            "loop_while() is for code that is traced, and nothing is traced on this thread");
  EXPECT_EQ(refused([&] {
              branch({words_, 0}, [] {});
            }),
            "branch() is for code that is traced, and nothing is traced on this thread");
}

TEST_P(Functions, FailAsTheOperationThatFails) {
  const Function f = trace(device, [&] {
    program().launch(add_one, range(1), words());
    fill(*device, words_, 0, 4000, 100);
    program().launch(add_one, range(1), words());
  });
  const auto done = f.run();
  wait(done);
  ASSERT_TRUE(done.is_error());
  EXPECT_STREQ(done.error().what(), "buffer.fill: 100 bytes from byte 4000 on, of a buffer of 4096 bytes");
  device->default_stream().clear_error();
  EXPECT_EQ(word(0), 1u);
  EXPECT_EQ(refused([&] { f.run(-2); }), "function @main cannot be run -2 times");
  Function moved = f;
  const Function other = std::move(moved);
  EXPECT_EQ(refused([&] { moved.run(); }), "a Function is used that was moved from");
}

TEST_P(Functions, ExplainWhatTheirOperationsTouchAndWhy) {
  const Function f = trace(device, [&] {
    program().launch(set_to, over(*leaf_), x_, 3);
    program().launch(copy_cells, over(*leaf_), x_, y_);
    fill(*device, words_, 0, 0, 4);
  });
  const std::string text = explain(f);
  for (const char* part :
       {"  The next 3 are recorded, and replayed as one.\n\n  %set_to = sparse.launch $function.set_to\n    "
        "comes "
        "behind nothing\n",
        "  %copy_cells = sparse.launch $function.copy_cells\n    comes behind %set_to, for 'x' on "
        "line.pointer[64].dense[4]\n",
        "      stores 'y' on line.pointer[64].dense[4] as Write\n", "%fill = buffer.fill 0, $buffer, 0, 4\n"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  const std::string picture = dot(std::span(&f, 1));
  for (const char* part :
       {"label=\"@main\"", "label=\"replayed as one\"", "[label=\"sparse.launch $function.set_to\"]",
        "f0_op0 -> f0_op1 [label=\"'x' on line.pointer[64].dense[4]\"]"})
    EXPECT_NE(picture.find(part), std::string::npos) << part << " in\n" << picture;
}

// Seen to fail: the first of several was taken, and events of two functions had one name for both.
TEST_P(Functions, AreEditedWhereOneOperationAloneHasTheName) {
  Function f = trace(device, [&] {
    program().launch(set_to, over(*leaf_), x_, 1);
    program().launch(set_to, over(*leaf_), y_, 2);
    program().launch(add_one, range(1), words());
    repeat(2, [&] { program().launch(add_one, range(1), words()); });
  });
  EXPECT_EQ(refused([&] { f.remove("function.set_to"); }),
            "2 operations are called function.set_to; name one of them by its event: set_to, set_to.2");
  EXPECT_EQ(
      refused([&] { f.remove("add_one"); }),
      "2 operations are called add_one; name one of them by its event: main.add_one, main.repeat1.add_one");
  f.remove("function.set_to.2");
  f.remove("main.repeat1.add_one");
  finish(f.run());
  EXPECT_EQ(word(0), 1u);
  EXPECT_EQ(print(f).find("set_to.2"), std::string::npos) << print(f);
}

// Seen to fail: it did nothing, without a word.
TEST_P(Functions, DeactivateNoDenseNode) {
  EXPECT_EQ(
      refused([&] { leaf_->deactivate_all(); }),
      "deactivation of line.pointer[64].dense[4]: cells of a dense node are active as long as what is above "
      "them");
  EXPECT_TRUE(refused([&] {
                trace(device, [&] { leaf_->deactivate_all(); });
              }).ends_with(": @main: sparse.deactivate_all: " + refused([&] { leaf_->deactivate_all(); })));
}

// Where a launch may run out of memory or fail, what cannot be skipped on the device stands outside.
TEST_P(Functions, AreReplayedAsOneAsFarAsALaunchCannotFail) {
  const auto runs_of = [&](const std::function<void()>& body) {
    std::string runs;
    for (const auto& [begin, end] : replayed_as_one(trace(device, body).loaded().function("main")))
      runs += std::to_string(begin) + '-' + std::to_string(end) + ' ';
    return runs;
  };
  const auto calm = [&] { program().launch(set_to, over(*leaf_), x_, 3); };
  const auto failing = [&] { program().launch(add_cells, over(*leaf_), x_, z_); };
  const auto call = [&] { fill(*device, words_, 0, 0, 4); };
  EXPECT_EQ(runs_of([&] { call(), calm(), call(), calm(), call(); }), "0-5 ");
  EXPECT_EQ(runs_of([&] { calm(), failing(), calm(), failing(); }), "0-4 ");
  EXPECT_EQ(runs_of([&] { calm(), failing(), call(), calm(), call(), failing(), calm(); }), "0-2 2-5 5-7 ");
  EXPECT_EQ(runs_of([&] { call(), failing(), call(); }), "1-2 ");
  EXPECT_EQ(runs_of([&] { call(), call(); }), "");
  EXPECT_EQ(runs_of([&] { calm(), repeat(2, calm), call(), calm(); }), "0-1 2-4 ");
}

// All that stands before the call that finds no room is done, as it is one by one. Break: all are checked
// first.
TEST_P(Functions, DoWhatStandsBeforeACallWithoutRoom) {
  const auto small = device->reserve(4096, 4096);
  const Function f = trace(device, [&] {
    program().launch(add_one, range(1), words_->as<uint32_t>());
    fill(*device, small, 0, 0, 4096);
    program().launch(add_one, range(1), words_->as<uint32_t>());
  });
  finish(fill(*device, words_, 0, 0, 4));
  finish(f.run());
  EXPECT_EQ(word(0), 2u);
  finish(device->default_stream().enqueue("shrink", [&](InStream&) { small->shrink(64); }));
  const auto done = f.run();
  wait(done);
  ASSERT_TRUE(done.is_error());
  EXPECT_STREQ(done.error().what(), "buffer.fill: 4096 bytes from byte 0 on, of a buffer of 64 bytes");
  device->default_stream().clear_error();
  EXPECT_EQ(word(0), 3u);
}

INSTANTIATE_TEST_SUITE_P(Sparse, Functions, testing::ValuesIn(test_devices()), device_test_name);

// Seen to fail: it was accepted, and failed when it ran.
TEST(Function, OfAnotherDeviceIsRefusedWhateverIsInIt) {
  const auto one = Device::cpu(1), other = Device::cpu(1);
  const auto words = other->reserve(64, 64);
  const Function inner = trace(
      other, [&] { fill(*other, words, 0, 0, 64); }, "inner");
  EXPECT_NE(refused([&] { trace(one, [&] { inner.run(); }); }).find("inner belongs to another device (cpu)"),
            std::string::npos);
}

// Seen to fail: buffers of another device were accepted, and failed when the function ran, and other errors
// told no place.
TEST(Function, IsRefusedWithThePlaceInItsText) {
  const auto one = Device::cpu(1), other = Device::cpu(1);
  Program program(other);
  Tree tree(other);
  const auto words = one->reserve(64, 64), others = other->reserve(64, 64);
  const Node node = tree.root().pointer({4}).dense({4});
  executor::Bindings bindings;
  bindings.add("b", words), bindings.add("b2", others), bindings.add("none", IntrusivePtr<Buffer>());
  bindings.add("l2", program.bind(add_one, range(1), others->as<uint32_t>()));
  bindings.add("n2", node), bindings.add("s2", Slot<int32_t>(other, 1));
  bindings.add("f2", trace(other, [&] { fill(*other, others, 0, 0, 4); }));
  const auto load = [&](std::string_view operation) {
    const std::string text = fmt::format(
        "func @main(%e: event) -> event {{\n  %a = {} (%e)\n  return %a\n}}\n"
        "func @g(%e: event) -> event {{ return %e }}\n"
        "func @h(%e: event) -> event {{\n  %a = buffer.fill 0, $b2, 0, 4 (%e)\n  return %a\n}}\n",
        operation);
    return refused([&] { Function::load(one, executor::parse(text, "f.graph"), bindings); });
  };
  const auto at_main = [](std::string_view why) { return fmt::format("f.graph:2:8: @main: {}", why); };
  const std::string of_other = ": $b2 is a buffer of another device";
  EXPECT_EQ(load("buffer.fill 0, $b, 0, 64"), "accepted");
  for (const auto& [name, attributes] :
       std::vector<std::pair<std::string, std::string>>{{"buffer.fill", "1, $b2, 0, 4"},
                                                        {"buffer.copy", "$b, 0, $b2, 0, 4"},
                                                        {"buffer.copy", "$b2, 0, $b, 0, 4"},
                                                        {"primitives.sort_by_key.u32", "$b, $b2, 4"},
                                                        {"primitives.sort_by_key.u64", "$b2, $b, 4"},
                                                        {"primitives.exclusive_scan", "$b, $b2, 4"},
                                                        {"primitives.sum_to.f32", "$b, 1, $b2, 0"},
                                                        {"primitives.histogram", "$b, 1, $b2, 1"},
                                                        {"primitives.bin_starts", "$b2, 1, $b, 1"},
                                                        {"sparse.while", "$b2, 0, @g"},
                                                        {"sparse.branch", "$b2, 0, @g, @g"}})
    EXPECT_EQ(load(name + " " + attributes), at_main(name + of_other));
  EXPECT_EQ(load("sparse.repeat 2, @h"), "f.graph:7:8: @h: buffer.fill" + of_other);
  EXPECT_EQ(load("sparse.branch $b, 0, @g, @h"), "f.graph:7:8: @h: buffer.fill" + of_other);
  EXPECT_EQ(load("sparse.launch $l2"), at_main("sparse.launch: $l2 is a launch of another device (cpu)"));
  EXPECT_EQ(load("sparse.deactivate_all $n2"),
            at_main("sparse.deactivate_all: $n2 is a node of another device (cpu)"));
  EXPECT_EQ(load("sparse.repeat_by $s2, @g"),
            at_main("sparse.repeat_by: $s2 is a slot of another device (cpu)"));
  EXPECT_EQ(load("sparse.run $f2"), at_main("sparse.run: $f2 is a function of another device (cpu)"));
  EXPECT_EQ(load("buffer.fill 1, $none, 0, 4"), at_main("buffer.fill: $none is a null buffer"));
  EXPECT_EQ(load("sparse.while $none, 0, @g"), at_main("sparse.while: $none is a null buffer"));
  EXPECT_EQ(load("buffer.fill 256, $b, 0, 4"), at_main("buffer.fill with 256, which is no byte"));
  EXPECT_EQ(load("sparse.while $b, 3, @g"),
            at_main("sparse.while: a flag at byte 3, and 4 must divide that"));
  EXPECT_EQ(load("sparse.branch $b, 64, @g, @g"),
            at_main("sparse.branch: 4 bytes from byte 64 on, of a buffer of 64 bytes"));
  EXPECT_EQ(load("primitives.sum_to.f64 $b, 1, $b, 4"),
            at_main("primitives.sum_to: a sum at byte 4, and 8 must divide that"));
}

// The launch that faults has its number, and none behind it has. Seen to fail: all of the replay had theirs.
TEST(Function, DrawsTheSameNumbersBehindAFault) {
  std::vector<uint32_t> drawn;
  for (const bool is_traced : {true, false}) {
    const auto device = Device::simt();
    Program program(device);
    const auto words = device->reserve(64, 64);
    fill(*device, words, 0, 0, 64);
    const auto step = [&] {
      program.launch(add_one, range(1), words->as<uint32_t>());
      program.launch(store_beside_at, range(1), words->as<uint32_t>(), 3u);
      program.launch(draw_word, range(1), words->as<uint32_t>() + 1);
    };
    if (is_traced) {
      wait(trace(device, step).run(4));
    } else {
      for (int i = 0; i < 4; ++i) step();
      wait(device->default_stream().barrier());
    }
    device->default_stream().clear_error();
    program.launch(draw_word, range(1), words->as<uint32_t>() + 1);
    program.wait();
    drawn.push_back(0);
    device->wait_copy(&drawn.back(), words->data() + 4, 4);
  }
  EXPECT_EQ(drawn[0], drawn[1]);
}

TEST(Function, BelongsToOneDevice) {
  const auto one = Device::cpu(1), other = Device::cpu(1);
  Program a(one), b(other);
  const auto words = one->reserve(64, 64), others = other->reserve(64, 64);
  const std::string text =
      refused([&] { trace(one, [&] { b.launch(add_one, range(1), others->as<uint32_t>()); }); });
  EXPECT_NE(text.find("function.add_one belongs to another device (cpu)"), std::string::npos) << text;
  EXPECT_NE(refused([&] {
              trace(one, [&] { fill(*one, others, 0, 0, 4); });
            }).find("fill is given a buffer of another device"),
            std::string::npos);
  const Function f = trace(one, [&] { a.launch(add_one, range(1), words->as<uint32_t>()); });
  EXPECT_NE(refused([&] {
              Function::load(other, f.module(), f.loaded().bindings());
            }).find("@main: sparse.launch: $function.add_one is a launch of another device (cpu)"),
            std::string::npos);
  EXPECT_NE(refused([&] { trace({}, [] {}); }).find("no device"), std::string::npos);
  EXPECT_NE(refused([&] {
              trace(
                  one, [] {}, "two words");
            }).find("is no name of a function"),
            std::string::npos);
}

}  // namespace
}  // namespace coppice
