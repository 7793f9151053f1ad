// Recordings and parallel primitives of a stream of the cuda device (see cuda_stream_backend.h).
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "core/check.h"
#include "gpu/cuda/cuda_buffer.h"
#include "gpu/cuda/cuda_recording.h"
#include "gpu/cuda/cuda_stream_backend.h"
#include "gpu/cuda/primitives.h"

namespace coppice::cuda {
namespace {

constexpr size_t kResultBytes = 64;

void check_size(const PrimitiveCall& call) {
  using Kind = PrimitiveCall::Kind;
  if (call.kind == Kind::kRunLengthEncode && call.n > INT32_MAX)
    throw Error(ErrorCode::kOutOfRange,
                fmt::format("device cuda: encoding runs of {} keys; at most {} can be", call.n, INT32_MAX));
  const bool is_of_32_bits =
      call.kind == Kind::kSelectIfFlag || call.kind == Kind::kHistogram || call.kind == Kind::kBinStarts;
  COPPICE_CHECK(!is_of_32_bits || (call.n <= UINT32_MAX && call.count <= UINT32_MAX),
                "indices, counts and keys have 32 bits");
}

}  // namespace

// Nothing may be under way then: a thread that frees memory meanwhile cannot wait for this stream.
void CudaStreamBackend::begin_recording() {
  wait_begun();
  context_->begin_capture(stream_);
  capture_.emplace();
}

// The nodes of the graph that the next one will come behind.
std::vector<GraphNodeHandle> CudaStreamBackend::capture_dependencies() const {
  CaptureStatus status = CaptureStatus::kNone;
  unsigned long long id = 0;
  GraphHandle graph = nullptr;
  const GraphNodeHandle* nodes = nullptr;
  size_t count = 0;
  context_->check(context_->driver().stream_get_capture_info(stream_, &status, &id, &graph, &nodes, &count),
                  "cuStreamGetCaptureInfo");
  return {nodes, nodes + count};
}

void CudaStreamBackend::begin_recorded_part(std::span<const uint32_t> before) {
  COPPICE_CHECK(capture_.has_value(), "a part of a recording outside of one");
  begin();
  if (!std::exchange(capture_->is_in_part, true)) return;
  capture_->part_ends.push_back(capture_dependencies());
  std::vector<GraphNodeHandle> behind;
  for (const uint32_t part : before) {
    const std::vector<GraphNodeHandle>& ends = capture_->part_ends.at(part);
    behind.insert(behind.end(), ends.begin(), ends.end());
  }
  std::sort(behind.begin(), behind.end());
  behind.erase(std::unique(behind.begin(), behind.end()), behind.end());
  check(context_->driver().stream_update_capture_dependencies(stream_, behind.data(), behind.size(),
                                                              kSetCaptureDependencies),
        "cuStreamUpdateCaptureDependencies");
}

Result CudaStreamBackend::end_capture(GraphHandle* graph, Capture& capture) {
  capture = std::move(*capture_);
  capture_.reset();
  return context_->end_capture(stream_, graph);
}

// The operation under way keeps what is released: the queue knows how to drop it, should this be the last
// reference to the stream.
void CudaStreamBackend::release(KeepAlive used) {
  used_.insert(used_.end(), std::make_move_iterator(used.begin()), std::make_move_iterator(used.end()));
}

IntrusivePtr<Recording> CudaStreamBackend::end_recording() {
  GraphHandle graph = nullptr;
  Capture capture;
  const Result result = end_capture(&graph, capture);
  try {
    check(result, "cuStreamEndCapture");
    auto recording = make_intrusive<CudaRecording>(context_, graph);
    recording->used = std::move(capture.used);
    recording->names = std::move(capture.names);
    return recording;
  } catch (...) {
    release(std::move(capture.used));
    throw;
  }
}

void CudaStreamBackend::drop_recording() noexcept {
  if (!capture_) return;
  const Context::FreeingScope scope(*context_);
  GraphHandle graph = nullptr;
  Capture capture;
  // There is none when the driver has given it up already, for a call that cannot be captured.
  if (end_capture(&graph, capture) == Result::kSuccess) context_->driver().graph_destroy(graph);
  release(std::move(capture.used));
}

void CudaStreamBackend::replay(Recording& given) {
  begin();
  auto& recording = static_cast<CudaRecording&>(given);
  COPPICE_CHECK(!capture_, "a recording inside another");
  COPPICE_CHECK(&recording.context() == context_.get(), "a recording of another device");
  used_.push_back(share(&recording));
  names_ = recording.name();
  is_issued_ = true;
  issue_timed(
      [&] { return LaunchTimer::Work{names_}; },
      [&] { check(context_->driver().graph_launch(recording.exec(), stream_), "launching " + names_); });
  if (recording.may_leave_status) context_->note_status_change();
  if (exact_errors_) wait_begun();
}

void* CudaStreamBackend::result_memory() {
  begin();
  if (!result_) result_ = make_buffer(small_, kResultBytes, kResultBytes);
  if (capture_) capture_->used.emplace_back(result_);
  return result_->data();
}

// The scratch memory grows in place, so that what is under way keeps what it has. A primitive needs less
// than what it works on.
void* CudaStreamBackend::scratch(size_t bytes) {
  if (!scratch_) scratch_ = make_intrusive<CudaBuffer>(context_, context_->properties().memory_bytes, bytes);
  scratch_->grow(bytes);
  if (capture_) capture_->used.emplace_back(scratch_);
  return scratch_->data();
}

void CudaStreamBackend::run_primitive(const PrimitiveCall& call) {
  begin();
  check_size(call);
  const Primitives& primitives = *context_->driver().primitives;
  const std::string_view name = name_of(call.kind);
  const auto check_answer = [&](unsigned answer) {
    if (answer != 0) throw context_->lost_or(static_cast<Result>(answer), primitives.error(answer, name));
  };
  size_t bytes = 0;
  check_answer(primitives.scratch_bytes(call, &bytes));
  bytes = std::max<size_t>(bytes, 1);
  void* const memory = scratch(bytes);
  if (capture_)
    capture_->note(name);
  else
    names_ = name, is_issued_ = true;
  issue_timed([&] { return LaunchTimer::Work{std::string(name)}; },
              [&] { check_answer(primitives.run(call, stream_, memory, bytes)); });
  if (exact_errors_ && !capture_) wait_begun();
}

}  // namespace coppice::cuda
