// Knows where the buffers of all devices lie, so that an access beside them is found: by the emulated GPU,
// by the checks of pointers (sparse/memory_uses.h), and where a device is given memory of another one.
// There is one table for the process, since a pointer does not say which device it is of. Thread-safe.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace coppice {

struct DeviceContext;

// Addresses from here on are given to buffers that have no memory yet, or whose memory lies elsewhere
// (sparse/temporary_buffer.h). They are canonical on no x86-64, are none of the emulated GPU's, and both of
// their halves are unlike the numbers that kernels are given.
inline constexpr uintptr_t kFirstUnplaced = uintptr_t{0x1b9f36d2'8e510000};

struct BufferRange {
  uintptr_t begin = 0;
  uintptr_t end = 0;                     // of what is committed; `begin` and 0 bytes where there is no buffer
  uintptr_t most = 0;                    // where it may end once it has grown
  const DeviceContext* owner = nullptr;  // of the device whose memory it is; null: not told
  bool has_fields = false;               // values of a tree's fields lie there
  bool holds(uintptr_t address, size_t bytes) const {
    return address >= begin && address <= end && bytes <= end - address;
  }
};

class BufferRanges {
 public:
  static BufferRanges& all();

  // Adds a buffer, or notes that its size has changed; a buffer of 0 bytes is gone. It may grow to
  // `most_bytes`, if that is more.
  void set(const void* begin, size_t bytes, size_t most_bytes = 0, const DeviceContext* owner = nullptr);
  // Notes that a tree has fields in the buffer that begins there.
  void note_fields(const void* begin);
  // Returns the last buffer that begins at or before the address.
  BufferRange find(uintptr_t address) const;
  // Returns all of them, in the order of their addresses.
  std::vector<BufferRange> list() const;
  // Takes addresses from kFirstUnplaced on that nobody else gets. Errors: kOutOfMemory where there are no
  // more.
  uintptr_t take_unplaced(size_t bytes);
  // Returns whether an address is among those, or right beside.
  bool is_unplaced(uintptr_t address) const {
    return address - (kFirstUnplaced - kUnplacedGap) < unplaced_.load(std::memory_order_relaxed);
  }
  // Returns another number whenever set() was called.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }

 private:
  struct Size {
    size_t bytes, most;
    const DeviceContext* owner;
    bool has_fields = false;
  };
  static BufferRange range(uintptr_t begin, const Size& size) {
    return {begin, begin + size.bytes, begin + size.most, size.owner, size.has_fields};
  }

  static constexpr uintptr_t kUnplacedGap = 4096;  // between two, and in front of the first
  mutable std::mutex mutex_;
  std::map<uintptr_t, Size> sizes_;
  std::atomic<uintptr_t> unplaced_{0};  // bytes from kFirstUnplaced - kUnplacedGap on that were taken
  std::atomic<uint64_t> version_{1};
};

// Returns whether an address is in a buffer of another device than the one with this context: that
// device's work has another order, and its memory may be no memory here. Cost: a search of the table;
// nothing while there is one device.
bool is_of_another_device(const DeviceContext& device, const void* address);
// Errors: kInvalidArgument where it is, "`what` is in memory of another device", and for an address without
// memory.
void check_owner(const DeviceContext& device, const void* address, std::string_view what);
// Checks an array of `items` of `item_bytes` each, which `what` names. Errors: as above, and kInvalidArgument
// where it is null and not empty, or begins in a buffer that is too small for it.
void check_array(const DeviceContext& device, const void* address, uint64_t items, uint64_t item_bytes,
                 std::string_view what);
// Returns what is wrong with the address of one item of so many bytes, as "is at byte 60 of a buffer of 64
// bytes": it is misaligned, or begins in a buffer, or right behind one, and lies beyond its end; else "".
std::string why_no_item(const void* address, uint64_t item_bytes);
// Checks the bytes that are copied or filled, which `what` names. Errors: as of check_owner(), and
// kInvalidArgument where they begin at address 0, reach beyond the end of the buffer in which they begin, or
// into one from before it. Nobody knows how large the host's memory is.
void check_bytes(const DeviceContext& device, const void* address, size_t bytes, std::string_view what);
// Checks both ends of a copy in the same way.
void check_copied(const DeviceContext& device, const void* to, const void* from, size_t bytes);

// Keeps the range that was found last, for the many accesses to few buffers.
class BufferCache {
 public:
  bool holds(uintptr_t address, size_t bytes) {
    if (ranges_[last_].holds(address, bytes) && version_ == BufferRanges::all().version()) return true;
    return search(address, bytes);
  }

 private:
  bool search(uintptr_t address, size_t bytes);

  std::array<BufferRange, 8> ranges_{};
  uint32_t last_ = 0;
  uint64_t version_ = 0;
};

}  // namespace coppice
