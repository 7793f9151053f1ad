// Bytes of host memory as a value of functions: the type `bytes`.
//
//   registry.add_out_variant("scale.f32", [](const HostBytes& in, Constant<float> by, OutBytes out) {
//     const std::span<const float> from = in.as<float>();
//     const std::span<float> to = out.resize<float>(from.size());
//     for (size_t i = 0; i < from.size(); ++i) to[i] = by * from[i];
//   });
//
// Where they lie is the business of whoever runs the function. The executor gives each value memory of its
// own, which dies with the last that refers to it. A planned function (planned/planned_function.h) gives
// values that nobody keeps places in one arena, and its outputs places in another that lives as long as one
// of them.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include "core/check.h"
#include "core/intrusive_ptr.h"
#include "core/ref_counted.h"

namespace coppice::executor {

// One piece of memory that dies with the last value in it.
class HostMemory final : public RefCountedBase<HostMemory> {
 public:
  static constexpr bool kAllowsWeakReferences = false;
  static constexpr size_t kAlignment = 64;

  // `copies` counts how often a value was copied out of it; null: nobody wants to know. `from` outlives it.
  // Errors: what `from` throws: kOutOfMemory of a capped one.
  static IntrusivePtr<HostMemory> create(size_t bytes, std::pmr::memory_resource& from,
                                         std::shared_ptr<std::atomic<int64_t>> copies = nullptr);
  std::byte* data() { return reinterpret_cast<std::byte*>(this) + kHeaderBytes; }
  void count_copy() const {
    if (copies_) copies_->fetch_add(1, std::memory_order_relaxed);
  }

 private:
  friend class RefCountedBase<HostMemory>;
  friend struct coppice::detail::RefAccess;
  static constexpr size_t kHeaderBytes = kAlignment;

  HostMemory(size_t bytes, std::pmr::memory_resource& from, std::shared_ptr<std::atomic<int64_t>> copies)
      : bytes_(bytes), from_(from), copies_(std::move(copies)) {}
  static void destroy(HostMemory* self);

  const size_t bytes_;
  std::pmr::memory_resource& from_;
  const std::shared_ptr<std::atomic<int64_t>> copies_;
};

// A run learns this of a planned value: the most bytes that it has asked for. One thread at a time.
struct LearnedSize {
  size_t most_bytes = 0;
  bool* has_outgrown = nullptr;  // is set when there was no place that was large enough
};

// Copying one that has memory counts a reference to that. Copying a planned function's value copies the
// bytes: they are another value's soon. view() copies nothing.
class HostBytes {
 public:
  HostBytes() = default;
  // Contents are undefined. Errors: as HostMemory::create().
  HostBytes(size_t bytes, std::pmr::memory_resource& from)
      : HostBytes(HostMemory::create(bytes, from), bytes) {}
  HostBytes(const HostBytes& other) : HostBytes(other.shared()) {}
  HostBytes(HostBytes&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)),
        room_(std::exchange(other.room_, 0)),
        memory_(std::move(other.memory_)),
        learned_(std::exchange(other.learned_, nullptr)) {}
  HostBytes& operator=(HostBytes other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(room_, other.room_);
    std::swap(memory_, other.memory_);
    std::swap(learned_, other.learned_);
    return *this;
  }
  ~HostBytes() = default;

  std::byte* data() const { return data_; }
  size_t size_bytes() const { return bytes_; }
  // All whole items in it.
  template <class T>
  std::span<const T> as() const {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= HostMemory::kAlignment);
    return {reinterpret_cast<const T*>(data_), bytes_ / sizeof(T)};
  }
  // Returns `bytes` of it from `offset` on, without a copy. A view of planned bytes means something as long
  // as they do: an operation may return one, and the plan sees to it, but must not keep one: a copy of the
  // value is what it may keep. Out of range is a failed check.
  HostBytes view(size_t offset, size_t bytes) const;
  // Returns a value with memory of its own, and counts that in the arena it comes from.
  HostBytes copy_out(std::pmr::memory_resource& to = *std::pmr::new_delete_resource()) const;
  // Returns whether it keeps its memory: false for a planned function's value, which the next round or run
  // writes anew, wherever its bytes are.
  bool is_counted() const { return data_ == nullptr || (memory_ != nullptr && learned_ == nullptr); }

 private:
  friend class OutBytes;
  friend class PlannedBytes;

  HostBytes(IntrusivePtr<HostMemory> memory, size_t bytes)
      : data_(memory->data()), bytes_(bytes), room_(bytes), memory_(std::move(memory)) {}
  HostBytes shared() const;

  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  size_t room_ = 0;  // bytes at data_
  IntrusivePtr<HostMemory> memory_;
  LearnedSize* learned_ = nullptr;  // not null: a planned function's value, which its next run writes anew
};

// Where an out variant writes a result.
class OutBytes {
 public:
  // A variant that asks for no room leaves an empty result.
  OutBytes(HostBytes& value, std::pmr::memory_resource& memory) : value_(&value), memory_(&memory) {
    value.bytes_ = 0;
  }

  // Makes room for n items, aligned to 64 bytes. Contents are undefined; of a result that is made in an
  // argument's place they may be the argument's. Call it once, before anything is written. Errors:
  // kOutOfMemory; kOutOfRange for sizes that no memory has.
  template <class T>
  std::span<T> resize(size_t n) const {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= HostMemory::kAlignment);
    return {reinterpret_cast<T*>(resize_bytes(n, sizeof(T))), n};
  }

 private:
  std::byte* resize_bytes(size_t n, size_t item_bytes) const {
    const size_t bytes = n * item_bytes;
    HostBytes& v = *value_;
    if (bytes > v.room_ || n > SIZE_MAX / item_bytes) [[unlikely]]
      take_memory(n, item_bytes);
    v.bytes_ = bytes;
    return v.data_;
  }
  void take_memory(size_t n, size_t item_bytes) const;

  HostBytes* value_;
  std::pmr::memory_resource* memory_;
};

// Gives values their places: for planned functions alone.
class PlannedBytes {
 public:
  struct Place {
    std::byte* data = nullptr;
    size_t room = 0;
    LearnedSize* learned = nullptr;
  };
  static void put(HostBytes& value, const Place& place, IntrusivePtr<HostMemory> memory = nullptr) {
    value.data_ = place.data, value.bytes_ = 0, value.room_ = place.room;
    value.memory_ = std::move(memory), value.learned_ = place.learned;
  }
  // Lets a value count a reference to the memory that its place is in.
  static void count(HostBytes& value, IntrusivePtr<HostMemory> memory) { value.memory_ = std::move(memory); }
  // A value that may outlive its instance is not to teach it.
  static void forget_learned(HostBytes& value) { value.learned_ = nullptr; }
};

}  // namespace coppice::executor
