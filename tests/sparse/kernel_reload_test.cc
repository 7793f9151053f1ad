// Kernel files that are changed while their kernels are used. Needs the clang that the build had.
#include "sparse/kernel_reload.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "executor/builtin_operations.h"
#include "executor/executor.h"
#include "executor/text.h"
#include "gpu/kernel_builder.h"
#include "gpu/kernel_store.h"
#include "gpu/kernel_versions.h"
#include "sparse/operations.h"
#include "sparse/read_back.h"
#include "tests/sparse/environment.h"
#include "tests/sparse/kernel_copy.h"
#include "tests/sparse/staging.h"
#include "tests/sparse/test_devices.h"
#include "tests/sparse/traced.h"

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
      const bool stayed = status.text.ends_with("is as it was");
      if (!loaded.empty() || (has_begun && (status.state == Status::kFailed || stayed))) return status;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ADD_FAILURE() << "nothing was loaded in a minute: " << status.text;
    return status;
  }
  // Whatever else it said before.
  bool fails_with(const std::string& words) {
    for (int i = 0; i < 6000; ++i) {
      reload->poll();
      const KernelReloadStatus status = reload->status();
      if (status.state == Status::kFailed && status.text.find(words) != std::string::npos) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
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

TEST_P(Reload, AKernelThatStayedAsItWasKeepsItsCode) {
  const auto weights = wait_device_copy(*device, std::vector<int>{1, 2});
  const BoundLaunch fills = program().bind(copy->of(fill), over(*leaf), x, ReloadScale{1});
  const BoundLaunch weighs = program().bind(copy->of(weigh), over(*leaf), y, weights->as<ReloadWeights>());
  EXPECT_EQ(filled(), 102);
  wait_watching();
  copy->save("2 * scale", "3 * scale");
  ASSERT_EQ(wait_reload().state, Status::kLoaded) << reload->status().text;
  const auto num_asked_for = [&] {
    const jit::KernelCache::Stats stats = device->kernels().disk_cache().stats();
    return stats.hits + stats.misses;
  };
  const uint64_t before = num_asked_for();
  copy->save("2 * scale", "\n\n4 * scale");  // the other kernel is two lines lower
  ASSERT_EQ(wait_reload().state, Status::kLoaded) << reload->status().text;
  EXPECT_EQ(num_asked_for() - before, 1u);
  EXPECT_EQ(filled(), 104);
  weighs.launch();
  EXPECT_EQ(wait_read(y, {3, 3}), 21);
}

// Seen to fail with bound launches that keep what they were made of, and with a function that keeps its
// recording.
TEST_P(Reload, WhoeverHoldsALaunchGetsTheNewKernel) {
  const BoundLaunch bound = program().bind(copy->of(fill), over(*leaf), x, ReloadScale{1});
  const BoundLaunch other = program().bind(copy->of(fill), over(*leaf), y, ReloadScale{2});
  const Function function = traced({bound, other});
  executor::Registry registry;
  executor::add_builtin_operations(registry);
  add_sparse_operations(registry);
  executor::Bindings bindings;
  bindings.add("fill", bound);
  const auto module = executor::LoadedModule::load(executor::parse("func @main(%start: chain) -> chain {\n"
                                                                   "  %e0 = stream.start (%start)\n"
                                                                   "  %e1 = sparse.launch $fill (%e0)\n"
                                                                   "  %done = stream.done (%e1)\n"
                                                                   "  return %done\n}\n",
                                                                   "test.graph"),
                                                   registry, bindings);
  const auto host = make_intrusive<executor::Host>();
  const auto request = host->start_request(share(&device->default_stream()));
  const auto run_function = [&] {
    for (const auto& result :
         execute(module->function("main"), {make_available_async_value<Chain>()}, *request))
      wait(*result);
  };
  const auto weights = wait_device_copy(*device, std::vector<int>{1, 2});
  for (const auto& [text, ones, twos] :
       {std::tuple("2 * scale", 102, 104), {"5 * scale", 105, 110}, {"7 * scale", 107, 114}}) {
    if (ones != 102) {
      copy->save("2 * scale", text);
      ASSERT_EQ(wait_reload().state, Status::kLoaded) << reload->status().text;
    }
    wait(function.run(2));
    EXPECT_EQ(wait_read(x, {3, 3}), ones) << "in a function";
    EXPECT_EQ(wait_read(y, {3, 3}), twos) << "in a function";
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
  copy->save_header(replaced(copy->header, "int a, b", "int a, b, c"));  // only a field does
  expect_refused("a type that its kernels share with the program changed (coppice::ReloadPair)");
}

// No kernel looked into it when the program was built, so that nobody knows what it was like.
TEST_P(Reload, ATypeThatWasSealedIsKnownByItsHeader) {
  EXPECT_EQ(filled(), 102);
  wait_watching();
  const std::string opened = replaced(copy->kernels, "sealed != nullptr", "sealed->inside");
  copy->save(opened);
  EXPECT_EQ(wait_reload().state, Status::kLoaded) << reload->status().text;
  copy->save_header(replaced(copy->header, "int inside", "int before, inside"));
  const KernelReloadStatus status = wait_reload();
  EXPECT_EQ(status.state, Status::kFailed);
  EXPECT_NE(status.text.find("share with the program changed (coppice::ReloadSealed)"), std::string::npos)
      << status.text;
}

TEST_P(Reload, AnErrorInAHeaderThatIsNewIsMendedThere) {
  EXPECT_EQ(filled(), 102);
  wait_watching();
  const std::string with_header =
      "#include \"more.h\"\n" + replaced(copy->kernels, "2 * scale", "kMore * scale");
  copy->save(with_header);  // which is not there yet
  EXPECT_TRUE(fails_with("'more.h' file not found")) << reload->status().text;
  copy->save_beside("more.h", "constexpr int kMore = ;\n");
  EXPECT_TRUE(fails_with("more.h:1:23: error: expected expression")) << reload->status().text;
  copy->save_beside("more.h", "constexpr int kMore = 7;\n");
  EXPECT_EQ(wait_reload().state, Status::kLoaded) << reload->status().text;
  EXPECT_EQ(filled(), 107);
  copy->save_beside("more.h", "constexpr int kMore = 8;\n");
  EXPECT_EQ(wait_reload().state, Status::kLoaded) << reload->status().text;
  EXPECT_EQ(filled(), 108);
}

// Seen to fail: it did not say which file.
TEST_P(Reload, AFileWithoutKernelsIsNamed) {
  EXPECT_EQ(filled(), 102);
  wait_watching();
  copy->save("// An editor has saved it half way.\n");
  EXPECT_TRUE(fails_with("copy.kernels.cc: no COPPICE_KERNEL in this file")) << reload->status().text;
  EXPECT_EQ(filled(), 102);
}

// Seen to end the program.
TEST_P(Reload, WithoutAFolderForTemporaryFilesOneLineSaysSo) {
  EXPECT_EQ(filled(), 102);
  wait_watching();
  {
    const Environment nowhere("TMPDIR", "/nowhere");
    copy->save("2 * scale", "3 * scale");
    EXPECT_TRUE(fails_with("no folder for temporary files")) << reload->status().text;
    EXPECT_EQ(filled(), 102);
  }
  copy->save("2 * scale", "4 * scale");
  EXPECT_EQ(wait_reload().state, Status::kLoaded) << reload->status().text;
  EXPECT_EQ(filled(), 104);
}

// How its commands ended is nobody's to know then.
TEST_P(Reload, ClangsWordsCountWhereTheSystemReapsChildren) {
  const auto before = signal(SIGCHLD, SIG_IGN);
  EXPECT_EQ(filled(), 102);
  wait_watching();
  copy->save("scale.factor", "scale.factr");
  const KernelReloadStatus status = wait_reload();
  EXPECT_EQ(status.state, Status::kFailed);
  EXPECT_NE(status.text.find("copy.kernels.cc:13:23: error: no member named 'factr'"), std::string::npos)
      << status.text;
  copy->save("2 * scale", "6 * scale");
  EXPECT_EQ(wait_reload().state, Status::kLoaded) << reload->status().text;
  EXPECT_EQ(filled(), 106);
  signal(SIGCHLD, before);
}

TEST_P(Reload, WhatIsSavedAsItWasStays) {
  EXPECT_EQ(filled(), 102);
  wait_watching();
  copy->save("2 * scale", "3 * scale");
  ASSERT_EQ(wait_reload().state, Status::kLoaded) << reload->status().text;
  const uint64_t generation = kernel_generation();
  copy->save("2 * scale", "3 * scal");
  EXPECT_EQ(wait_reload().state, Status::kFailed);
  copy->save("2 * scale", "3 * scale");
  const KernelReloadStatus status = wait_reload();
  EXPECT_EQ(status.state, Status::kLoaded);
  EXPECT_EQ(status.text, "copy.kernels.cc is as it was");
  copy->save("2 * scale", "/* more */\n  3 * scale");  // words and lines that are not the kernel's
  EXPECT_EQ(wait_reload().text, "copy.kernels.cc is as it was");
  EXPECT_EQ(kernel_generation(), generation);
  EXPECT_EQ(filled(), 103);
}

// Seen to fail when each save began the compilation anew.
TEST_P(Reload, WhatIsSavedAllTheTimeIsLoadedNowAndThen) {
  const BoundLaunch bound = program().bind(copy->of(fill), over(*leaf), x, ReloadScale{1});
  EXPECT_EQ(filled(), 102);
  wait_watching();
  std::atomic<bool> is_enough{false};
  std::thread saves([&] {
    for (int i = 3; !is_enough && i < 600; ++i) {
      copy->save("2 * scale", std::to_string(i) + " * scale");
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  });
  EXPECT_EQ(wait_reload().state, Status::kLoaded) << reload->status().text;
  is_enough = true;
  saves.join();
}

TEST_P(Reload, AFailureStandsWhileAnotherFileIsLoaded) {
  reload.reset();
  const KernelCopy second;  // what is written later counts as changed
  reload.emplace();
  EXPECT_EQ(filled(), 102);
  program().launch(second.of(fill), over(*leaf), y, ReloadScale{1});
  wait_watching();
  std::this_thread::sleep_for(std::chrono::milliseconds(600));  // both are watched by then
  copy->save("scale.factor", "scale.factr");
  EXPECT_EQ(wait_reload().state, Status::kFailed);
  second.save("2 * scale", "3 * scale");
  const KernelReloadStatus status = wait_reload();
  EXPECT_EQ(loaded.size(), 1u);
  EXPECT_EQ(status.state, Status::kFailed);
  EXPECT_NE(status.text.find("'factr'"), std::string::npos) << status.text;
  copy->save("2 * scale", "4 * scale");
  EXPECT_EQ(wait_reload().state, Status::kLoaded) << reload->status().text;
  EXPECT_EQ(filled(), 104);
}

TEST_P(Reload, AnotherThreadMayLaunchMeanwhile) {
  const BoundLaunch bound = program().bind(copy->of(fill), over(*leaf), x, ReloadScale{1});
  EXPECT_EQ(filled(), 102);
  wait_watching();
  std::atomic<bool> is_enough{false};
  std::thread launches([&] {
    while (!is_enough) wait(bound.launch());
  });
  for (const char* text : {"3 * scale", "4 * scale"}) {
    copy->save("2 * scale", text);
    EXPECT_EQ(wait_reload().state, Status::kLoaded) << reload->status().text;
  }
  is_enough = true;
  launches.join();
  wait(bound.launch());
  EXPECT_EQ(wait_read(x, {3, 3}), 104);
}

TEST_P(Reload, ASecondOneSaysThatItDoesNothing) {
  KernelReload other;
  EXPECT_EQ(other.status().state, Status::kNone);
  EXPECT_EQ(other.status().text, "kernels are watched by another viewer of this process");
  EXPECT_EQ(filled(), 102);
  wait_watching();
  EXPECT_TRUE(other.poll().empty());
}

TEST_P(Reload, FoldersOfProcessesThatDiedAreRemoved) {
  const std::filesystem::path folders = std::filesystem::temp_directory_path();
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  const auto dead = folders / ("coppice_reload_" + std::to_string(child) + "_abcdef");
  const auto ours = folders / ("coppice_reload_" + std::to_string(getpid()) + "_abcdef");
  std::filesystem::create_directory(dead);
  std::filesystem::create_directory(ours);
  remove_dead_build_folders();
  EXPECT_FALSE(std::filesystem::exists(dead));
  EXPECT_TRUE(std::filesystem::exists(ours));
  std::filesystem::remove(ours);
}

// ---- interfaces

std::string why_refused(const char* own, const char* now) {
  static const std::byte nothing[1] = {};
  const KernelBitcode file{"heat", "heat.kernels.cc", nothing, own, "recipe"};
  try {
    make_kernel_version(file, {{}, now, "", {}});
    return "";
  } catch (const Error& error) {
    return error.message();
  }
}

TEST(KernelInterfaces, WhatProgramAndKernelsShareMustStay) {
  const std::string types = "heat.kernels.cc: a type that its kernels share with the program changed (A)";
  const std::string again = "; build the program again";
  EXPECT_EQ(why_refused("type A\t8 x:int@0\tf1\n", "type A\t8 x:int@0\tf2\n"), "");
  EXPECT_EQ(why_refused("type A\t8 x:int@0\tf1\n", "type A\t8 x:int@4\tf2\n"), types + again);
  EXPECT_EQ(why_refused("type A\t8 x:int@0\tf1\n", "opaque A\t\tf2\n"), "") << "none looks into it";
  EXPECT_EQ(why_refused("type A\t8 x:int@0\tf1\n", "\n"), "") << "none looks into it";
  EXPECT_EQ(why_refused("opaque A\t\tf1\n", "type A\t8 x:int@0\tf1\n"), "");
  EXPECT_EQ(why_refused("opaque A\t\tf1\n", "type A\t8 x:int@0\tf2\n"), types + again);
  EXPECT_EQ(why_refused("library a/b.h\tf1\n", "library a/b.h\tf1\nlibrary a/c.h\tf3\n"), "");
  EXPECT_EQ(why_refused("library a/b.h\tf1\n", "library a/b.h\tf2\n"),
            "heat.kernels.cc: a/b.h, by which kernels and the program work together, changed" + again);
  EXPECT_EQ(why_refused("kernel k 1 24 c1 77 int\n", "kernel k 0 25 c2 77 int\n"), "");
  EXPECT_EQ(why_refused("kernel k 1 24 c1 77 int\n", "kernel k 1 24 c1 78 int\n"),
            "heat.kernels.cc: kernel heat.k: its arguments changed" + again);
  EXPECT_EQ(why_refused("kernel k 1 24 c1 77 int\n", "kernel h 1 24 c1 77 int\n"),
            "heat.kernels.cc: kernel heat.k: it is gone" + again);
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

// Seen to fail where files' times were 0.6 ms ahead: what had not changed was compiled at once.
TEST_P(Reload, FilesOfAClockThatIsAheadAreNoNews) {
  copy->write_ahead(std::chrono::milliseconds(500));
  EXPECT_EQ(filled(), 102);
  std::atomic<KernelReload*> watching = nullptr;
  std::atomic<int> compiled = 0;
  std::string before;  // of the thread that watches
  reload.reset();
  reload.emplace([&] {
    const KernelReload* const it = watching;
    if (it == nullptr) return;
    const std::string now = it->status().text;
    compiled += now == "copy.kernels.cc is being compiled" && before != now;
    before = now;
  });
  watching = &*reload;
  wait_watching();
  reload->compile_now();
  EXPECT_EQ(wait_reload().state, Status::kLoaded);
  EXPECT_EQ(compiled, 1);
  reload.reset();  // before what it tells its news to
}

// It activates cells now: whoever holds the launch must follow the tree.
TEST_P(Reload, AKernelThatDoesMoreIsTakenForWhatItIs) {
  const Function function = traced({program().bind(copy->of(touch), range(64), x),
                                    program().bind(copy->of(fill), over(*leaf), x, ReloadScale{1})});
  wait(function.run());
  EXPECT_EQ(leaf->wait_num_active_blocks(), 1u);
  wait_watching();
  copy->save("(void)x.is_active(i, {static_cast<int>(i.index), 0})",
             "x.set(i, {8 * static_cast<int>(i.index), 0}, 1)");
  ASSERT_EQ(wait_reload().state, Status::kLoaded) << reload->status().text;
  wait(function.run(2));
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
