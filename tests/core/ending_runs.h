// Runs of programs that end in random ways (ending_ways.h).
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "core/program_file.h"
#include "tests/core/watch_command.h"

namespace coppice {

// `program`, which is beside the tests' own: with the seeds seed, seed + 1 and so on. Each has to end by
// itself within 60 s and to say nothing. `environment` goes before the command.
inline void run_endings(std::string_view program, int runs, uint32_t seed,
                        const std::string& environment = {}) {
  for (uint32_t run = seed; run < seed + static_cast<uint32_t>(runs); ++run) {
    // Handles that nobody drops have threads that nobody joins.
    const Watched ended = watch(fmt::format(
        "{} TSAN_OPTIONS=$TSAN_OPTIONS:report_thread_leaks=0 COPPICE_LOG=warning timeout 60 {}/{} {}",
        environment, program_folder().string(), program, run));
    ASSERT_EQ(ended.exit_code, 0) << program << " " << run << ": " << ended.output;
    ASSERT_EQ(ended.output, "") << program << " " << run;
  }
}

}  // namespace coppice
