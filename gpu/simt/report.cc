#include "gpu/simt/report.h"

#include <fmt/format.h>

#include <bit>
#include <string_view>
#include <utility>
#include <vector>

namespace coppice::simt {
namespace {

constexpr std::string_view kNames[] = {"running", "active mask",  "match any",     "ballot",
                                       "shuffle", "warp barrier", "block barrier", "ended"};

std::string_view name_of(Wait wait) { return kNames[static_cast<size_t>(wait)]; }

std::string site_text(const Grid& grid, const void* site) {
  const auto offset = static_cast<int64_t>(reinterpret_cast<uintptr_t>(site) -
                                           reinterpret_cast<uintptr_t>(grid.launch().entry));
  return offset < 0 ? fmt::format("entry-{:#x}", -offset) : fmt::format("entry+{:#x}", offset);
}

std::string start_text(const Grid& grid) {
  return fmt::format("{}: emulated GPU, seed {}, launch {}: ", grid.launch().kernel, grid.options().seed,
                     grid.launch().number);
}

std::string thread_text(const Thread& t) {
  return fmt::format("block {} warp {} lane {}", t.block.number, t.lane / 32, t.lane % 32);
}

constexpr std::string_view kAccesses[] = {"a load", "a store", "an atomic"};

// Returns "a load of 4 bytes at scale at heat.kernels.cc:12".
std::string access_text(const Grid& grid, const AccessCall& call) {
  return fmt::format("{} of {} bytes at {}", kAccesses[static_cast<size_t>(call.access)], call.bytes,
                     call.site == nullptr ? site_text(grid, call.code) : call.site->place);
}

// Returns "block 0 warp 1 lanes 0-3 at ballot ..., lanes 4-31 at ...": what all threads that have not
// ended do.
std::string everyone(const Grid& grid) {
  // Each entry says what lanes do, and in which warps just they do it.
  std::vector<std::pair<std::string, std::string>> groups;
  const auto add = [&](const std::string& what, const std::string& where) {
    for (auto& [known, places] : groups) {
      if (known == what) {
        places += ", " + where;
        return;
      }
    }
    groups.emplace_back(what, where);
  };
  for (const Block& block : grid.places()) {
    for (size_t first = 0; block.alive != 0 && first < block.threads.size(); first += 32) {
      std::vector<std::pair<std::string, uint32_t>> lanes_at;
      for (uint32_t i = 0; i < 32; ++i) {
        const Thread& t = *block.threads[first + i];
        if (t.wait == Wait::kEnded) continue;
        const std::string place = t.wait == Wait::kNothing ? "runs or spins" : "at " + place_text(grid, t);
        auto at = lanes_at.begin();
        while (at != lanes_at.end() && at->first != place) ++at;
        if (at == lanes_at.end()) at = lanes_at.insert(at, {place, 0});
        at->second |= 1u << i;
      }
      for (const auto& [place, lanes] : lanes_at) {
        add(fmt::format("{} {}", lanes_text(lanes), place),
            fmt::format("block {} warp {}", block.number, first / 32));
      }
    }
  }
  std::string text;
  for (const auto& [what, where] : groups) text += (text.empty() ? "" : "; ") + where + " " + what;
  return text;
}

}  // namespace

std::string lanes_text(uint32_t lanes) {
  std::string text;
  for (uint32_t first = 0; first < 32; ++first) {
    if ((lanes >> first & 1) == 0) continue;
    uint32_t last = first;
    while (last < 31 && (lanes >> (last + 1) & 1) != 0) ++last;
    text += text.empty() ? "" : ",";
    text += first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
    first = last;
  }
  return ((lanes & (lanes - 1)) == 0 ? "lane " : "lanes ") + text;
}

std::string place_text(const Grid& grid, const Thread& t) {
  const std::string site = site_text(grid, t.site);
  return is_warp_call(t.wait) ? fmt::format("{} (mask {:#010x}, {})", name_of(t.wait),
                                            t.block.warps[t.lane / 32].calls[t.lane % 32].mask, site)
                              : fmt::format("{} ({})", name_of(t.wait), site);
}

std::string describe_call(const Grid& grid, Wait operation, const void* site, const std::string& what) {
  return fmt::format("{}{}: {} at {}: {}", start_text(grid), thread_text(grid.running()), name_of(operation),
                     site_text(grid, site), what);
}

std::string describe_host_access(const Grid& grid, const AccessCall& call) {
  return fmt::format("{}{} touches host memory at {}: {}; kernels get memory of the device", start_text(grid),
                     thread_text(grid.running()), call.address, access_text(grid, call));
}

std::string describe_outside(const Grid& grid, const AccessCall& call) {
  const std::string start = start_text(grid) + thread_text(grid.running());
  const SharedMemory& shared = grid.running().block.shared;
  if (shared.holds(call.address)) {
    return fmt::format("{} touches shared memory behind its {} bytes: {}, from byte {} on", start,
                       grid.shared_bytes(), access_text(grid, call), shared.offset_of(call.address));
  }
  const auto address = reinterpret_cast<uintptr_t>(call.address);
  const BufferRange range = BufferRanges::all().find(address);
  if (range.end == 0)
    return fmt::format("{} touches memory of no buffer: {}", start, access_text(grid, call));
  return fmt::format("{} touches memory of no buffer: {}, at byte {} from a buffer of {} bytes on", start,
                     access_text(grid, call), address - range.begin, range.end - range.begin);
}

std::string describe_misaligned(const Grid& grid, const AccessCall& call, size_t alignment) {
  return fmt::format("{}{} uses a misaligned address: {}, which needs a multiple of {} and gets one of {}",
                     start_text(grid), thread_text(grid.running()), access_text(grid, call), alignment,
                     size_t{1} << std::countr_zero(reinterpret_cast<uintptr_t>(call.address)));
}

std::string describe_unwritten(const Grid& grid, const AccessCall& call) {
  return fmt::format("{}{} reads shared memory that nobody wrote: {}, from byte {} on", start_text(grid),
                     thread_text(grid.running()), access_text(grid, call),
                     grid.running().block.shared.offset_of(call.address));
}

std::string describe_race(const Grid& grid, const AccessCall& call, const SharedMemory::Use& earlier) {
  const auto& threads = grid.running().block.threads;
  const Thread& other = *threads[earlier.thread - threads.front()->number];
  return fmt::format(
      "{}{} races in shared memory: {}, from byte {} on, with {} of warp {} lane {}{} and no barrier between "
      "them",
      start_text(grid), thread_text(grid.running()), access_text(grid, call),
      grid.running().block.shared.offset_of(call.address), kAccesses[static_cast<size_t>(earlier.access)],
      other.lane / 32, other.lane % 32,
      earlier.site == nullptr ? "" : fmt::format(" at {}", earlier.site->place));
}

std::string describe_end(const Grid& grid, const Thread& waiting) {
  return fmt::format("{}{} ends, but {} waits for it at {}", start_text(grid), thread_text(grid.running()),
                     thread_text(waiting), place_text(grid, waiting));
}

std::string describe_deadlock(const Grid& grid) {
  return fmt::format("{}deadlock: nobody can run: {}", start_text(grid), everyone(grid));
}

std::string describe_no_progress(const Grid& grid) {
  return fmt::format("{}no progress in {} steps, {} of {} blocks not started: {}", start_text(grid),
                     grid.options().max_idle_steps, grid.blocks_left(), grid.launch().blocks, everyone(grid));
}

}  // namespace coppice::simt
