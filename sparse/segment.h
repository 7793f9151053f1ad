// Device work that runs as a whole when its turn in the stream comes: launches, primitives, copies and fills,
// with loops and branches around them. A function (sparse/function.h) becomes one.
//
// Launches and primitives that follow each other are recorded and replayed together (sparse/launch_run.h), a
// loop around them, too: on a GPU a graph is launched as often as the loop says. Where a launch may fail or
// run out of memory, a primitive, copy or fill is given between two of these, for it cannot be skipped on the
// device. Used by one stream's thread, once it is made.
#pragma once
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "sparse/device_flag.h"
#include "sparse/launch_run.h"
#include "sparse/slot.h"

namespace coppice {

class Segment final : public RefCounted {
 public:
  struct Repeat {
    uint64_t times = 0;
    IntrusivePtr<SlotStorage> slot;  // where not null: it has the times, an int32_t
    IntrusivePtr<Segment> body;
  };
  struct While {
    DeviceFlag flag;
    IntrusivePtr<Segment> body;
  };
  struct Branch {
    DeviceFlag flag;
    IntrusivePtr<Segment> then, otherwise;
  };
  struct Call {
    IntrusivePtr<Segment> body;
  };
  using Part = std::variant<BoundLaunch, DeviceCall, Repeat, While, Branch, Call>;
  // Parts [begin, end) of a list of them.
  struct Range {
    size_t begin, end;
  };

  // `before` has the parts that each comes behind, whatever they use.
  explicit Segment(std::vector<Part> parts, Predecessors before = {});
  // Runs all parts in their order, so many times. Errors: those of the part that failed; what is behind it is
  // not run.
  void run(InStream& s, uint64_t times = 1);
  // Returns the device of its launches, which keep it; null where it has none.
  Device* device() const { return device_; }
  static Device* device_of(const Part& part);
  // Returns which of the parts are recorded and replayed as one, where the device records.
  static std::vector<Range> replayed_as_one(std::span<const Part> parts);

 private:
  using Launches = std::unique_ptr<LaunchRun>;
  using Step = std::variant<Launches, DeviceCall, Repeat, While, Branch, Call>;
  void add_steps(std::vector<Part> parts, const Predecessors& before);

  Device* device_ = nullptr;
  std::vector<Step> steps_;
};

}  // namespace coppice
