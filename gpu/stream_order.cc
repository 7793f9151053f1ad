// Does, or records, an operation of a stream when it has its turn (see stream_order.h).
#include "gpu/stream_order.h"

#include <algorithm>
#include <initializer_list>

#include "core/check.h"
#include "core/error.h"
#include "core/trace.h"
#include "gpu/buffer_ranges.h"
#include "gpu/message_record.h"
#include "gpu/wait_for_code.h"

namespace coppice {
namespace {

constexpr uint32_t kMostWaitsForChanges = 63;
constexpr size_t kMostWaits = 1024;

void check_arrays(const DeviceContext& context, const PrimitiveCall& call) {
  const std::initializer_list<const void*> arrays{call.in, call.starts, call.first, call.second, call.result};
  for (const void* given : arrays) check_owner(context, given, "an array of a primitive");
}

void check_filled(const DeviceContext& context, const void* to, size_t bytes) {
  check_bytes(context, to, bytes, "what is to be filled");
}

void prepare(InStream& s, const Launch& launch, LaunchBlock& block) {
  if (launch.before_loop) launch.before_loop(s, block);
  if (launch.make_room) launch.make_room(s, block);
}

void wait_for_its_code(const Launch& launch) {
  wait_for_code(launch.code);
  if (launch.code.is_error()) throw launch.code.error();
}

}  // namespace

void give_up_on(InStream& s, const Launch& launch) {
  if (!launch.give_up) return;
  try {
    launch.give_up(s);
  } catch (const Error&) {
  }
}

void InStream::run(Launch& launch) {
  const TraceScope trace(launch.name);
  run(launch, launch.block);
}

// ---- done at once

void DirectOrder::run(const Launch& launch, LaunchBlock& block) {
  block.context = &context_;
  if (launch.skip_on_status && backend_.has_status(context_)) return;
  if (!launch.skip_on_status) return run_to_its_end(launch, block);  // the runtime's own are part of others
  block.number = next_number(launch);
  has_old_status_ = false;
  const LaunchProfile::Timer timer(profile_, launch.name);
  run_to_its_end(launch, block);
}

bool DirectOrder::can_begin_behind_unsettled(const Launch& launch) const {
  if (launch.make_room || launch.has_checks || !launch.skip_on_status) return false;
  if (!launch.needs_repeat) return true;
  if (!launch.tell_changes) return false;
  const auto waits = waits_for_changes_.find(launch.uses.get());
  return waits == waits_for_changes_.end() || waits->second.left == 0;
}

std::unique_ptr<LaunchEnd> DirectOrder::begin(const Launch& launch, LaunchBlock& block,
                                              bool is_behind_unsettled) {
  const bool is_fetched = launch.may_leave_status() && backend_.can_fetch_status() && !has_old_status_ &&
                          can_begin_behind_unsettled(launch);
  if (!is_fetched && !is_behind_unsettled) {
    const auto waits = waits_for_changes_.find(launch.uses.get());
    if (waits != waits_for_changes_.end() && waits->second.left > 0) --waits->second.left;
    run(launch, block);
    return nullptr;
  }
  const LaunchProfile::Timer timer(profile_, launch.name);
  const uint64_t number = block.number = next_number(launch);
  const uint64_t id = launch_id(block);
  block.context = &context_;
  block.number -= replayed_from_;
  block.flags |= kRecorded;
  try {
    wait_for_its_code(launch);
    prepare(*this, launch, block);
  } catch (...) {
    if (is_behind_unsettled || !backend_.has_status(context_)) throw;
    launches_ = number + launch.goes_on;  // it was to be skipped
    has_old_status_ = true;
    return nullptr;
  }
  backend_.run_loop(launch, block);
  if (!is_fetched) return nullptr;
  auto end = std::make_unique<LaunchEnd>(LaunchEnd{.number = number, .id = id});
  try {
    if (launch.tell_changes) launch.tell_changes(*this, number);
    backend_.fetch_status(context_, *end);
  } catch (const Error& error) {
    end->failed = error;
  }
  return end;
}

// A launch that changes a topology again and again is waited for: all that is begun behind it is in vain.
void DirectOrder::note_change(const Launch& launch, bool has_changed) {
  if (!has_changed) {
    waits_for_changes_.erase(launch.uses.get());
    return;
  }
  if (waits_for_changes_.size() >= kMostWaits) waits_for_changes_.clear();
  Waits& waits = waits_for_changes_[launch.uses.get()];
  waits.left = waits.all = std::min(2 * waits.all + 1, kMostWaitsForChanges);
}

bool DirectOrder::settle(const Launch& launch, const LaunchEnd& end) {
  const bool is_own = end.status != 0 && status_launch(end.status) == (end.number & 0xffffff);
  if (launch.tell_changes) note_change(launch, is_own);
  if (end.is_settled()) return true;
  launches_ = end.number + launch.goes_on;
  has_old_status_ = true;
  if (end.failed) {
    launches_ = end.number + 1;
    forget_status();
    give_up_on(*this, launch);
    throw *end.failed;
  }
  if (is_own) {
    if (status_of(end.status) == DeviceStatus::kTopologyChanged) forget_status();
    resume(launch, end.number);
    return true;
  }
  // It was skipped. A status that nobody is to resolve any more was left behind by mistake.
  if (is_final_status(end.status)) return true;
  forget_status();
  return false;
}

void DirectOrder::run_to_its_end(const Launch& launch, LaunchBlock& block) {
  wait_for_its_code(launch);
  prepare(*this, launch, block);
  repeat(launch, block);
}

void DirectOrder::repeat(const Launch& launch, LaunchBlock& block) {
  do {
    try {
      backend_.run_loop(launch, block);
      if (!launch.may_leave_status()) return;
      backend_.wait_begun();
    } catch (...) {
      if (launch.skip_on_status) forget_status();
      give_up_on(*this, launch);
      throw;
    }
  } while (finish(launch, block));
}

bool DirectOrder::finish(const Launch& launch, LaunchBlock& block) {
  if (launch.needs_repeat) return launch.needs_repeat(*this, block);
  if (launch.throw_error) launch.throw_error(*this);
  return false;
}

void DirectOrder::forget_status() {
  try {
    const uint32_t none = 0;
    backend_.wait_copy(&context_.status, &none, sizeof none);
  } catch (const Error&) {  // the device is lost
  }
}

void DirectOrder::run(const PrimitiveCall& call) {
  check_arrays(context_, call);
  backend_.run_primitive(call);
}

void DirectOrder::fill(void* to, int byte, size_t bytes) {
  check_filled(context_, to, bytes);
  backend_.fill(to, byte, bytes);
}

void DirectOrder::copy(void* to, const void* from, size_t bytes) {
  check_copied(context_, to, from, bytes);
  backend_.copy(to, from, bytes);
}

void DirectOrder::wait_copy(void* to, const void* from, size_t bytes) {
  check_copied(context_, to, from, bytes);
  backend_.wait_copy(to, from, bytes);
}

IntrusivePtr<Recording> DirectOrder::record(const std::function<void(InStream&)>& give) {
  backend_.begin_recording();
  RecordingOrder recorder(backend_, context_);
  try {
    give(recorder);
  } catch (...) {
    backend_.drop_recording();
    throw;
  }
  IntrusivePtr<Recording> recording = backend_.end_recording();
  recording->launches = recorder.launches();
  return recording;
}

void DirectOrder::begin_part(std::span<const uint32_t>) {
  COPPICE_CHECK(false, "a part of a recording outside of one");
}

uint64_t DirectOrder::replay(Recording& recording) {
  const uint64_t first = launches_;
  if (recording.holds_calls && backend_.has_status(context_)) return first;
  launches_ += recording.launches;
  backend_.wait_copy(&context_.replayed_from, &first, sizeof first);  // waits for nothing
  replayed_from_ = first;
  try {
    backend_.replay(recording);
  } catch (...) {
    launches_ = first + backend_.launches_begun(recording);
    throw;
  }
  return first;
}

void DirectOrder::resume(const Launch& launch, uint64_t number) {
  launches_ = number + 1;
  LaunchBlock block = launch.block;
  block.context = &context_, block.number = number;
  if (!finish(launch, block)) return;
  prepare(*this, launch, block);
  repeat(launch, block);
}

void DirectOrder::hand_over_messages() { backend_.hand_over_messages(); }

// ---- recorded

void RecordingOrder::run(const Launch& launch, LaunchBlock& block) {
  block.context = &context_;
  launches_ += launch.skip_on_status;
  COPPICE_CHECK(launches_ > 0, "the runtime's own work belongs to a launch of the recording");
  block.number = launches_ - 1;
  block.flags |= kRecorded | (is_committing_ ? kCommitsTopology : 0);
  wait_for_its_code(launch);
  prepare(*this, launch, block);
  backend_.run_loop(launch, block);
  if (!launch.needs_repeat) return;
  is_committing_ = true;
  launch.needs_repeat(*this, block);
  is_committing_ = false;
}

void RecordingOrder::run(const PrimitiveCall& call) {
  check_arrays(context_, call);
  backend_.run_primitive(call);
}

void RecordingOrder::fill(void* to, int byte, size_t bytes) {
  check_filled(context_, to, bytes);
  backend_.fill(to, byte, bytes);
}

void RecordingOrder::copy(void* to, const void* from, size_t bytes) {
  check_copied(context_, to, from, bytes);
  backend_.copy(to, from, bytes);
}

void RecordingOrder::wait_copy(void*, const void*, size_t) {
  COPPICE_CHECK(false, "a recording neither reads back nor takes what is the host's");
}
IntrusivePtr<Recording> RecordingOrder::record(const std::function<void(InStream&)>&) {
  COPPICE_CHECK(false, "a recording inside another");
  return {};
}
uint64_t RecordingOrder::replay(Recording&) {
  COPPICE_CHECK(false, "a replay inside of a recording");
  return 0;
}
void RecordingOrder::resume(const Launch&, uint64_t) {
  COPPICE_CHECK(false, "a launch resumed inside of a recording");
}
void RecordingOrder::hand_over_messages() {
  COPPICE_CHECK(false, "messages handed over inside of a recording");
}

}  // namespace coppice
