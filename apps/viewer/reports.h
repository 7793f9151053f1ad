// The viewer's panels show this of a simulation's own work: its time, its memory, the functions that it
// runs, and what the program logs.
//
// The simulation's thread makes these between two batches (instruments.h), at most ten times a second,
// and nobody changes them afterwards. They cross to the window's plugin, so they are plain data.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/log.h"

namespace coppice::viewer {

// One entry of a rolling graph stands for this long, or for one batch where that takes longer.
inline constexpr double kReportPeriod_s = 0.1;
inline constexpr size_t kHistory = 120;  // entries
// Means and maxima are those of at least so many of the last steps, as far as there are that many.
inline constexpr uint64_t kMeanSteps = 256;

// This says where something takes time.
enum class TracePlace {
  kStream,  // what a device's stream does: kernels, sorts. On a GPU, giving it that
  kHost,    // what threads of the program do besides
  kWorker   // parts of a kernel on a CPU device's other threads
};

// This is an event's time, with all events that lie within it.
struct Timing {
  std::string name;  // "mpm.particles_to_grid_3d"
  TracePlace place = TracePlace::kStream;
  int depth = 0;               // it lies within the nearest one before it with a smaller depth
  double mean_ms = 0;          // per step
  double longest_ms = 0;       // a single one
  double calls = 0;            // per step
  std::vector<float> history;  // ms per step, oldest first
};

// The last step, thread by thread.
struct Timeline {
  struct Event {
    uint32_t row = 0;   // of `rows`
    uint32_t name = 0;  // of `names`
    int depth = 0;      // in how many others of its row it lies
    float begin_ms = 0, end_ms = 0;
  };
  std::vector<std::string> rows, names;
  std::vector<Event> events;
  float length_ms = 0;
  size_t left_out = 0;  // the shortest ones, where there are too many
};

struct TimeReport {
  uint64_t steps = 0;      // that means are of
  double step_ms = 0;      // mean time from the beginning of a step to the next one's, pauses apart
  double longest_ms = 0;   // a step of the batch whose steps took longest
  double steps_per_s = 0;  // what follows from step_ms
  double pace = 0;         // simulated seconds per second; 0 where time is not known
  std::vector<float> step_ms_history, pace_history;  // oldest first
  std::vector<Timing> timings;                       // those of streams first, the longest first
  Timeline last_step;
  bool is_stream_ahead = false;  // streams only give work to a GPU: that takes its own time
  uint64_t dropped = 0;          // events that there was no memory for, since it began
  std::string why_not;           // there are no timings; empty: there are, or nothing was launched
};

// A node of a tree; counts are in cells, of dynamic nodes in chunks.
struct NodeMemory {
  std::string path;  // "grid.pointer[64].dense[8]"
  int depth = 0;
  bool has_cells = false;  // of its own: a pointer or dynamic node. Others lie in those of the node above
  uint64_t active = 0, capacity = 0;
  uint64_t free = 0, recycled = 0, collected = 0, collections = 0;  // as NodeUsage has them
  uint64_t bytes = 0;                                               // committed
  std::vector<float> history;                                       // active ones, oldest first
};
struct TreeMemory {
  std::string name;
  std::vector<NodeMemory> nodes;  // parents first
  uint64_t bytes = 0;             // committed, all together
  uint64_t collections = 0;
  double collection_s = 0;     // by the host's clock: on a GPU, giving them to it
  std::vector<float> history;  // bytes, oldest first
};
struct BufferMemory {
  std::string name;
  uint64_t bytes = 0;
};
struct MemoryState {
  std::vector<TreeMemory> trees;
  std::vector<BufferMemory> buffers;  // beside the trees
  double asked_s = 0;                 // what asking for this took
};

// This is an operation of a function that the simulation runs, and what it waits for.
struct GraphOperation {
  std::string text;             // "mpm.update_grid_3d"
  std::string event;            // what a stream's trace has of it: "mpm.particles_to_grid_3d"
  std::vector<uint32_t> waits;  // for these operations
  double ms = 0;  // of a single one, on a stream; 0 where it has nothing to do there, or none was seen
  bool is_critical = false;  // on the longest way through the function
};
struct FunctionGraph {
  std::string name;  // "@mpm.step"
  std::vector<GraphOperation> operations;
  double critical_ms = 0;  // of that way
};

// A line of the log.
struct LogLine {
  uint64_t number = 0;  // counted from 1
  LogLevel level = LogLevel::kInfo;
  double time_s = 0;  // since the viewer began
  std::string text;
};

// This counts the kernels of the burst of compilations that is under way, or was last.
struct CompileStatus {
  uint64_t asked = 0, done = 0, compiled = 0;  // the others came from the cache, or failed
  double seconds = 0;
};

// A pointer is null where nobody looked, or there is nothing of the kind.
struct Reports {
  std::shared_ptr<const TimeReport> time;
  std::shared_ptr<const MemoryState> memory;
  std::shared_ptr<const std::vector<FunctionGraph>> graphs;
};

}  // namespace coppice::viewer
