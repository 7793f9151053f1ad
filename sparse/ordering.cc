// Orders by uses (see ordering.h).
#include "sparse/ordering.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "gpu/buffer.h"
#include "gpu/buffer_ranges.h"
#include "sparse/temporary_buffer.h"
#include "sparse/tree_storage.h"

namespace coppice {
namespace {

using Kind = ResourceUse::Kind;

ResourceUse use_of_topology(const LaunchUse& use) {
  ResourceUse r;
  r.kind = Kind::kTopology, r.object = use.tree, r.name = use.name;
  r.reads = true;
  r.writes = use.does(effect::kChangesTopology);
  return r;
}

// Temporaries of a node are pieces of one thing: those that share bytes are ordered as one field is.
ResourceUse use_of_field(const LaunchUse& use) {
  ResourceUse field;
  field.object = use.tree, field.field = use.field, field.name = use.name;
  field.reads = use.does(effect::kReads | effect::kTests);
  field.writes = use.does(effect::kStores | effect::kChanges | effect::kAppends | effect::kDeactivates);
  field.adds = use.does(effect::kAdds);
  if (use.field == kNoField) return field;
  const TreeLayout& tree = static_cast<const TreeStorage*>(use.tree)->layout();
  const TreeField& named = tree.field(use.field);
  if (!named.is_temporary()) return field;
  const std::vector<uint32_t>& all = tree.node(named.node).fields;
  field.field = *std::ranges::find_if(all, [&](uint32_t f) { return tree.field(f).is_temporary(); });
  field.begin = named.begin, field.end = named.end;
  return field;
}

// A pointer is of the buffer that it points into, or to whose end it points where no other begins there. One
// into a tree leads to the values of fields.
ResourceUse use_of_memory(const void* address, bool reads, bool writes, const std::string& name) {
  ResourceUse r;
  r.kind = Kind::kAnyMemory, r.reads = reads, r.writes = writes, r.name = name;
  const auto at = reinterpret_cast<uintptr_t>(address);
  for (const uintptr_t inside : {at, at - 1}) {
    const BufferRange range = BufferRanges::all().find(inside);
    if (inside < range.begin || inside >= range.most) continue;
    if (range.has_fields) return r;
    r.kind = Kind::kMemory, r.object = reinterpret_cast<const void*>(range.begin);
    return r;
  }
  return r;
}

// Returns the temporary that an address among the arguments, or that of the count, is of; null where it is of
// none.
const Buffer* temporary_at(const Launch& launch, uint32_t offset) {
  for (const TemporaryArgument& t : launch.temporaries)
    if (t.offset == offset) return t.buffer.get();
  return nullptr;
}

ResourceUse use_of_pointer(const LaunchUse& use, const Launch& launch) {
  const bool reads = use.does(effect::kReads), writes = use.does(~effect::kReads);
  if (use.argument == 0) {
    ResourceUse any;
    any.kind = Kind::kAnyMemory, any.reads = reads, any.writes = writes, any.name = use.name;
    return any;
  }
  if (const Buffer* const temporary = temporary_at(launch, use.argument_offset))
    return use_of_buffer(*temporary, reads, writes);
  const void* address = nullptr;
  std::memcpy(&address, launch.block.arguments + use.argument_offset, sizeof address);
  return use_of_memory(address, reads, writes, use.name);
}

bool is_same_place(const ResourceUse& a, const ResourceUse& b) {
  // The cells of a tree and its lists are no memory that a kernel has an address of; its values are.
  if (a.kind == Kind::kAnyMemory) return b.kind != Kind::kTopology;
  if (b.kind == Kind::kAnyMemory) return a.kind != Kind::kTopology;
  if (a.kind != b.kind || a.object != b.object || a.field != b.field) return false;
  return a.begin < b.end && b.begin < a.end;
}

bool is_in_conflict(const ResourceUse& a, const ResourceUse& b) {
  if (!is_same_place(a, b)) return false;
  const auto only_reads = [](const ResourceUse& u) { return !u.writes && !u.adds; };
  const auto only_adds = [](const ResourceUse& u) { return u.adds && !u.writes && !u.reads; };
  return !(only_reads(a) && only_reads(b)) && !(only_adds(a) && only_adds(b));
}

}  // namespace

ResourceUses resources_of(const Launch& launch) {
  ResourceUses all;
  if (!launch.uses) {
    ResourceUse anything;
    anything.kind = Kind::kAnyMemory, anything.reads = anything.writes = true, anything.name = "any memory";
    return {anything};
  }
  for (const LaunchUse& use : launch.uses->all) {
    if (use.kind == LaunchUse::Kind::kMemory) {
      if (use.effects != 0) all.push_back(use_of_pointer(use, launch));
      continue;
    }
    all.push_back(use_of_topology(use));
    if (use.kind == LaunchUse::Kind::kField) all.push_back(use_of_field(use));
  }
  if (launch.uses->reads_count) {
    const Buffer* const temporary = temporary_at(launch, TemporaryArgument::kCount);
    all.push_back(temporary != nullptr
                      ? use_of_buffer(*temporary, true, false)
                      : use_of_memory(launch.block.count, true, false, "the count of its range"));
  }
  return all;
}

ResourceUse use_of_buffer(const Buffer& buffer, bool reads, bool writes) {
  ResourceUse r;
  r.kind = Kind::kMemory, r.object = buffer.data(), r.reads = reads, r.writes = writes;
  const TemporaryBuffer* const temporary = as_temporary(buffer);
  if (temporary != nullptr && temporary->is_placed()) {
    r.object = temporary->arena()->data();
    r.begin = temporary->offset(), r.end = r.begin + buffer.size_bytes();
  }
  r.name =
      fmt::format("a {} of {} bytes", temporary == nullptr ? "buffer" : "temporary", buffer.size_bytes());
  return r;
}

void add_uses(ResourceUses& whole, const ResourceUses& uses) {
  for (const ResourceUse& use : uses) {
    const auto same = std::find_if(whole.begin(), whole.end(), [&](const ResourceUse& one) {
      return one.kind == use.kind && one.object == use.object && one.field == use.field &&
             one.begin == use.begin && one.end == use.end;
    });
    if (same == whole.end()) {
      whole.push_back(use);
      continue;
    }
    same->reads |= use.reads, same->writes |= use.writes, same->adds |= use.adds;
  }
}

const ResourceUse* conflict(const ResourceUses& a, const ResourceUses& b) {
  for (const ResourceUse& one : a) {
    for (const ResourceUse& other : b)
      if (is_in_conflict(one, other)) return &one;
  }
  return nullptr;
}

Ancestors ancestors_of(const Predecessors& order) {
  Ancestors before(order.size());
  for (uint32_t op = 0; op < order.size(); ++op) {
    for (const uint32_t earlier : order[op]) before.add(op, earlier);
  }
  return before;
}

Predecessors order_by_uses(std::span<const ResourceUses> operations) {
  Predecessors order(operations.size());
  Ancestors before(operations.size());
  for (uint32_t op = 0; op < operations.size(); ++op) {
    // The nearest come first, so that what they imply is known.
    for (uint32_t earlier = op; earlier-- > 0;) {
      if (before.has(op, earlier) || conflict(operations[earlier], operations[op]) == nullptr) continue;
      order[op].push_back(earlier);
      before.add(op, earlier);
    }
    std::reverse(order[op].begin(), order[op].end());
  }
  return order;
}

std::optional<std::pair<uint32_t, uint32_t>> find_unordered(std::span<const ResourceUses> operations,
                                                            const Predecessors& order) {
  const Ancestors before = ancestors_of(order);
  for (uint32_t op = 0; op < operations.size(); ++op) {
    for (uint32_t earlier = 0; earlier < op; ++earlier) {
      if (!before.has(op, earlier) && conflict(operations[earlier], operations[op]) != nullptr)
        return std::pair(earlier, op);
    }
  }
  return std::nullopt;
}

}  // namespace coppice
