// Runs a simulation on a thread of its own: batch after batch, with commands drained between two of them.
//
// The viewer's thread posts commands, looks at the status and takes snapshots; none of that waits. What the
// simulation throws pauses it with the message (kFailed): the last snapshot stays, and Reset begins anew.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "apps/viewer/command.h"
#include "apps/viewer/instruments.h"
#include "apps/viewer/journal.h"
#include "apps/viewer/simulation.h"
#include "apps/viewer/snapshot_exchange.h"
#include "apps/viewer/status.h"

namespace coppice::viewer {

// This is for a window that must answer while the simulation takes all cores: the window then has nine
// tenths of them when it needs them.
inline constexpr int kNiceBesideWindow = 10;
// Other threads go before this one then, and before those that it makes.
void be_nicer(int by);

struct SimulationThreadOptions {
  bool is_paused = false;          // at the start
  int64_t last_frame = -1;         // ends there; negative: goes on for ever
  bool shows_every_frame = false;  // and nothing else, and waits until each is taken: as files want it
  int most_steps = 32;             // of a batch
  double pace = 0;                 // SetPace's, at the start
  bool reloads_kernels = false;    // takes over kernel files that are changed (sparse/kernel_reload.h)
  int nice = 0;                    // added to the thread's: kNiceBesideWindow, or 0
  // This is done again while the simulation runs, each command behind its step, as a journal tells.
  std::vector<JournalEntry> replay;
  // Is called on the simulation's thread whenever there is something new to see.
  std::function<void()> on_news;
  // Hears of commands that were obeyed and change what is computed, with the steps made before. These are
  // Reset, SetParameter, Emit, Push, Cut and KernelsLoaded; each batch that StepOnce made shorter comes
  // as one StepOnce. It is called on the simulation's thread.
  std::function<void(uint64_t steps, const Command&)> journal;
};

class SimulationThread {
 public:
  using Make = std::function<std::unique_ptr<Simulation>()>;
  // `make` is called on the new thread; what it throws makes the state kFailed, and Reset calls it again.
  explicit SimulationThread(Make make, SimulationThreadOptions options = {});
  ~SimulationThread();  // waits for the batch under way
  SimulationThread(const SimulationThread&) = delete;
  SimulationThread& operator=(const SimulationThread&) = delete;

  static constexpr size_t kMostCommands = 1024;
  // Commands are obeyed in order. Returns false where kMostCommands were not looked at yet, and this one
  // is dropped.
  bool post(Command command);

  SimulationStatus status() const;
  Reports reports() const;
  std::vector<Parameter> parameters() const;
  std::shared_ptr<const Snapshot> take() { return exchange_.take(); }
  // Returns whether what was computed last is not shown yet, or not taken, or a failure is not the end of
  // a replay.
  bool has_more() const;

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  void make();
  void poll_kernels();
  bool run_once();  // commands and a batch; false: the thread is to end
  void wait_for_work();
  void obey(const Command& command, bool is_replayed);
  void obey(const Want& command);
  void obey(const Pause& command);
  void obey(const StepOnce& command, bool is_replayed);
  void reset(bool is_replayed);
  void set(const SetParameter& command);
  template <class Act>
  void act(const Act& command);  // Emit, Push, Cut
  void arm(const SetBreakpoints& breakpoints);
  void advance();
  void measure(uint64_t steps, double simulated_s, Clock::time_point start);
  // Publishes the measurements, if there are any.
  template <class F>
  void report(F&& measures);
  void show();
  void check_breakpoints();
  void check_finite(const Snapshot& shown);
  void reach(const SetBreakpoints& left, std::string why);
  void fail(const char* doing, std::exception_ptr error);
  void refuse(const std::string& why);
  void note(uint64_t steps, const Command& command);  // in the journal
  RunState state() const;                             // on the simulation's thread, which alone changes it
  const JournalEntry* due_entry(RunState now) const;  // of the journal that is replayed; null: none now
  int batch_limit() const;
  std::optional<Clock::time_point> due() const;  // when the next batch may begin, with a pace
  template <class F>
  void update(F&& change);  // the status, and tells the news
  void refresh_parameters();

  const Make make_;
  const SimulationThreadOptions options_;

  mutable std::mutex mutex_;  // of what follows, up to the next blank line
  std::condition_variable work_;
  std::deque<Command> commands_;
  SimulationStatus status_;
  std::vector<Parameter> parameters_;
  Reports reports_;
  bool is_ending_ = false, has_changed_ = false, has_new_kernels_ = false;

  SnapshotExchange exchange_;             // tells of changes by the above
  std::atomic<bool> is_shown_{true};      // what is computed has been published
  std::atomic<bool> is_answered_{false};  // a failure, by what the journal has behind it

  std::unique_ptr<Simulation> simulation_;  // the rest: of the simulation's thread
  Instruments instruments_;
  std::optional<Clock::time_point> batch_end_;  // of the last one, if nothing was waited for since
  SetBreakpoints breakpoints_;
  Wanted wanted_;
  size_t next_replayed_ = 0;
  uint64_t steps_owed_ = 0;        // by StepOnce
  bool is_replaying_ = false;      // the command that is obeyed is a journal's
  bool is_replayed_step_ = false;  // owed by a journal: nobody pauses behind it
  bool must_show_ = false;         // a frame that nobody may miss
  Clock::time_point pace_from_{};
  double pace_time_s_ = 0;
  double ran_s_ = 0, packed_s_ = 0, window_s_ = 0;
  uint64_t window_steps_ = 0;

  std::optional<KernelReload> kernels_;  // polled by the simulation's thread

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace coppice::viewer
