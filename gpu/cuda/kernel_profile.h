// Measures what each kernel costs on a GPU, and keeps what the driver's assembler said of it.
//
// COPPICE_GPU_PROFILE=FOLDER turns it on; otherwise nothing is measured and nothing costs. The folder is
// made, and holds
//
//     kernels.tsv      one line per kernel, most time first; its columns are named in the first line. Another
//                      device of the process has kernels-2.tsv, and so on
//     jit.log          the assembler's words on every module, in the order in which they were loaded
//
// Both are written while the program runs, at most twice a second, so that a program that is ended leaves
// what it had. Thread-safe.
#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace coppice::cuda {

// Says what one kernel occupies as it was launched.
struct KernelResources {
  int registers = 0;          // of a thread
  int stack_bytes = 0;        // of a thread: local memory, spilled registers included
  int shared_bytes = 0;       // of a thread block: its own and what the launch asks for
  int blocks = 0;             // that a multiprocessor runs at once
  int occupancy_percent = 0;  // their threads among those that a multiprocessor can have
};

class KernelProfile {
 public:
  // Returns null unless COPPICE_GPU_PROFILE is set and not empty.
  static std::unique_ptr<KernelProfile> from_environment();
  explicit KernelProfile(std::filesystem::path folder);
  ~KernelProfile();
  KernelProfile(const KernelProfile&) = delete;
  KernelProfile& operator=(const KernelProfile&) = delete;

  // Notes that a launch of `name` took so long on the GPU and moved at least so many bytes (0: not known).
  void add(std::string_view name, double ms, uint64_t bytes, const KernelResources& resources);
  // Notes what the assembler said when a kernel's module was loaded, or refused.
  void add_log(std::string_view kernel, bool is_loaded, std::string_view text);
  void write();

 private:
  struct Row {
    uint64_t launches = 0;
    double total_ms = 0, least_ms = 0, most_ms = 0;
    uint64_t bytes = 0;
    KernelResources resources;
  };
  void write_rows();

  const std::filesystem::path folder_;
  std::string file_name_;
  std::mutex mutex_;
  std::map<std::string, Row, std::less<>> rows_;
  std::chrono::steady_clock::time_point written_{};
  bool has_news_ = false;
};

}  // namespace coppice::cuda
