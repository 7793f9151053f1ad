// gpu/jit/build_identity.h, with libraries whose build ids are known, and what the cache's key makes of
// LLVM's.
#include "gpu/jit/build_identity.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include "gpu/jit/specialization_key.h"

namespace coppice {
namespace {

namespace fs = std::filesystem;

// Keeps the library loaded: its identity is that of what is mapped.
const void* variable_of(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << dlerror();
  return library == nullptr ? nullptr : dlsym(library, "identified_value");
}

TEST(BuildIdentity, IsTheBuildIdOfTheLibraryThatHoldsTheAddress) {
  if (!fs::exists(COPPICE_LIBRARY_WITH_ID))
    GTEST_SKIP() << "the libraries to look at are not beside the test";
  EXPECT_EQ(jit::build_identity(variable_of(COPPICE_LIBRARY_WITH_ID)),
            "0123456789abcdef0123456789abcdef01234567");
  EXPECT_EQ(jit::build_identity(variable_of(COPPICE_LIBRARY_WITH_OTHER_ID)), "fedcba9876543210");
}

TEST(BuildIdentity, IsTheFileWhereThereIsNoBuildId) {
  if (!fs::exists(COPPICE_LIBRARY_WITHOUT_ID))
    GTEST_SKIP() << "the libraries to look at are not beside the test";
  const fs::path folder = fs::temp_directory_path() / ("coppice_build_identity_" + std::to_string(getpid()));
  fs::create_directory(folder);
  const fs::path one = folder / "one.so", other = folder / "other.so";
  fs::copy_file(COPPICE_LIBRARY_WITHOUT_ID, one);
  fs::copy_file(COPPICE_LIBRARY_WITHOUT_ID, other);
  const std::string identity = jit::build_identity(variable_of(one));
  EXPECT_EQ(identity.rfind(one.string() + " of ", 0), 0u) << identity;
  EXPECT_NE(identity, jit::build_identity(variable_of(other)));
  fs::last_write_time(one, fs::last_write_time(one) + std::chrono::seconds(1));
  EXPECT_NE(identity, jit::build_identity(variable_of(one))) << "replaced in place";
  fs::remove_all(folder);
}

TEST(BuildIdentity, KnowsTheProgramAndIsEmptyForWhatNobodyLoaded) {
  static const int of_the_program = 1;
  EXPECT_FALSE(jit::build_identity(&of_the_program).empty());
  const auto on_heap = std::make_unique<int>(1);
  EXPECT_EQ(jit::build_identity(on_heap.get()), "");
  EXPECT_EQ(jit::build_identity(nullptr), "");
}

// The number of the version stays when a distribution mends LLVM.
TEST(BuildIdentity, OfLlvmIsInTheKeysOfKernels) {
  static const int of_the_program = 1;
  const void* shared = dlsym(RTLD_DEFAULT, "LLVMGetVersion");  // null where LLVM is linked statically
  if (shared == nullptr && !fs::exists(COPPICE_LIBRARY_WITH_ID))
    GTEST_SKIP() << "in the bundle LLVM is part of a library that shows none of its symbols";
  const std::string expected = jit::build_identity(shared != nullptr ? shared : &of_the_program);
  ASSERT_FALSE(expected.empty());
  EXPECT_EQ(jit::key_context().llvm, std::string(jit::llvm_version()) + " " + expected);
  EXPECT_EQ(jit::ptx_key_context({.sm = 90}).llvm, jit::key_context().llvm);
}

TEST(BuildIdentity, OfOurPassesIsInTheKeysOfKernels) {
  EXPECT_EQ(jit::pipeline_identity().size(), 64u);
  EXPECT_EQ(jit::key_context().pipeline, jit::pipeline_identity());
  EXPECT_EQ(jit::ptx_key_context({.sm = 90}).pipeline, jit::pipeline_identity());
}

}  // namespace
}  // namespace coppice
