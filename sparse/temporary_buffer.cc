// Temporaries and their addresses (see temporary_buffer.h).
#include "sparse/temporary_buffer.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "core/check.h"
#include "core/error.h"
#include "core/extents.h"
#include "gpu/buffer_ranges.h"
#include "sparse/launch_request.h"
#include "sparse/traced_calls.h"

namespace coppice {
namespace {

using detail::LaunchRequest;

// The addresses from here on, up to twice as many, are canonical on no machine, and none of the emulated GPU.
// There are enough of them to give none twice.
constexpr uintptr_t kUnplaced = uintptr_t{1} << 60;
constexpr uintptr_t kBetween = 4096;  // bytes between two, for pointers to the end of one

std::atomic<uintptr_t> next_begin{kUnplaced};
std::atomic<int64_t> unplaced_count{0};

uintptr_t take_addresses(size_t bytes) {
  const uintptr_t span = round_up(bytes, kBetween) + kBetween;
  return next_begin.fetch_add(span, std::memory_order_relaxed);
}

// Calls visit(offset, where the temporary begins) for each word of the arguments, and for the count of the
// range, that is an address of a temporary without a place. A word that looks like one and is none is of no
// buffer.
template <class Visit>
void each_unplaced(const LaunchRequest& r, Visit&& visit) {
  if (unplaced_count.load(std::memory_order_relaxed) == 0) return;
  const auto look = [&](uint32_t offset, uintptr_t word) {
    if (!TemporaryBuffer::is_unplaced(word)) return;
    const BufferRange range = BufferRanges::all().find(word);
    if (TemporaryBuffer::is_unplaced(range.begin) && word <= range.end) visit(offset, range.begin);
  };
  for (uint32_t at = 0; at + sizeof(uintptr_t) <= r.argument_bytes; at += sizeof(uintptr_t)) {
    uintptr_t word = 0;
    std::memcpy(&word, r.arguments + at, sizeof word);
    look(at, word);
  }
  look(TemporaryArgument::kCount, reinterpret_cast<uintptr_t>(r.loop.device_count));
}

[[noreturn]] void refuse(const LaunchRequest& r, uint32_t offset) {
  refuse_launch(r, fmt::format("{} leads to a temporary of a function that is not being traced",
                               offset == TemporaryArgument::kCount ? "the count of its range"
                                                                   : "one of its arguments"));
}

}  // namespace

TemporaryBuffer::TemporaryBuffer(const Device& device, size_t bytes)
    : unplaced_begin_(take_addresses(bytes)) {
  data_ = reinterpret_cast<std::byte*>(unplaced_begin_);
  size_bytes_ = reserved_bytes_ = bytes;
  BufferRanges::all().set(data_, bytes, 0, &const_cast<Device&>(device).context());
  unplaced_count.fetch_add(1, std::memory_order_relaxed);
}

TemporaryBuffer::~TemporaryBuffer() {
  if (is_placed()) return;
  BufferRanges::all().set(data_, 0);
  unplaced_count.fetch_sub(1, std::memory_order_relaxed);
}

void TemporaryBuffer::place(IntrusivePtr<Buffer> arena, size_t offset) {
  COPPICE_CHECK(!is_placed() && offset <= arena->size_bytes() && size_bytes_ <= arena->size_bytes() - offset,
                "a temporary of {} bytes at byte {}", size_bytes_, offset);
  BufferRanges::all().set(data_, 0);
  unplaced_count.fetch_sub(1, std::memory_order_relaxed);
  arena_ = std::move(arena);
  offset_ = offset;
  data_ = arena_->data() + offset;
}

void TemporaryBuffer::grow(size_t size_bytes) {
  if (size_bytes <= size_bytes_) return;
  throw Error(ErrorCode::kOutOfRange,
              fmt::format("a temporary of {} bytes cannot grow to {}", size_bytes_, size_bytes));
}
void TemporaryBuffer::discard(size_t offset_bytes, size_t bytes) {
  if (offset_bytes > size_bytes_ || bytes > size_bytes_ - offset_bytes)
    throw Error(ErrorCode::kOutOfRange, fmt::format("a temporary of {} bytes has no {} bytes from {} on",
                                                    size_bytes_, bytes, offset_bytes));
  if (!is_placed()) throw Error(ErrorCode::kInvalidArgument, "a temporary of a function has no memory yet");
  arena_->discard(offset_ + offset_bytes, bytes);
}
void TemporaryBuffer::shrink(size_t size_bytes) {
  if (size_bytes >= size_bytes_) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("a temporary of {} bytes stays as large as it is: its memory is a function's",
                          size_bytes_));
}

bool TemporaryBuffer::is_unplaced(uintptr_t address) { return address / kUnplaced == 1; }

namespace {

class OwnMemory final : public Buffer {
 public:
  OwnMemory(IntrusivePtr<Device> device, size_t bytes)
      : device_(std::move(device)), memory_(device_->reserve(bytes, bytes)) {
    take_size();
  }
  ~OwnMemory() override {
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

IntrusivePtr<Buffer> temporary_outside_of_a_trace(IntrusivePtr<Device> device, size_t bytes) {
  return make_intrusive<OwnMemory>(std::move(device), bytes);
}

const TemporaryBuffer* as_temporary(const Buffer& buffer) {
  return dynamic_cast<const TemporaryBuffer*>(&buffer);
}

void note_temporaries(LaunchRequest& r) {
  each_unplaced(r, [&](uint32_t offset, uintptr_t begin) {
    TracedCalls* const traced = TracedCalls::current();
    IntrusivePtr<Buffer> buffer = traced == nullptr ? nullptr : traced->temporary_at(begin);
    if (!buffer) refuse(r, offset);
    r.temporaries.push_back({offset, std::move(buffer)});
  });
}
void refuse_temporaries(const LaunchRequest& r) {
  each_unplaced(r, [&](uint32_t offset, uintptr_t) { refuse(r, offset); });
}

void check_placed(const Launch& launch) {
  for (const TemporaryArgument& t : launch.temporaries) {
    if (!static_cast<const TemporaryBuffer&>(*t.buffer).is_placed())
      throw Error(
          ErrorCode::kInvalidArgument,
          fmt::format("kernel {}: it was bound with a temporary of a function, and is a part of that alone",
                      launch.name));
  }
}

void take_places(LaunchRequest& r) {
  for (const TemporaryArgument& argument : r.temporaries) {
    const auto& temporary = static_cast<const TemporaryBuffer&>(*argument.buffer);
    const auto placed = [&](uintptr_t address) {
      return reinterpret_cast<uintptr_t>(temporary.data()) + (address - temporary.unplaced_begin());
    };
    if (argument.offset == TemporaryArgument::kCount) {
      const auto count = reinterpret_cast<uintptr_t>(r.loop.device_count);
      r.loop.device_count = reinterpret_cast<const uint64_t*>(placed(count));
      continue;
    }
    uintptr_t word = 0;
    std::memcpy(&word, r.arguments + argument.offset, sizeof word);
    word = placed(word);
    std::memcpy(r.arguments + argument.offset, &word, sizeof word);
  }
}

}  // namespace coppice
