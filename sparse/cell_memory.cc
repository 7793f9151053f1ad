// Plans of temporary fields (see cell_memory.h).
#include "sparse/cell_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/check.h"
#include "executor/plan/svg.h"
#include "executor/plan/verify.h"
#include "sparse/node_sizes.h"
#include "sparse/temporary_places.h"
#include "sparse/tree_storage.h"

namespace coppice {
namespace {

// A node has sixteen fields at most, so that the search is done with far fewer steps.
constexpr uint64_t kMostNodes = 50'000;

// Says when any of the fields is needed whose stages are not all there are: those that are needed in all have
// this time.
struct Span {
  int64_t begin = 0, end = 1;
};
Span span_of(const std::vector<const FieldDescription*>& temporaries) {
  std::optional<Span> span;
  for (const FieldDescription* f : temporaries) {
    if (f->stages == Stages{}) continue;
    const int64_t begin = f->stages->first, end = int64_t{f->stages->last} + 1;
    if (!span) span = {begin, end};
    span = {std::min(span->begin, begin), std::max(span->end, end)};
  }
  return span.value_or(Span{});
}

// Returns "24", or "10.5" where bytes of an array's cells do not come out even.
std::string per_cell(int64_t bytes, uint64_t cells) {
  const auto n = static_cast<int64_t>(cells);
  return bytes % n == 0 ? fmt::format("{}", bytes / n)
                        : fmt::format("{:.1f}", static_cast<double>(bytes) / static_cast<double>(n));
}

}  // namespace

CellMemory plan_cell_memory(const std::vector<const FieldDescription*>& temporaries, uint64_t cells) {
  CellMemory memory{.cells = cells};
  const Span span = span_of(temporaries);
  for (const FieldDescription* f : temporaries) {
    const bool is_always = f->stages == Stages{};
    plan::Buffer& b = memory.problem.buffers.emplace_back();
    b.id = f->name;
    b.begin = is_always ? span.begin : f->stages->first;
    b.end = is_always ? span.end : int64_t{f->stages->last} + 1;
    b.bytes = static_cast<int64_t>(f->bytes * cells);
    b.alignment = static_cast<int64_t>(array_alignment(f->bytes * cells, f->alignment, cells));
    memory.alignment = std::max(memory.alignment, b.alignment);
    memory.fields.push_back(f->name);
  }
  memory.plan = plan_temporaries(memory.problem, kMostNodes);
  memory.least_bytes = plan::lower_bound(memory.problem);
  const auto fault = plan::find_fault(memory.problem, memory.plan);
  COPPICE_CHECK(!fault, "{}", *fault);
  return memory;
}

CellMemory memory_of(const Node& node) {
  node.storage().freeze();
  return node.storage().layout().node(node.id()).temporaries;
}

std::string text_of(const CellMemory& memory) {
  if (memory.is_empty()) return "";
  const size_t n = memory.problem.buffers.size();
  const auto in_cell = [&](int64_t bytes) { return per_cell(bytes, memory.cells); };
  const std::string rest =
      plan::bound_text(memory.plan.bytes == memory.least_bytes, in_cell(memory.least_bytes));
  return fmt::format("{} temporar{} of {} bytes per cell together in {}; {}", n, n == 1 ? "y" : "ies",
                     in_cell(memory.naive_bytes()), in_cell(memory.plan.bytes), rest);
}

std::string memory_picture(const Node& node) {
  const CellMemory memory = memory_of(node);
  return plan::svg_of(memory.problem, memory.plan);
}

}  // namespace coppice
