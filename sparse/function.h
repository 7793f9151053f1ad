// Functions from code: a step of a simulation is written as plain code once, and run as a whole again and
// again.
//
//   Slot<float> dt(device, 0.1f);
//   Function step = trace(device, [&] {
//     program.launch(diffuse, over(leaf), Heat{now, next}, dt);
//     repeat(4, [&] { program.launch(smooth, over(leaf), Heat{next, now}); });
//     block.deactivate_all();
//   });
//   step.run();             // AsyncValueRef<Chain>: as the launches one by one, in the stream's order
//   step.run(100);
//   std::cout << print(step);
//
// trace() runs the code once and notes what it gives to the device's default stream, instead of running it:
// launches, Node::deactivate_all(), what sparse/buffer_operations.h has, other functions' run(), and the
// control flow below. Arguments are part of a launch as they are then, but for slots (sparse/slot.h). The
// function is operations with events between them, which follow from what each uses (sparse/ordering.h);
// print() shows them, and the text loads back. It seems to run in the order in which it was traced: what no
// event orders may run side by side.
//
// A run is that of its parts: launches that follow each other are recorded once and replayed as one, with the
// loops around them (sparse/segment.h); where memory runs short in the middle, the launch is repeated when it
// has grown, and what is behind it follows. Results, errors and random numbers are those of the launches
// given one by one; what kernels print comes launch by launch on the cpu, and together for some replays, in
// any order, on a GPU. On the cpu a step allocates nothing, however often it is run. Only what the calling
// thread gives is traced. Copies share the function; it keeps trees, buffers and slots that it names, not
// what kernels' arguments point to. Thread-safe but for editing, which needs a copy of one's own.
#pragma once
#include <functional>
#include <source_location>
#include <string>
#include <string_view>

#include "executor/loader.h"
#include "sparse/device_flag.h"
#include "sparse/program.h"
#include "sparse/slot.h"

namespace coppice {

struct DeviceFunction;

class Function {
 public:
  // Makes one of a module whose first function takes an event and returns one; what it names is bound to what
  // `bindings` has (launches, nodes, buffers, slots: sparse/operations.h has the operations). Errors:
  // kInvalidArgument with the place in the text: what the loader finds (executor/loader.h), what is no work
  // of the device, what names something of another device, no buffer, or a number that the operation cannot
  // take, and operations of which one changes what the other uses, and which no event orders; kOutOfRange,
  // so, for a flag beyond the end of its buffer.
  static Function load(IntrusivePtr<Device> device, executor::Module module, executor::Bindings bindings);

  // Runs it, so many times, when its turn in the device's default stream comes. Errors arrive with the value,
  // as those of the launch that failed; kInvalidArgument at once for a negative number. Inside of a trace it
  // becomes a part of that function.
  AsyncValueRef<Chain> run(int times = 1) const;

  // Names an operation for these: its kernel ("mpm.update_grid_3d"; any beginning that only one has will do),
  // what the text calls its event ("update_grid_3d.2", where a kernel is launched several times), or the
  // operation ("primitives.sort_by_key.u32"). The events are found anew. Errors: kNotFound with the nearest
  // name, kInvalidArgument where several have the name, or for a launch of another device.
  void insert_before(std::string_view operation, const BoundLaunch& launch);
  void insert_after(std::string_view operation, const BoundLaunch& launch);
  void replace(std::string_view operation, const BoundLaunch& launch);
  void remove(std::string_view operation);

  std::string_view name() const;  // without the '@'
  const Device& device() const;
  const executor::LoadedModule& loaded() const;
  const executor::Module& module() const { return loaded().source(); }
  const DeviceFunction& work() const;

 private:
  friend class Tracer;
  struct State;
  enum class Edit { kInsertBefore, kInsertAfter, kReplace, kRemove };
  explicit Function(IntrusivePtr<State> state);
  const State& state() const;  // Errors: kInvalidArgument when it was moved from
  void edit(Edit how, std::string_view operation, const BoundLaunch* launch);

  IntrusivePtr<RefCounted> state_;  // a State
};

// Returns the function that `code` is. Errors: what `code` throws; kInvalidArgument with the place where
// trace() was called and what was given last, for what cannot be traced: reading back, waiting, functions of
// the host, work of another device or stream, and another trace().
Function trace(IntrusivePtr<Device> device, const std::function<void()>& code, std::string name = "main",
               const std::source_location& where = std::source_location::current());

// Run a body so many times, and not at all for a number below 1: as the slot says when the loop's turn comes,
// for one that varies. Outside of a trace the former calls it so often, and the latter is an Error
// kInvalidArgument, as those below.
void repeat(int64_t times, const std::function<void()>& body);
void repeat(const Slot<int32_t>& times, const std::function<void()>& body);
// Runs the body while the flag is true: a u32 in device memory that kernels write. Cost: the host reads it
// back before each round, some 10 us where device memory is not the host's.
void loop_while(const DeviceFlag& flag, const std::function<void()>& body);
// Runs one or the other. Cost: as above.
void branch(
    const DeviceFlag& flag, const std::function<void()>& then,
    const std::function<void()>& otherwise = [] {});

// Returns the function as text; parse() and Function::load() make it a function again. sparse/function_text.h
// has more to look at.
std::string print(const Function& function);

}  // namespace coppice
