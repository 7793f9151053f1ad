// Tables of the memory that launches may reach by pointers (see memory_uses.h).
#include "sparse/memory_uses.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>

#include "gpu/buffer_ranges.h"
#include "sparse/temporary_buffer.h"
#include "sparse/tree_addresses.h"
#include "sparse/tree_storage.h"

namespace coppice {

namespace {

constexpr uint32_t kByPointer = effect::kReads | effect::kStores | effect::kChanges;

struct Table {
  std::vector<MemoryUse> uses;
  std::vector<KnownBuffer> buffers;
  MemoryUses head{};

  // Adds what an argument leads to: a buffer that holds the address, or one that ends there where none
  // begins.
  void add_address(uint64_t address, uint32_t effects) {
    if (address == 0) return;
    for (const uint64_t at : {address, address - 1}) {
      const BufferRange range = BufferRanges::all().find(at);
      if (range.begin == 0 || at >= range.most) continue;
      return uses.push_back(whole_memory(range.begin, range.most - range.begin, effects));
    }
    head.outside |= effects;
  }

  std::string bytes() const {
    std::string text(reinterpret_cast<const char*>(&head), sizeof head);
    text.append(reinterpret_cast<const char*>(uses.data()), uses.size() * sizeof(MemoryUse));
    return text.append(reinterpret_cast<const char*>(buffers.data()), buffers.size() * sizeof(KnownBuffer));
  }
};

struct Arguments {
  std::span<const unsigned char> bytes;
  std::span<const TemporaryArgument> temporaries;

