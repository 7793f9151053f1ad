// Launching kernels over trees and ranges.
//
//     Program program(device);
//     program.launch(diffuse, over(leaf), Heat{now, next}, 0.1f);       // AsyncValueRef<Chain>
//     program.launch(advect, range(n_particles), Particles{...}, dt);
//     BoundLaunch step = program.bind(diffuse, over(leaf), Heat{now, next}, 0.1f);
//     for (int i = 0; i < n; ++i) step.launch();                        // prepared once
//
// A kernel is specialized once for the trees behind its handles and what it loops over, and kept. The types
// of a launch's arguments are checked at compile time; roles against trees when launched: an Error
// kInvalidArgument says which handle is wrong. Every call of a Program or BoundLaunch that was moved from is
// such an Error. Launches run in order on the device's default stream, those of several threads in the order
// in which they are given. Thread-safe, but for moving and destroying it.
#pragma once
#include <memory>
#include <string>

#include "gpu/device.h"
#include "sparse/bound_launch.h"
#include "sparse/kernel.h"
#include "sparse/launch_arguments.h"
#include "sparse/loop.h"
#include "sparse/read_back.h"
#include "sparse/tree.h"

namespace coppice {

struct KernelVersion;

class Program {
 public:
  // COPPICE_DEBUG says how its kernels are compiled, unless `options` does.
  explicit Program(IntrusivePtr<Device> device, const CodegenOptions& options = codegen_options());
  ~Program();
  Program(Program&&) noexcept;

  template <class... Parameters, class... Arguments>
  AsyncValueRef<Chain> launch(const Kernel<void(Parameters...)>& kernel, const Loop& loop,
                              const Arguments&... arguments) {
    return give(detail::make_request(kernel, loop, arguments...));
  }
  // Returns the launch as a value, for those who give it many times.
  template <class... Parameters, class... Arguments>
  BoundLaunch bind(const Kernel<void(Parameters...)>& kernel, const Loop& loop,
                   const Arguments&... arguments) {
    return bind_request(detail::make_request(kernel, loop, arguments...));
  }
  // Starts compiling what such a launch needs, and does nothing else.
  template <class... Parameters, class... Arguments>
  void compile(const Kernel<void(Parameters...)>& kernel, const Loop& loop, const Arguments&... arguments) {
    prepare(detail::make_request(kernel, loop, arguments...));
  }
  // Returns the launch itself, for those who run it inside a stream's own order. Nothing brings trees over
  // ranks up to date for it.
  template <class... Parameters, class... Arguments>
  Launch make_launch(const Kernel<void(Parameters...)>& kernel, const Loop& loop,
                     const Arguments&... arguments) {
    return prepare(detail::make_request(kernel, loop, arguments...));
  }
  // Returns what such a launch touches, as data, and as text: the kernel's name and a line for each of its
  // uses (text_of() in sparse/uses.h). Checks the roles as a launch does, and freezes trees; compiles and
  // runs nothing.
  template <class... Parameters, class... Arguments>
  IntrusivePtr<const LaunchUses> uses(const Kernel<void(Parameters...)>& kernel, const Loop& loop,
                                      const Arguments&... arguments) const {
    return uses_of(detail::make_request(kernel, loop, arguments...));
  }
  template <class... Parameters, class... Arguments>
  std::string explain(const Kernel<void(Parameters...)>& kernel, const Loop& loop,
                      const Arguments&... arguments) const {
    return explain(detail::make_request(kernel, loop, arguments...));
  }
  Device& device() const;
  // Blocks the host until all that was launched is done. Throws the error of the first launch that failed.
  void wait() const;

 private:
  friend class BoundLaunches;
  friend class ProgramPtx;
  AsyncValueRef<Chain> give(const detail::LaunchRequest& request);
  Launch prepare(const detail::LaunchRequest& request);
  // Prepares it with the kernel of that version of its file (null: the program's own), whether or not that
  // can be compiled.
  Launch prepare_at(const detail::LaunchRequest& request, const KernelVersion* version);
  BoundLaunch bind_request(const detail::LaunchRequest& request);
  void activate_box_first(Launch& launch, const detail::LaunchRequest& request);
  IntrusivePtr<const LaunchUses> uses_of(const detail::LaunchRequest& request) const;
  std::string explain(const detail::LaunchRequest& request) const;

  struct State;
  State& state() const;  // Errors: kInvalidArgument when it was moved from
  std::unique_ptr<State> state_;
};

}  // namespace coppice
