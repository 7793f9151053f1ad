// Tables of the memory that launches may reach by pointers (see memory_uses.h).
#include "sparse/memory_uses.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>

#include "gpu/buffer_ranges.h"
#include "sparse/tree_storage.h"

namespace coppice {

using device::LevelLayout;
using device::NodeKind;

namespace {

constexpr uint32_t kByPointer = effect::kReads | effect::kStores | effect::kChanges;

MemoryUse whole(uint64_t begin, uint64_t bytes, uint32_t effects) {
  return {begin, begin + bytes, std::max<uint64_t>(bytes, 1), 0, bytes, effects};
}

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
      return uses.push_back(whole(range.begin, range.most - range.begin, effects));
    }
    head.outside |= effects;
  }

  std::string bytes() const {
    std::string text(reinterpret_cast<const char*>(&head), sizeof head);
    text.append(reinterpret_cast<const char*>(uses.data()), uses.size() * sizeof(MemoryUse));
    return text.append(reinterpret_cast<const char*>(buffers.data()), buffers.size() * sizeof(KnownBuffer));
  }
};

uint64_t word_at(std::span<const unsigned char> arguments, size_t at) {
  uint64_t word = 0;
  std::memcpy(&word, arguments.data() + at, sizeof word);
  return word;
}

// Returns whether a use of its own says what is done to the memory that the word of the arguments leads
// to.
bool is_told(const LaunchUses& uses, size_t at) {
  return std::any_of(uses.all.begin(), uses.all.end(), [at](const LaunchUse& use) {
    return use.kind == LaunchUse::Kind::kMemory && use.argument != 0 && use.argument_offset == at;
  });
}

// Adds an argument's own address, or every word of the arguments that may be one: structs have them, too.
void add_memory(Table& table, const LaunchUses& uses, const LaunchUse& use,
                std::span<const unsigned char> arguments) {
  if (use.argument != 0) return table.add_address(word_at(arguments, use.argument_offset), use.effects);
  table.head.behind_memory |= use.effects;
  table.head.outside |= use.effects;
  for (size_t at = 0; at + sizeof(uint64_t) <= arguments.size(); at += sizeof(uint64_t)) {
    if (is_told(uses, at)) continue;
    const BufferRange range = BufferRanges::all().find(word_at(arguments, at));
    if (range.begin != 0) table.add_address(word_at(arguments, at), use.effects);
  }
}

}  // namespace

MemoryUse TreeStorage::memory_of(uint32_t field) const {
  const FieldDescription& f = fields_[field];
  const device::NodeLayout& layout = layouts_[f.node];
  MemoryUse use = whole(reinterpret_cast<uint64_t>(root_->data()), root_->reserved_bytes(), 0);
  use.first = layout.root_offset, use.last = layout.root_offset;
  for (uint32_t l = 0; l < layout.depth; ++l) {
    const LevelLayout& level = layout.level[l];
    const bool is_last = l + 1 == layout.depth;
    if (level.kind == NodeKind::kPointer || level.kind == NodeKind::kDynamic) {
      const IntrusivePtr<Buffer> cells = storages_to_be()[level.allocator].cells;
      use = whole(reinterpret_cast<uint64_t>(cells->data()), cells->reserved_bytes(), 0);
      use.period = level.cell_bytes, use.first = use.last = 0;
      if (!is_last) use.first = use.last = level.child_offset;
    } else if (!is_last) {
      use.first += level.cell_offset + level.child_offset;
      use.last +=
          level.cell_offset + level.child_offset + (device::num_cells_of(level) - 1) * level.cell_bytes;
    }
  }
  const bool is_cell = nodes_[f.node].kind == NodeKind::kPointer;
  use.first += f.offset;
  use.last += f.offset + (is_cell ? 0 : (nodes_[f.node].num_cells - 1) * uint64_t{f.stride}) + f.bytes;
  return use;
}

MemoryUse TreeStorage::zeros() const {
  return whole(reinterpret_cast<uint64_t>(ambient_->data()), ambient_->size_bytes(), effect::kReads);
}

std::vector<KnownBuffer> TreeStorage::buffers() const {
  std::vector<KnownBuffer> known;
  const auto add = [&](const IntrusivePtr<Buffer>& buffer) {
    if (!buffer) return;
    const auto begin = reinterpret_cast<uint64_t>(buffer->data());
    known.push_back({begin, begin + buffer->reserved_bytes(), 1});
  };
  for (const auto& buffer : {state_, root_, ambient_, device_layouts_, device_below_, counts_}) add(buffer);
  for (const AllocatorStorage& a : storages_to_be()) {
    add(a.cells), add(a.free_list), add(a.recycled_list);
  }
  return known;
}

std::string TreeStorage::name_of_address(uint64_t address) const {
  for (uint32_t field = 0; field < fields_.size(); ++field) {
    const MemoryUse use = memory_of(field);
    if (address < use.begin || address >= use.end) continue;
    const uint64_t in_period = (address - use.begin) % use.period;
    if (in_period >= use.first && in_period < use.last)
      return fmt::format("'{}' on {}", fields_[field].name, path(fields_[field].node));
  }
  for (const KnownBuffer& buffer : buffers()) {
    if (address >= buffer.begin && address < buffer.end)
      return fmt::format("the tree '{}', beside its values", options_.name);
  }
  return "";
}

namespace {

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
                                                         std::span<TreeStorage* const> trees) {
  Table table;
  for (const LaunchUse& use : uses.all) {
    if (use.kind == LaunchUse::Kind::kMemory) add_memory(table, uses, use, arguments);
    if (use.kind != LaunchUse::Kind::kField || !use.does(kByPointer)) continue;
    table.uses.push_back(static_cast<TreeStorage*>(use.tree)->memory_of(use.field));
    table.uses.back().effects = use.effects & kByPointer;
  }
  const auto sink = reinterpret_cast<uint64_t>(&device.context()) + offsetof(DeviceContext, sink);
  table.uses.push_back(whole(sink, kSinkBytes, kByPointer));  // of accesses that were refused
  for (const TreeStorage* tree : trees) {
    table.uses.push_back(tree->zeros());
    for (const KnownBuffer& buffer : tree->buffers()) table.buffers.push_back(buffer);
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

std::string name_of_address(uint64_t address, std::span<TreeStorage* const> trees) {
  for (const TreeStorage* tree : trees) {
    if (std::string name = tree->name_of_address(address); !name.empty()) return name;
  }
  const BufferRange range = BufferRanges::all().find(address);
  if (range.begin != 0 && address < range.most)
    return fmt::format("a buffer of {} bytes, from byte {} on", range.most - range.begin,
                       address - range.begin);
  return "memory of no buffer";
}

}  // namespace coppice
