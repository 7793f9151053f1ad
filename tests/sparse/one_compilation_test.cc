// A kernel that somebody else compiles is waited for, taken from the disk cache, and
// compiled here when that fails.
#include <gtest/gtest.h>

#include <thread>

#include "core/error.h"
#include "tests/sparse/kernel_store_util.h"

namespace coppice {
namespace {

using jit::KernelCache;

class OneCompilationTest : public KernelStoreFolder {
 protected:
  static std::string key_of(const std::string& kernel) {
    return specialization_key(jit_request(kernel)).hex();
  }
  KernelStore::Options patient() const {
    KernelStore::Options o = options();
    o.patience = std::chrono::hours(1);
    return o;
  }
  std::optional<KernelCache> elsewhere_;
  KernelCache& elsewhere() { return elsewhere_ ? *elsewhere_ : elsewhere_.emplace(folder); }
};

TEST_F(OneCompilationTest, TakesWhatAnotherCompiledAndGoesOnMeanwhile) {
  KernelCache::Lock owner = elsewhere().try_lock(key_of("add_one"));
  ASSERT_TRUE(owner.is_held());
  KernelStore store(patient());
  auto theirs = store.get(jit_request("add_one")), own = store.get(jit_request("write_index"));
  wait(own);
  EXPECT_FALSE(theirs.is_available());
  elsewhere().store(key_of("add_one"), jit::compile_x86(jit_request("add_one")));
  owner = {};
  wait(theirs);
  ASSERT_FALSE(theirs.is_error());
  EXPECT_EQ(run_ints(jit::host_entry(*theirs.get()), {4, 5, 6}), (std::vector<int>{5, 6, 7}));
  store.wait_compiled();
  EXPECT_EQ(lines.back().rfind("kernels: 1 compiled in ", 0), 0u) << lines.back();
  EXPECT_EQ(store.disk_cache().stats().hits, 1u);
  EXPECT_EQ(store.disk_cache().stats().misses, 1u);
}

// The owner did not compile it, and leaves no entry; its reason is its own affair.
TEST_F(OneCompilationTest, GivesItsOwnErrorWhenTheOwnerFailed) {
  KernelStore first(patient()), second(patient());
  KernelCache::Lock owner = elsewhere().try_lock(key_of("no_such_kernel"));
  auto one = first.get(jit_request("no_such_kernel")), two = second.get(jit_request("no_such_kernel"));
  auto other = second.get(jit_request("add_one"));
  wait(other);
  EXPECT_FALSE(one.is_available() || two.is_available());
  owner = {};
  wait(one), wait(two);
  ASSERT_TRUE(one.is_error() && two.is_error());
  EXPECT_EQ(one.error().code(), ErrorCode::kCompile);
  EXPECT_STREQ(two.error().what(), one.error().what());
  EXPECT_TRUE(elsewhere().try_lock(key_of("no_such_kernel")).is_held()) << "given back after a failure";
}

// As one that is stopped in a debugger.
TEST_F(OneCompilationTest, LosesPatienceWithAnOwnerThatDoesNotGoOn) {
  const KernelCache::Lock owner = elsewhere().try_lock(key_of("add_one"));
  KernelStore::Options o = options();
  o.patience = std::chrono::milliseconds(20);
  KernelStore store(o);
  auto code = store.get(jit_request("add_one"));
  wait(code);
  EXPECT_FALSE(code.is_error());
  EXPECT_EQ(entries().size(), 1u);
}

TEST_F(OneCompilationTest, AStoreThatEndsWaitsForWhatItWasAsked) {
  KernelCache::Lock owner = elsewhere().try_lock(key_of("add_one"));
  AsyncValueRef<LoadedCodeRef> code;
  std::thread release;
  {
    KernelStore store(patient());
    code = store.get(jit_request("add_one"));
    release = std::thread([&] { owner = {}; });
  }
  release.join();
  ASSERT_TRUE(code.is_available());
  EXPECT_FALSE(code.is_error());
}

}  // namespace
}  // namespace coppice