  uint64_t word_at(size_t at) const {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    return word;
  }
  // Adds what the word there leads to. Of an arena it is one temporary alone.
  void add_to(Table& table, size_t at, uint32_t effects) const {
    for (const TemporaryArgument& t : temporaries) {
      if (t.offset != at) continue;
      const std::byte* const place = place_of(*t.buffer);
      const auto begin = reinterpret_cast<uint64_t>(place != nullptr ? place : t.buffer->data());
      return table.uses.push_back(whole_memory(begin, t.buffer->size_bytes(), effects));
    }
    table.add_address(word_at(at), effects);
  }
};

// Returns whether a use of its own says what is done to the memory that the word of the arguments leads
// to.
bool is_told(const LaunchUses& uses, size_t at) {
  return std::any_of(uses.all.begin(), uses.all.end(), [at](const LaunchUse& use) {
    return use.kind == LaunchUse::Kind::kMemory && use.argument != 0 && use.argument_offset == at;
  });
}

// Adds an argument's own address, or every word of the arguments that may be one: structs have them, too.
void add_memory(Table& table, const LaunchUses& uses, const LaunchUse& use, const Arguments& arguments) {
  if (use.argument != 0) return arguments.add_to(table, use.argument_offset, use.effects);
  table.head.behind_memory |= use.effects;
  table.head.outside |= use.effects;
  for (size_t at = 0; at + sizeof(uint64_t) <= arguments.bytes.size(); at += sizeof(uint64_t)) {
    if (is_told(uses, at)) continue;
    const BufferRange range = BufferRanges::all().find(arguments.word_at(at));
    if (range.begin != 0) arguments.add_to(table, at, use.effects);
  }
}

// The arena is nothing that the author of the kernel knows.
std::string name_in_temporaries(uint64_t address, const BufferRange& arena,
                                std::span<const TemporaryArgument> temporaries) {
  std::string name;
  uint64_t nearest = ~uint64_t{0};
  for (const TemporaryArgument& t : temporaries) {
    const auto begin = reinterpret_cast<uint64_t>(place_of(*t.buffer));
    if (begin < arena.begin || begin >= arena.most) continue;
    const uint64_t end = begin + t.buffer->size_bytes();
    const uint64_t distance = address < begin ? begin - address : address < end ? 0 : address - end;
    if (distance >= nearest) continue;
    nearest = distance;
    name = fmt::format("a temporary of {} bytes, from byte {} on", t.buffer->size_bytes(),
                       static_cast<int64_t>(address - begin));
  }
  return name;
}

struct KnownTables {
  std::mutex mutex;
  std::set<uintptr_t> addresses;
  static KnownTables& all() {
    static auto* const tables = new KnownTables;  // tables may outlive every static object
    return *tables;
  }
};

}  // namespace

MemoryUseTable::MemoryUseTable(IntrusivePtr<Buffer> given) : buffer(std::move(given)) {
  const std::lock_guard lock(KnownTables::all().mutex);
  KnownTables::all().addresses.insert(reinterpret_cast<uintptr_t>(buffer->data()));
}
MemoryUseTable::~MemoryUseTable() {
  const std::lock_guard lock(KnownTables::all().mutex);
  KnownTables::all().addresses.erase(reinterpret_cast<uintptr_t>(buffer->data()));
}
bool MemoryUseTable::is_one(uintptr_t address) {
  const std::lock_guard lock(KnownTables::all().mutex);
  return KnownTables::all().addresses.contains(address);
}

IntrusivePtr<MemoryUseTable> MemoryUseTables::wait_table(Device& device, const LaunchUses& uses,
                                                         std::span<const unsigned char> arguments,
                                                         std::span<const TemporaryArgument> temporaries,
                                                         std::span<TreeStorage* const> trees) {
  Table table;
  const Arguments given{arguments, temporaries};
  for (const LaunchUse& use : uses.all) {
    if (use.kind == LaunchUse::Kind::kMemory) add_memory(table, uses, use, given);
    if (use.kind != LaunchUse::Kind::kField || !use.does(kByPointer)) continue;
    table.uses.push_back(memory_of_field(static_cast<TreeStorage*>(use.tree)->memory(), use.field));
    table.uses.back().effects = use.effects & kByPointer;
  }
  const auto sink = reinterpret_cast<uint64_t>(&device.context()) + offsetof(DeviceContext, sink);
  table.uses.push_back(whole_memory(sink, kSinkBytes, kByPointer));  // of accesses that were refused
  for (const TreeStorage* tree : trees) {
    table.uses.push_back(zeros_of(tree->memory()));
    for (const KnownBuffer& buffer : buffers_of(tree->memory())) table.buffers.push_back(buffer);
  }
  for (const BufferRange& range : BufferRanges::all().list()) {
    if (MemoryUseTable::is_one(range.begin)) continue;
    const bool is_listed = std::any_of(table.buffers.begin(), table.buffers.end(),
                                       [&](const KnownBuffer& b) { return b.begin == range.begin; });
    if (!is_listed) table.buffers.push_back({range.begin, range.most, 0});
  }
  table.head.num_uses = static_cast<uint32_t>(table.uses.size());
  table.head.num_buffers = static_cast<uint32_t>(table.buffers.size());
  std::string bytes = table.bytes();
  if (const auto found = tables_.find(bytes); found != tables_.end()) return found->second;
  if (tables_.size() >= kMostTables) tables_.clear();  // launches keep those that they need
  auto made = make_intrusive<MemoryUseTable>(wait_device_copy(device, bytes.data(), bytes.size()));
  tables_.emplace(std::move(bytes), made);
  return made;
}

std::string name_of_address(uint64_t address, std::span<TreeStorage* const> trees,
                            std::span<const TemporaryArgument> temporaries) {
  for (const TreeStorage* tree : trees) {
    if (std::string name = name_in_tree(tree->memory(), address); !name.empty()) return name;
  }
  const BufferRange range = BufferRanges::all().find(address);
  if (range.begin == 0 || address >= range.most) return "memory of no buffer";
  if (std::string name = name_in_temporaries(address, range, temporaries); !name.empty()) return name;
  return fmt::format("a buffer of {} bytes, from byte {} on", range.most - range.begin,
                     address - range.begin);
}

}  // namespace coppice
