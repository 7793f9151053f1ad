// Kernel files that are changed while their kernels are used. Needs the clang that the build had.
#include "sparse/kernel_reload.h"

#include <gtest/gtest.h>

#include <thread>

#include "executor/builtin_operations.h"
#include "executor/executor.h"
#include "executor/text.h"
#include "gpu/kernel_builder.h"
#include "sparse/launch_graph.h"
#include "sparse/operations.h"
#include "sparse/read_back.h"
#include "tests/sparse/kernel_copy.h"
#include "tests/sparse/staging.h"
#include "tests/sparse/test_devices.h"

namespace coppice {
namespace {

using Status = KernelReloadStatus::State;

class Reload : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    if (const std::string why = KernelCopy::why_none(); !why.empty()) GTEST_SKIP() << why;
    copy.emplace();
    tree.emplace(device);
    leaf = tree->root().pointer({64, 64}).dense({8, 8});
    x = leaf->place<int>("x"), y = leaf->place<int>("y");
    leaf->activate({{0, 0}});
    reload.emplace();
  }
  void TearDown() override {
    reload.reset(), tree.reset(), copy.reset();
    DeviceTest::TearDown();
  }

  // Until what was saved is there, or was refused.
  KernelReloadStatus wait_reload() {
    loaded.clear();
    KernelReloadStatus status;
    bool has_begun = false;  // else it may be the failure before
    for (int i = 0; i < 6000; ++i) {
      const std::vector<LoadedKernels> now = reload->poll();
      loaded.insert(loaded.end(), now.begin(), now.end());
      status = reload->status();
      has_begun |= status.state == Status::kCompiling;
      if (!loaded.empty() || (has_begun && status.state == Status::kFailed)) return status;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ADD_FAILURE() << "nothing was loaded in a minute: " << status.text;
    return status;
  }
  // Files are looked at from the first launch on.
  void wait_watching() {
    for (int i = 0; i < 1000 && reload->status().state == Status::kNone; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ASSERT_EQ(reload->status().state, Status::kWatching);
  }
  int filled() {
    program().launch(copy->of(fill), over(*leaf), x, ReloadScale{1});
    return wait_read(x, {3, 3});
  }

  std::optional<KernelCopy> copy;
  std::optional<Tree> tree;
  std::optional<Node> leaf;
  Field<int> x, y;
  std::optional<KernelReload> reload;
  std::vector<LoadedKernels> loaded;
};

TEST_P(Reload, AChangedKernelTakesThePlaceOfTheOneBefore) {
  EXPECT_EQ(filled(), 102);
  wait_watching();
  copy->save("2 * scale", "3 * scale");
  EXPECT_EQ(wait_reload().state, Status::kLoaded);
  ASSERT_EQ(loaded.size(), 1u);
  EXPECT_EQ(loaded[0].file, "copy.kernels.cc");
  EXPECT_EQ(filled(), 103);
  const std::string hash = loaded[0].hash;
  copy->save("2 * scale", "4 * scale");
  EXPECT_EQ(wait_reload().state, Status::kLoaded);
  EXPECT_EQ(filled(), 104);
  copy->save("2 * scale", "3 * scale");  // compiled before, and in the cache
  EXPECT_EQ(wait_reload().state, Status::kLoaded);
  EXPECT_EQ(loaded[0].hash, hash);
  EXPECT_EQ(filled(), 103);
}

// Seen to fail with bound launches that keep what they were made of, and with a launch graph that keeps its
// recording.
TEST_P(Reload, WhoeverHoldsALaunchGetsTheNewKernel) {
  const BoundLaunch bound = program().bind(copy->of(fill), over(*leaf), x, ReloadScale{1});
  const BoundLaunch other = program().bind(copy->of(fill), over(*leaf), y, ReloadScale{2});
  const LaunchGraph graph({bound, other});
  executor::Registry registry;
  executor::add_builtin_operations(registry);
  add_sparse_operations(registry);
  const auto module =
      executor::LoadedModule::load(executor::parse("func @main(%start: chain, %a: launch) -> chain {\n"
                                                   "  %e0 = stream.start (%start)\n"
                                                   "  %e1 = sparse.launch (%e0, %a)\n"
                                                   "  %done = stream.done (%e1)\n"
                                                   "  return %done\n}\n",
                                                   "test.graph"),
                                   registry);
  const auto host = make_intrusive<executor::Host>();
  const auto request = host->start_request(IntrusivePtr<Stream>(&device->default_stream()));
  const auto run_function = [&] {
    for (const auto& result : execute(
             module->function("main"),
             {make_available_async_value<Chain>(), make_available_async_value<BoundLaunch>(bound)}, *request))
      wait(*result);
  };
  const auto weights = wait_device_copy(*device, std::vector<int>{1, 2});
  for (const auto& [text, ones, twos] :
       {std::tuple("2 * scale", 102, 104), {"5 * scale", 105, 110}, {"7 * scale", 107, 114}}) {
    if (ones != 102) {
      copy->save("2 * scale", text);
      ASSERT_EQ(wait_reload().state, Status::kLoaded) << reload->status().text;
    }
    wait(graph.launch(2));
    EXPECT_EQ(wait_read(x, {3, 3}), ones) << "in a launch graph";
    EXPECT_EQ(wait_read(y, {3, 3}), twos) << "in a launch graph";
    program().launch(copy->of(weigh), over(*leaf), x, weights->as<ReloadWeights>());
    EXPECT_EQ(wait_read(x, {3, 3}), 21);
    bound.launch();
    EXPECT_EQ(wait_read(x, {3, 3}), ones) << "bound";
    program().launch(copy->of(fill), over(*leaf), x, ReloadScale{0});
    run_function();
    EXPECT_EQ(wait_read(x, {3, 3}), ones) << "in a function";
    EXPECT_EQ(bound.name(), "reload.fill");
    if (ones == 102) wait_watching();
  }
}

TEST_P(Reload, AnErrorNamesFileAndLineAndTheLastGoodKernelGoesOn) {
  EXPECT_EQ(filled(), 102);
  wait_watching();
  copy->save("scale.factor", "scale.factr");
  KernelReloadStatus status = wait_reload();
  EXPECT_EQ(status.state, Status::kFailed);
  EXPECT_NE(status.text.find("copy.kernels.cc:13:23: error: no member named 'factr'"), std::string::npos)
      << status.text;
  EXPECT_EQ(filled(), 102);
  copy->save("2 * scale", "6 * scale");
  EXPECT_EQ(wait_reload().state, Status::kLoaded) << reload->status().text;
  EXPECT_EQ(filled(), 106);
  copy->save("x[cell] = 2", "static int n = 0; x[cell] = ++n + 2");  // clang takes it, and kernels may not
  status = wait_reload();
  EXPECT_EQ(status.state, Status::kFailed);
  EXPECT_NE(status.text.find("copy.kernels.cc:13: "), std::string::npos) << status.text;
  EXPECT_EQ(filled(), 106);
}

TEST_P(Reload, WhatTheProgramWasBuiltWithMustNotChange) {
  EXPECT_EQ(filled(), 102);
  wait_watching();
  const auto expect_refused = [&](const std::string& words) {
    const KernelReloadStatus status = wait_reload();
    EXPECT_EQ(status.state, Status::kFailed);
    EXPECT_NE(status.text.find(words), std::string::npos) << status.text;
    EXPECT_EQ(filled(), 102);
  };
  copy->save("ReloadScale scale)", "ReloadScale scale, float more)");
  expect_refused("kernel reload.fill: its arguments changed; build the program again");
  copy->save("COPPICE_KERNEL(weigh,", "COPPICE_KERNEL(ponder,");
  expect_refused("kernel reload.weigh: it is gone; build the program again");
  copy->save("int factor;", "int none; int factor;");
  expect_refused("kernel reload.fill: its arguments changed; build the program again");
  copy->save(copy->kernels);
  EXPECT_EQ(wait_reload().state, Status::kLoaded);
  copy->save_header(
      replaced(copy->header, "int first, second", "int second, first"));  // only a pointer leads to it
  expect_refused("a type that its kernels share with the program changed (coppice::ReloadWeights)");
}

TEST_P(Reload, AHeaderThatItIncludesCounts) {
  EXPECT_EQ(filled(), 102);
  wait_watching();
  copy->save_header(replaced(copy->header, "= 100", "= 200"));
  EXPECT_EQ(wait_reload().state, Status::kLoaded) << reload->status().text;
  EXPECT_EQ(filled(), 202);
  copy->save_header(replaced(copy->header, "= 100", "= 300"));  // as clang's list of headers says now
  EXPECT_EQ(wait_reload().state, Status::kLoaded) << reload->status().text;
  EXPECT_EQ(filled(), 302);
}

TEST_P(Reload, TheLastOfTwoQuickSavesCounts) {
  const BoundLaunch bound = program().bind(copy->of(fill), over(*leaf), x, ReloadScale{1});
  EXPECT_EQ(filled(), 102);
  wait_watching();
  for (const char* text : {"3 * scale", "4 * scale", "5 * scale"}) {
    copy->save("2 * scale", text);
    std::this_thread::sleep_for(std::chrono::milliseconds(text[0] == '3' ? 300 : 20));
  }
  for (int i = 0; i < 100 && filled() != 105; ++i) wait_reload();
  EXPECT_EQ(filled(), 105);
  wait(bound.launch());
  EXPECT_EQ(wait_read(x, {3, 3}), 105);
}

// It activates cells now: whoever holds the launch must follow the tree.
TEST_P(Reload, AKernelThatDoesMoreIsTakenForWhatItIs) {
  const LaunchGraph graph({program().bind(copy->of(touch), range(64), x),
                           program().bind(copy->of(fill), over(*leaf), x, ReloadScale{1})});
  wait(graph.launch());
  EXPECT_EQ(leaf->wait_num_active_blocks(), 1u);
  wait_watching();
  copy->save("(void)x.is_active(i, {static_cast<int>(i.index), 0})",
             "x.set(i, {8 * static_cast<int>(i.index), 0}, 1)");
  ASSERT_EQ(wait_reload().state, Status::kLoaded) << reload->status().text;
  wait(graph.launch(2));
  EXPECT_EQ(leaf->wait_num_active_blocks(), 64u);
  EXPECT_EQ(wait_read(x, {8 * 63, 5}), 102);
}

// The wrong number of coordinates is known when the tree is: the device's compiler refuses it. Seen to fail
// without rejecting, when launches get the error.
TEST_P(Reload, WhatTheDeviceRefusesLeavesTheLastGoodOne) {
  for (const bool is_bound : {false, true}) {
    std::optional<BoundLaunch> bound;
    if (is_bound) bound = program().bind(copy->of(touch), range(1), x);
    const auto touch_once = [&] {
      const auto done = bound ? bound->launch() : program().launch(copy->of(touch), range(1), x);
      wait(done);
      return done.is_error() ? done.error().message() : "";
    };
    EXPECT_EQ(touch_once(), "");
    EXPECT_EQ(filled(), 102);
    if (!is_bound) wait_watching();
    copy->save(replaced(replaced(copy->kernels, "static_cast<int>(i.index), 0}", "1}"), "2 *", "3 *"));
    wait_reload();
    EXPECT_EQ(touch_once(), "");
    reload->poll();
    const KernelReloadStatus status = reload->status();
    EXPECT_EQ(status.state, Status::kFailed);
    EXPECT_NE(status.text.find("copy.kernels.cc:18"), std::string::npos) << status.text;
    EXPECT_EQ(filled(), 102) << "kernels of one file go together";
    copy->save(copy->kernels);
    EXPECT_EQ(wait_reload().state, Status::kLoaded);
    EXPECT_EQ(touch_once(), "");
  }
}

TEST_P(Reload, WithoutClangOneLineSaysSo) {
  const KernelRecipe built = read_kernel_recipe(std::filesystem::path(reload_kernels.recipe));
  copy->save_recipe(replaced(copy->recipe(), "clang " + built.clang, "clang /nowhere/clang++"));
  EXPECT_EQ(filled(), 102);
  std::string text;
  for (int i = 0; i < 1000 && text.find("/nowhere") == std::string::npos; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    text = reload->status().text;
  }
  EXPECT_EQ(reload->status().state, Status::kNone);
  EXPECT_EQ(text,
            "changed kernels cannot be compiled: there is no /nowhere/clang++, with which the build did it");
  copy->save("2 * scale", "3 * scale");
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  EXPECT_TRUE(reload->poll().empty());
  EXPECT_EQ(filled(), 102);
}

INSTANTIATE_TEST_SUITE_P(Sparse, Reload, testing::ValuesIn(test_devices()), device_test_name);

}  // namespace
}  // namespace coppice
