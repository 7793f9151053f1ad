// Running device work as a whole (see segment.h).
#include "sparse/segment.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/trace.h"
#include "gpu/host_access.h"
#include "sparse/temporary_buffer.h"

namespace coppice {
namespace {

// The buffer's size is known when it is read only, since operations before that may let it grow or shrink.
bool wait_read_flag(InStream& s, const DeviceFlag& flag) {
  const uint64_t size = flag.buffer->size_bytes();
  if (size < sizeof(uint32_t) || flag.offset_bytes > size - sizeof(uint32_t))
    throw Error(ErrorCode::kOutOfRange,
                fmt::format("a flag at byte {}, of a buffer of {} bytes", flag.offset_bytes, size));
  try {
    return wait_read(s, reinterpret_cast<const uint32_t*>(place_of(*flag.buffer) + flag.offset_bytes)) != 0;
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("a flag at byte {}: {}", flag.offset_bytes, error.message()));
  }
}

uint64_t times_of(InStream& s, const Segment::Repeat& repeat) {
  if (!repeat.slot) return repeat.times;
  int32_t times = 0;
  std::memcpy(&times, repeat.slot->value(s).data(), sizeof times);
  return times > 0 ? static_cast<uint64_t>(times) : 0;
}

// Does a part when its turn has come.
struct Runner {
  InStream& s;

  void operator()(const std::unique_ptr<LaunchRun>& launches) const { launches->run(s, 1); }
  void operator()(const DeviceCall& call) const {
    const TraceScope trace(call.name);
    call.run(s);
  }
  void operator()(const Segment::Repeat& repeat) const { repeat.body->run(s, times_of(s, repeat)); }
  // A launch that is skipped, because one before it has failed, changes no flag.
  void operator()(const Segment::While& loop) const {
    Device* const device = loop.body->device();
    const auto is_stopped = [&] { return device != nullptr && wait_read(s, &device->context().status) != 0; };
    while (wait_read_flag(s, loop.flag) && !is_stopped()) loop.body->run(s);
  }
  void operator()(const Segment::Branch& branch) const {
    (wait_read_flag(s, branch.flag) ? branch.then : branch.otherwise)->run(s);
  }
  void operator()(const Segment::Call& call) const { call.body->run(s); }
};

}  // namespace

Device* Segment::device_of(const Part& part) {
  struct Finder {
    Device* operator()(const BoundLaunch& launch) const { return &launch.device(); }
    Device* operator()(const DeviceCall&) const { return nullptr; }
    Device* operator()(const Branch& b) const {
      return b.then->device() != nullptr ? b.then->device() : b.otherwise->device();
    }
    Device* operator()(const Repeat& loop) const {
      if (loop.body->device() != nullptr || !loop.slot) return loop.body->device();
      return &loop.slot->device();
    }
    Device* operator()(const While& loop) const { return loop.body->device(); }
    Device* operator()(const Call& call) const { return call.body->device(); }
  };
  return std::visit(Finder(), part);
}

std::vector<Segment::Range> Segment::replayed_as_one(std::span<const Part> parts) {
  std::vector<Range> runs;
  bool has_launches = false, has_calls = false, may_fail = false;  // of the run that begins at `begin`
  size_t begin = 0;
  const auto end_run = [&](size_t end) {
    if (has_launches) runs.push_back({begin, end});
    begin = end;
    has_launches = has_calls = may_fail = false;
  };
  for (size_t i = 0; i < parts.size(); ++i) {
    if (const auto* const launch = std::get_if<BoundLaunch>(&parts[i])) {
      const bool this_may_fail = may_leave_status(*launch);
      if (this_may_fail && has_calls) end_run(i);
      has_launches = true;
      may_fail |= this_may_fail;
    } else if (std::holds_alternative<DeviceCall>(parts[i])) {
      if (may_fail) end_run(i);
      has_calls = true;
    } else {
      end_run(i);
      begin = i + 1;
    }
  }
  end_run(parts.size());
  return runs;
}

Segment::Segment(std::vector<Part> parts, Predecessors before) {
  for (const Part& part : parts) {
    if (device_ == nullptr) device_ = device_of(part);
  }
  before.resize(parts.size());
  add_steps(std::move(parts), before);
}

void Segment::add_steps(std::vector<Part> parts, const Predecessors& before) {
  const auto add_step = [this]<class T>(T& part) {
    if constexpr (!std::is_same_v<T, BoundLaunch>) steps_.emplace_back(std::move(part));
  };
  size_t at = 0;
  const auto add_steps_until = [&](size_t end) {
    for (; at < end; ++at) std::visit(add_step, parts[at]);
  };
  for (const Range& run : replayed_as_one(parts)) {
    add_steps_until(run.begin);
    std::vector<LaunchRun::Item> items;
    Predecessors order;
    for (; at < run.end; ++at) {
      order.emplace_back();
      for (const uint32_t earlier : before[at]) {
        if (earlier >= run.begin) order.back().push_back(earlier - static_cast<uint32_t>(run.begin));
      }
      std::visit(
          [&]<class T>(T& part) {
            if constexpr (std::is_constructible_v<LaunchRun::Item, T>) items.emplace_back(std::move(part));
          },
          parts[at]);
    }
    steps_.emplace_back(std::make_unique<LaunchRun>(std::move(items), std::move(order)));
  }
  add_steps_until(parts.size());
}

void Segment::run(InStream& s, uint64_t times) {
  if (steps_.size() == 1) {  // what is replayed is replayed so many times
    if (auto* const launches = std::get_if<Launches>(&steps_.front())) return (*launches)->run(s, times);
    if (auto* const call = std::get_if<Call>(&steps_.front())) return call->body->run(s, times);
  }
  for (uint64_t i = 0; i < times; ++i) {
    leave_at_process_end();
    for (const Step& step : steps_) std::visit(Runner{s}, step);
  }
}

}  // namespace coppice
