// Litmus programs: a few accesses by up to four threads, and an outcome that PTX allows or forbids. Each runs
// on the emulated GPU as 32 executions at a time, which have nothing in common but their schedule.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace coppice::simt {

// One execution works on these words. Those that its threads share lie side by side, or each in a line of
// its own.
struct LitmusWords {
  uint32_t *x, *y, *z;
};
struct LitmusResult {
  uint32_t r[4] = {};     // what threads read, by program
  uint32_t x = 0, y = 0;  // in memory at the end
};

struct LitmusProgram {
  const char* name;
  const char* text;  // its threads, for people
  bool allowed;      // by PTX
  uint32_t threads;  // 2 to 4
  void (*run)(uint32_t thread, const LitmusWords& at, uint32_t* r);
  bool (*is_seen)(const LitmusResult& result);
  bool in_one_block_only = false;  // it meets at a barrier
};
const std::vector<LitmusProgram>& litmus_programs();

// Where the threads of an execution run.
enum class LitmusPlace {
  kBlocks,
  kWarps,
  kLanes
};  // each in its own block, or warp of one block, or lane of a warp
enum class LitmusWordsLie { kInOneLine, kInTwoLines };

struct LitmusCase {
  const LitmusProgram* program;
  LitmusPlace place;
  LitmusWordsLie words;
};
std::vector<LitmusCase> litmus_cases(const LitmusProgram& program);
std::string name_of(const LitmusCase& c);

// How many of at least `executions` executions had the outcome; stops after the first one where `until_seen`.
// Every launch of 32 (in one warp: 8) has a schedule of its own.
struct LitmusCount {
  uint64_t seen = 0, executions = 0;
};
LitmusCount run_litmus(const LitmusCase& c, uint64_t executions, uint64_t seed, bool until_seen);

}  // namespace coppice::simt
