// Mappings and addresses that the process has, and may have (see memory_limits.h).
#include "gpu/cpu/memory_limits.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "core/error.h"

namespace coppice {
namespace {

constexpr uint64_t kUnlimited = ~uint64_t{0};

// Calls f(bytes, size) for one piece after another of a file of /proc. Takes no memory, for there may be
// none.
template <class F>
void read_pieces(const char* path, F&& f) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  std::array<char, 16384> piece;
  for (ssize_t n; (n = read(file, piece.data(), piece.size())) > 0;) f(piece.data(), static_cast<size_t>(n));
  close(file);
}

// Returns the number that a file begins with; 0 where there is none.
uint64_t read_number(const char* path) {
  uint64_t number = 0;
  bool has_ended = false;
  read_pieces(path, [&](const char* text, size_t size) {
    for (size_t i = 0; i < size && !has_ended; ++i) {
      has_ended = text[i] < '0' || text[i] > '9';
      if (!has_ended) number = 10 * number + static_cast<uint64_t>(text[i] - '0');
    }
  });
  return number;
}

// Counts lines: each is a mapping.
uint64_t count_mappings() {
  uint64_t lines = 0;
  read_pieces("/proc/self/maps", [&](const char* text, size_t size) {
    lines += static_cast<uint64_t>(std::count(text, text + size, '\n'));
  });
  return lines;
}

uint64_t used_addresses() {
  return read_number("/proc/self/statm") * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}
uint64_t most_addresses() {
  rlimit limit{};
  return getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ? kUnlimited : limit.rlim_cur;
}

[[noreturn]] void refuse(const char* what, size_t bytes, const std::string& why) {
  throw Error(ErrorCode::kOutOfMemory, fmt::format("cannot {} {} bytes of memory: {}", what, bytes, why));
}

[[noreturn]] void refuse_for_addresses(const char* what, size_t bytes, uint64_t used, uint64_t most) {
  refuse(
      what, bytes,
      fmt::format("the process has {} KiB of addresses of at most {} KiB (ulimit -v), whose last ones are "
                  "kept for threads and code; raise that limit, or make fewer or smaller trees and buffers",
                  used >> 10, most >> 10));
}

// Stacks of threads have 8 MiB, heaps of threads 64. Where few addresses are left, small buffers still find
// some: what there is can be read.
uint64_t addresses_left_over(size_t bytes, uint64_t most) {
  const uint64_t all = std::min(most / 4, std::max(most / 16, uint64_t{64} << 20));
  return bytes <= (16 << 10) ? all / 4 : all;
}
bool is_too_much(size_t bytes, uint64_t used, uint64_t most) {
  const uint64_t left = most - std::min(most, used), over = addresses_left_over(bytes, most);
  return left < over || bytes > left - over;
}

// Knows all mappings that buffers have. A range's two mappings may have become one with a neighbour's, and
// others have mappings, too; so the system is asked again and again how many there are, and before
// anything is refused.
class Mappings {
 public:
  static Mappings& all() {
    static auto* const it = [] {
      auto* const made = new Mappings;  // buffers may outlive every static object
      pthread_atfork([] { all().mutex_.lock(); }, [] { all().mutex_.unlock(); },
                     [] { all().mutex_.unlock(); });
      return made;
    }();
    return *it;
  }

  void take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    const uint64_t limit = most();
    if (counted_ == 0 || since_counted_ + given_back_.load(std::memory_order_relaxed) >= limit / 64 ||
        !has_room(limit))
      count();
    if (!has_room(limit)) refuse_for_mappings("reserve", bytes, counted_, limit);
    since_counted_ += MappingClaim::kMappings;
  }
  // A range that goes may split a mapping, which had grown together with its neighbours, into two. This
  // takes no lock: a forked child gives back what it has of its parent, whose threads may have held it.
  void give_back() { given_back_.fetch_add(1, std::memory_order_relaxed); }
  // Throws if the system refused memory because there are too many mappings.
  void check(const char* what, size_t bytes) {
    const std::lock_guard lock(mutex_);
    count();
    if (!has_room(most())) refuse_for_mappings(what, bytes, counted_, most());
  }
  void set_most(uint64_t mappings) {
    const std::lock_guard lock(mutex_);
    set_ = mappings, system_ = 0;
  }

 private:
  uint64_t most() {
    if (set_ != 0) return set_;
    if (system_ == 0) system_ = read_number("/proc/sys/vm/max_map_count");
    return system_ != 0 ? system_ : 65530;  // Linux' default
  }
  void count() {
    given_back_.store(0, std::memory_order_relaxed);
    counted_ = count_mappings(), since_counted_ = 0, system_ = 0;
  }
  bool has_room(uint64_t limit) const {
    return counted_ + since_counted_ + given_back_.load(std::memory_order_relaxed) +
               MappingClaim::kMappings <=
           limit - limit / 16;
  }
  [[noreturn]] static void refuse_for_mappings(const char* what, size_t bytes, uint64_t used,
                                               uint64_t limit) {
    refuse(what, bytes,
           fmt::format("the process has {} mappings of at most {} (sysctl vm.max_map_count), whose last ones "
                       "are kept for threads and code; allow more by sysctl -w vm.max_map_count={}, or make "
                       "fewer or smaller trees and buffers",
                       used, limit, 4 * limit));
  }

  std::mutex mutex_;
  uint64_t counted_ = 0, since_counted_ = 0;
  std::atomic<uint64_t> given_back_{0};  // ranges, since then
  uint64_t system_ = 0, set_ = 0;
};

}  // namespace

MappingClaim::MappingClaim(size_t bytes) {
  if (const uint64_t most = most_addresses(); most != kUnlimited) {
    const uint64_t used = used_addresses();
    if (is_too_much(bytes, used, most)) refuse_for_addresses("reserve", bytes, used, most);
  }
  Mappings::all().take(bytes);
}
MappingClaim::~MappingClaim() { Mappings::all().give_back(); }

void* allocate_zeros(size_t bytes) {
  const uint64_t most = most_addresses();
  const uint64_t before = most != kUnlimited ? used_addresses() : 0;
  void* const memory = std::calloc(1, bytes);
  if (memory == nullptr) throw_out_of_memory("reserve", bytes, ENOMEM);
  if (most == kUnlimited) return memory;
  // Addresses that the heap has anyhow may be used up, and those of an arena that it has begun for this
  // thread: it would keep them.
  constexpr uint64_t kHeapsOwn = uint64_t{1} << 20;
  const uint64_t used = used_addresses();
  if (used <= before || used - before > bytes + kHeapsOwn || !is_too_much(bytes, used, most)) return memory;
  std::free(memory);
  refuse_for_addresses("reserve", bytes, before, most);
}

void throw_out_of_memory(const char* what, size_t bytes, int error) {
  if (error == ENOMEM) {
    const uint64_t most = most_addresses(), used = most != kUnlimited ? used_addresses() : 0;
    if (most != kUnlimited && is_too_much(bytes, used, most)) refuse_for_addresses(what, bytes, used, most);
    Mappings::all().check(what, bytes);
  }
  refuse(what, bytes, std::strerror(error));
}

std::string near_address_limit() {
  const uint64_t used = used_addresses(), most = most_addresses();
  if (most == kUnlimited || used < most / 2) return "";
  return fmt::format("; the process has {} KiB of addresses of at most {} KiB (ulimit -v); raise that limit",
                     used >> 10, most >> 10);
}

void set_most_mappings(uint64_t mappings) { Mappings::all().set_most(mappings); }

}  // namespace coppice
