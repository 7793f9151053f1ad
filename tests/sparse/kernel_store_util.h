// For tests of the kernel store: a store over a folder of its own, environment
// variables, and running loaded code.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "core/log.h"
#include "gpu/jit/code_loader.h"
#include "gpu/kernel_store.h"
#include "jit.kernels.h"
#include "tests/sparse/environment.h"

namespace coppice {

inline std::string read_file(const std::filesystem::path& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}
inline void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline jit::SpecializeRequest jit_request(const std::string& kernel) {
  jit::SpecializeRequest request;
  request.id = "jit." + kernel;
  request.file = &jit_kernels;
  request.entry = "coppice_kernel_" + kernel;
  return request;
}

// Runs items 0 to 2 of `jit.write_index` or `jit.add_one`, which take an int*.
inline std::vector<int> run_ints(KernelEntry entry, std::vector<int> out) {
  LaunchBlock block{};
  int* argument = out.data();
  std::memcpy(block.arguments, &argument, sizeof argument);
  entry(&block, 0, 3);
  return out;
}

class KernelStoreFolder : public testing::Test {
 protected:
  KernelStoreFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "coppice_kernel_store_XXXXXX").string();
    root = mkdtemp(name.data());
    folder = root / "cache";
    set_log_level(LogLevel::kInfo);  // cases wait for lines, whatever COPPICE_LOG says
    set_log_sink([this](LogLevel level, std::string_view line) {
      const std::lock_guard lock(mutex);
      lines.emplace_back(line);
      warnings += level >= LogLevel::kWarning;
    });
  }
  ~KernelStoreFolder() override {
    set_log_sink({});
    set_log_level(level_before_);
    std::filesystem::remove_all(root);
  }

  KernelStore::Options options() const { return {.threads = 1, .folder = folder}; }
  // Gets both kernels from a store, checks what they compute, and returns how many
  // entries of the folder it used.
  uint64_t hits_of_right_kernels(KernelStore::Options o) {
    KernelStore store(std::move(o));
    auto index = store.get(jit_request("write_index")), add = store.get(jit_request("add_one"));
    wait(index), wait(add);
    EXPECT_FALSE(index.is_error()) << index.error().what();
    EXPECT_FALSE(add.is_error()) << add.error().what();
    if (index.is_error() || add.is_error()) return 0;
    EXPECT_EQ(run_ints(jit::host_entry(*index.get()), {7, 7, 7, 7}), (std::vector<int>{0, 1, 2, 7}));
    EXPECT_EQ(run_ints(jit::host_entry(*add.get()), {4, 5, 6, 7}), (std::vector<int>{5, 6, 7, 7}));
    return store.disk_cache().stats().hits;
  }
  std::vector<std::filesystem::path> entries() const {
    std::vector<std::filesystem::path> found;
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      if (file.path().filename() != "compiling.lock") found.push_back(file.path());
    }
    return found;
  }

  std::filesystem::path root;
  std::filesystem::path folder;  // does not exist at first
  std::mutex mutex;
  std::vector<std::string> lines;
  int warnings = 0;

 private:
  const LogLevel level_before_ = log_level();
};

}  // namespace coppice
