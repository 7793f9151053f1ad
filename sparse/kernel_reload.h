// Takes over changed kernel files while the program runs: they are compiled in the background as the build
// did, and take the place of the program's own between two launches.
//
//     KernelReload reload;
//     while (...) { reload.poll(); step(); }
//
// Watched are the files that something was launched of, and what they include: those of
// coppice_add_kernels(), where the build's folder and its clang are still there. They are looked at ten
// times a second; what was saved since the build is taken over at once.
//
// A file takes another's place when each of its kernels is there with the same arguments, and types that
// arguments lead to are as they were; else it is refused, and the last good one goes on. So it does when
// clang, coppice-kernelgen or the device refuses it. What the host knows of a kernel by other ways (a
// constant in a header that both include) stays as it was. Kernels that did not change keep their code.
//
// Replaced are launches of all programs, bound ones, and those in functions of the
// executor. What is under way keeps its code.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace coppice {

struct KernelReloadStatus {
  enum class State {
    kNone,       // nothing can be reloaded, `text` says why; or no kernel was launched yet, and it is empty
    kWatching,   // nothing has changed since the beginning
    kCompiling,  // by clang, or for the device
    kLoaded,     // "heat.kernels.cc loaded in 812 ms"
    kFailed      // "heat.kernels.cc:12:3: error: ..."; the last good kernel goes on
  };
  State state = State::kNone;
  std::string text;
};

// Names a kernel file that took the place of the one before.
struct LoadedKernels {
  std::string file;   // "heat.kernels.cc"
  std::string hash;   // of its bitcode
  double took_s = 0;  // since it was saved
};

// Returns those of the process's files for which an earlier KernelReload's code stands now, in place of
// the program's own.
std::vector<LoadedKernels> standing_kernels();

// Only one works at a time in a process: another says in its status that it does nothing.
class KernelReload {
 public:
  // `on_news` is called from another thread when poll() has something to do, or the status has changed.
  explicit KernelReload(std::function<void()> on_news = {});
  ~KernelReload();  // stops clang
  KernelReload(const KernelReload&) = delete;
  KernelReload& operator=(const KernelReload&) = delete;

  // Is to be called between two launches by whoever gives them: other threads that launch kernels of the
  // same files may get the old ones for a moment, or some old and some new. Returns what took another's
  // place now. It does not wait, but for the devices when something is replaced.
  std::vector<LoadedKernels> poll();
  // Returns whether poll() is to be called again soon, without news: the device's compiler is at work.
  bool is_pending() const;
  // Compiles all watched files anew, changed or not.
  void compile_now();

  // Thread-safe.
  KernelReloadStatus status() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace coppice
