// A launch as a value, for those who give it many times (Program::bind).
#pragma once
#include <memory>
#include <string>

#include "gpu/device.h"

namespace coppice {

namespace detail {
struct Bound;  // sparse/bound_launches.h
}

// Holds a launch that has been prepared: its kernel, loop, handles and arguments as they were when it was
// bound. Giving it to the stream again costs a queue entry. It keeps its trees and device, not what its
// arguments point to. Copies share it.
class BoundLaunch {
 public:
  // Errors: kInvalidArgument without a device, or code.
  BoundLaunch(IntrusivePtr<Device> device, Launch launch);
  AsyncValueRef<Chain> launch() const;
  std::string name() const { return std::string(shared()->launch.name); }  // "file.kernel"
  Device& device() const;
  Stream& stream() const { return device().default_stream(); }
  // Returns another one once its kernel was replaced (sparse/kernel_reload.h), by whichever thread.
  IntrusivePtr<const SharedLaunch> shared() const;
  // Returns what it touches; text_of() in sparse/uses.h makes text of that.
  IntrusivePtr<const LaunchUses> uses() const { return shared()->launch.uses; }
  const void* identity() const { return bound_.get(); }  // the same for copies

 private:
  friend class Program;
  friend class BoundLaunches;
  detail::Bound& bound() const;  // Errors: kInvalidArgument when it was moved from
  std::shared_ptr<detail::Bound> bound_;
};

}  // namespace coppice
