// Ctrl-C, a request to terminate and a terminal that is closed, for a program that has something to finish;
// and SIGUSR1, by which batch systems and mpiexec say that the time is over.
//
//   const StopSignals signals;               // in main(): from here on a signal ends the program at once
//   load();
//   for (int64_t i = 0; i < n && !signals.requested(); ++i) {
//     StopSignals::let_finish("frame", i);   // a signal says "finishing frame 12; again to stop now"
//     wait_write_frame(i);
//   }
//
// A program that ends at once has the exit code 130, and runs no destructor: what is half done then must be
// nothing that somebody finds. So the handler removes the files that are unfinished (core/unfinished_file.h),
// such as the temporaries of AtomicFile, and gives those that were set aside their names back
// (core/aside_files.h). One object at a time, made and destroyed by the main thread.
#pragma once

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>

namespace coppice {

class StopSignals {
 public:
  // Takes SIGINT, SIGTERM, SIGUSR1 and SIGHUP; one that hangs up is left alone where the program
  // was told to ignore it (nohup).
  StopSignals();
  ~StopSignals();  // gives them back
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // It is set by the first signal behind let_finish(). To be polled between two pieces of work.
  const std::atomic<bool>& requested() const;

  // From now on the first signal sets requested() and says on standard error what is finished: `what`, which
  // is never freed, and `number` unless it is negative; where `what` is empty, that the program ends. The
  // second one ends the program, unless it is SIGUSR1. May be called on any thread; without an object
  // nothing.
  static void let_finish(const char* what, int64_t number = -1);

 private:
  static constexpr std::array kSignals{SIGINT, SIGTERM, SIGUSR1, SIGHUP};
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace coppice
