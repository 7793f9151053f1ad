// Machine code goes when nobody uses it any more: what the store keeps, what it
// unloads, and that memory comes back.
#include <gtest/gtest.h>

#include <atomic>

#include "tests/sparse/jit_mappings.h"
#include "tests/sparse/kernel_store_util.h"
#include "tests/sparse/resident_memory.h"

namespace coppice {
namespace {

// Compiles once and loads that again and again: cases here are about what is loaded.
class OneObjectBackend final : public jit::CodeBackend {
 public:
  std::string compile(const jit::SpecializeRequest&) override { return object_; }
  std::string why_not_loadable(const std::string&, const jit::SpecializeRequest&) override { return {}; }
  IntrusivePtr<LoadedCode> load(const std::string& image, const jit::SpecializeRequest& r) override {
    ++loads;
    return loader_.load(image, r.entry, r.id);
  }
  std::atomic<int> loads = 0;

 private:
  const std::string object_ = jit::compile_x86(jit_request("add_one"));
  jit::CodeLoader loader_;
};

class UnloadingTest : public KernelStoreFolder {
 protected:
  UnloadingTest() { reset(4); }
  void reset(size_t max_unused) {
    store.reset();
    KernelStore::Options o = options();
    o.max_bytes = 0;  // nothing on disk: what is loaded again is seen
    o.max_unused = max_unused;
    o.backend = backend;
    store = std::make_unique<KernelStore>(o);
  }
  // The kernel of a layout of its own, as each tree's is.
  AsyncValueRef<LoadedCodeRef> get(uint32_t layout) {
    jit::SpecializeRequest request = jit_request("add_one");
    request.constants = {{"coppice_loop", std::as_bytes(std::span(&layout, 1))}};
    auto code = store->get(request);
    wait(code);
    EXPECT_FALSE(code.is_error());
    // The compiling thread holds the value for a moment longer than its consumers wait.
    store->wait_compiled();
    return code;
  }
  const std::shared_ptr<OneObjectBackend> backend = std::make_shared<OneObjectBackend>();
  std::unique_ptr<KernelStore> store;
};

TEST_F(UnloadingTest, WhatNobodyUsesIsUnloadedButForTheLatest) {
  for (uint32_t i = 0; i < 20; ++i) get(i);
  store->release_unused();
  store->wait_compiled();
  ASSERT_EQ(backend->loads, 20);
  for (uint32_t i = 16; i < 20; ++i) get(i);
  EXPECT_EQ(backend->loads, 20) << "the last four are still there";
  get(15);
  EXPECT_EQ(backend->loads, 21);
}

TEST_F(UnloadingTest, WhatIsInUseStays) {
  const auto launch = get(0);
  const LoadedCodeRef code = get(1).get();
  for (uint32_t i = 2; i < 40; ++i) get(i);
  EXPECT_EQ(run_ints(jit::host_entry(*launch.get()), {1, 2, 3}), (std::vector<int>{2, 3, 4}));
  EXPECT_EQ(run_ints(jit::host_entry(*code), {1, 2, 3}), (std::vector<int>{2, 3, 4}));
  EXPECT_EQ(get(0), launch);
  EXPECT_EQ(get(1).get(), code);
  EXPECT_EQ(backend->loads, 40);
}

TEST_F(UnloadingTest, ATreeThatIsRebuiltEveryStepFindsItsKernelInMemory) {
  reset(3);
  for (int step = 0; step < 50; ++step) {
    for (uint32_t i = 0; i < 3; ++i) get(i);
    store->release_unused();
  }
  EXPECT_EQ(backend->loads, 3);
}

TEST_F(UnloadingTest, MemoryComesBack) {
  const auto cycle = [&](uint32_t from, uint32_t count) {
    for (uint32_t i = from; i < from + count; ++i) get(i);
    store->release_unused();
    store->wait_compiled();
  };
  cycle(0, 200);
  const JitMappings before = jit_mappings();
  const uint64_t resident_before = resident_bytes();
  constexpr uint32_t kCycles = 1000;
  cycle(200, kCycles);
  const JitMappings after = jit_mappings();
  EXPECT_LE(after.code_bytes, before.code_bytes);
  EXPECT_LE(after.count, before.count + 20);
  // A kernel leaves less than a page here and in LLVM, where loading one takes 5 of them.
  if (!kFreedMemoryStays) {
    EXPECT_LT(resident_bytes(), resident_before + kCycles * 1024);
  }
  RecordProperty("resident_growth", static_cast<int>(resident_bytes() - resident_before));
}

}  // namespace
}  // namespace coppice
