// Temporaries and their addresses (see temporary_buffer.h).
#include "sparse/temporary_buffer.h"

#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <utility>

#include "core/check.h"
#include "core/error.h"
#include "core/work_refusal.h"
#include "gpu/buffer_ranges.h"
#include "sparse/launch_request.h"
#include "sparse/traced_calls.h"

namespace coppice {
namespace {

using detail::LaunchRequest;

// While there are none, no launch is looked through.
std::atomic<int64_t> temporaries{0};

bool is_unplaced(uintptr_t address) { return BufferRanges::all().is_unplaced(address); }

uintptr_t word_at(const unsigned char* arguments, uint32_t offset) {
  uintptr_t word = 0;
  std::memcpy(&word, arguments + offset, sizeof word);
  return word;
}

// Calls visit(offset, address) for each address without memory among the arguments, which packed structs may
// have at any multiple of 4, and for that of the count of the range.
template <class Visit>
void each_unplaced(const LaunchRequest& r, Visit&& visit) {
  if (temporaries.load(std::memory_order_relaxed) == 0) return;
  for (uint32_t at = 0; at + sizeof(uintptr_t) <= r.argument_bytes; at += 4) {
    if (const uintptr_t word = word_at(r.arguments, at); is_unplaced(word)) visit(at, word);
  }
  const auto count = reinterpret_cast<uintptr_t>(r.loop.device_count);
  if (is_unplaced(count)) visit(TemporaryArgument::kCount, count);
}

[[noreturn]] void refuse(const LaunchRequest& r, uint32_t offset) {
  refuse_launch(
      r,
      fmt::format("{} leads to a temporary of a function that is not being traced, or beside one",
                  offset == TemporaryArgument::kCount ? "the count of its range" : "one of its arguments"));
}

class OwnMemory final : public Buffer {
 public:
  OwnMemory(IntrusivePtr<Device> device, size_t bytes)
      : device_(std::move(device)), memory_(device_->reserve(bytes, bytes)) {
    take_size();
  }
  ~OwnMemory() override {
    const WorkRefusal::Scope lifted(nullptr);  // the thread may be tracing
    try {
      device_->default_stream().enqueue("temporary.free", [memory = memory_](InStream&) {});
    } catch (const Error&) {  // in a forked child nothing uses it
    }
  }
  void grow(size_t size_bytes) override { memory_->grow(size_bytes), take_size(); }
  void discard(size_t offset_bytes, size_t bytes) override { memory_->discard(offset_bytes, bytes); }
  void shrink(size_t size_bytes) override { memory_->shrink(size_bytes), take_size(); }
  void release() override { memory_->release(), take_size(); }

 private:
  void take_size() {
    data_ = memory_->data(), size_bytes_ = memory_->size_bytes(), reserved_bytes_ = memory_->reserved_bytes();
  }

  const IntrusivePtr<Device> device_;
  const IntrusivePtr<Buffer> memory_;
};

}  // namespace

TemporaryBuffer::TemporaryBuffer(Device& device, size_t bytes) {
  data_ = reinterpret_cast<std::byte*>(BufferRanges::all().take_unplaced(bytes));
  size_bytes_ = reserved_bytes_ = bytes;
  BufferRanges::all().set(data_, bytes, 0, &device.context());
  temporaries.fetch_add(1, std::memory_order_relaxed);
}

TemporaryBuffer::~TemporaryBuffer() {
  BufferRanges::all().set(data_, 0);
  temporaries.fetch_sub(1, std::memory_order_relaxed);
}

void TemporaryBuffer::place(IntrusivePtr<Buffer> arena, size_t offset) {
  COPPICE_CHECK(!is_placed() && offset <= arena->size_bytes() && size_bytes_ <= arena->size_bytes() - offset,
                "a temporary of {} bytes at byte {}", size_bytes_, offset);
  arena_ = std::move(arena);
  offset_ = offset;
}

void TemporaryBuffer::grow(size_t size_bytes) {
  if (size_bytes <= size_bytes_) return;
  throw Error(ErrorCode::kOutOfRange,
              fmt::format("a temporary of {} bytes cannot grow to {}", size_bytes_, size_bytes));
}
void TemporaryBuffer::discard(size_t, size_t) {
  throw Error(ErrorCode::kInvalidArgument, "discard() of a temporary: its memory is a function's");
}
void TemporaryBuffer::shrink(size_t size_bytes) {
  if (size_bytes >= size_bytes_) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("a temporary of {} bytes stays as large as it is: its memory is a function's",
                          size_bytes_));
}

IntrusivePtr<Buffer> temporary_outside_of_a_trace(IntrusivePtr<Device> device, size_t bytes) {
  return make_intrusive<OwnMemory>(std::move(device), bytes);
}

const TemporaryBuffer* as_temporary(const Buffer& buffer) {
  return dynamic_cast<const TemporaryBuffer*>(&buffer);
}
std::byte* place_of(const Buffer& buffer) {
  const TemporaryBuffer* const temporary = as_temporary(buffer);
  if (temporary == nullptr) return buffer.data();
  return temporary->is_placed() ? temporary->arena()->data() + temporary->offset() : nullptr;
}

void note_temporaries(LaunchRequest& r) {
  each_unplaced(r, [&](uint32_t offset, uintptr_t address) {
    const BufferRange range = BufferRanges::all().find(address);
    TracedCalls* const traced = TracedCalls::current();
    IntrusivePtr<Buffer> buffer = traced == nullptr ? nullptr : traced->temporary_at(range.begin);
    if (!buffer || address > range.end) refuse(r, offset);
    r.temporaries.push_back({offset, std::move(buffer)});
  });
}
void refuse_temporaries(const LaunchRequest& r) {
  each_unplaced(r, [&](uint32_t offset, uintptr_t) { refuse(r, offset); });
}

void take_places(LaunchRequest& r) {
  for (const TemporaryArgument& argument : r.temporaries) {
    const Buffer& buffer = *argument.buffer;
    const auto placed = [&](uintptr_t address) {
      return address - reinterpret_cast<uintptr_t>(buffer.data()) +
             reinterpret_cast<uintptr_t>(place_of(buffer));
    };
    if (argument.offset == TemporaryArgument::kCount) {
      const auto count = reinterpret_cast<uintptr_t>(r.loop.device_count);
      r.loop.device_count = reinterpret_cast<const uint64_t*>(placed(count));
      continue;
    }
    const uintptr_t word = placed(word_at(r.arguments, argument.offset));
    std::memcpy(r.arguments + argument.offset, &word, sizeof word);
  }
}

void check_placed(const Launch& launch) {
  for (const TemporaryArgument& t : launch.temporaries) {
    const uintptr_t address = t.offset == TemporaryArgument::kCount
                                  ? reinterpret_cast<uintptr_t>(launch.block.count)
                                  : word_at(launch.block.arguments, t.offset);
    if (is_unplaced(address))
      throw Error(
          ErrorCode::kInvalidArgument,
          fmt::format(
              "kernel {}: it was bound with a temporary while a function was traced, and is a part of "
              "that function alone, as its loaded().bindings() have it",
              launch.name));
  }
}

}  // namespace coppice
