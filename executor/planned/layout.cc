// Layouts: a plan for each function, with one buffer for what its bodies need at each operation.
#include "executor/planned/layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/check.h"
#include "executor/host_bytes.h"
#include "executor/plan/exact.h"
#include "executor/plan/groups.h"
#include "executor/plan/verify.h"

namespace coppice::executor {
namespace {

constexpr int64_t kAlignment = HostMemory::kAlignment;
// Sizes may change in any run, so that a plan must not take longer than some runs. A node of the search costs
// as much as there are buffers.
constexpr uint64_t kMostNodes = 20'000, kMostNodesOfBuffers = 400'000;

uint64_t num_buffers(const FunctionPlan& function) {
  uint64_t n = function.buffers.size();
  for (const PlannedOperation& op : function.operations)
    for (const auto& body : op.bodies) n += num_buffers(*body);
  return n;
}

// One function's part of the layout; offsets are its own until place() knows where it begins.
class Part {
 public:
  Part(const FunctionPlan& function, const std::vector<size_t>& sizes, Placement placement,
       uint64_t most_nodes, Layout& layout)
      : function_(function), sizes_(sizes) {
    for (const ArenaBuffer& buffer : function.buffers) {
      plan::Buffer to{.id = fmt::format("%{}", buffer.name), .begin = buffer.begin, .end = buffer.end};
      to.alignment = kAlignment;
      for (const uint32_t size : buffer.sizes) {
        to.bytes = std::max(to.bytes, static_cast<int64_t>(sizes[size]));
        if (sizes[size] > 0) ++layout.num_values, layout.naive_bytes += sizes[size];
      }
      std::vector<Part> bodies;
      if (buffer.body_of >= 0) {
        to.id = buffer.name;
        for (const auto& body : function.operations[static_cast<size_t>(buffer.body_of)].bodies) {
          bodies.emplace_back(*body, sizes, placement, most_nodes, layout);
          to.bytes = std::max(to.bytes, bodies.back().plan.bytes);
        }
      }
      bodies_.push_back(std::move(bodies));
      if (to.bytes == 0) {
        buffer_at_.push_back(-1);
        continue;
      }
      buffer_at_.push_back(static_cast<int64_t>(problem.buffers.size()));
      problem.buffers.push_back(std::move(to));
    }
    if (placement == Placement::kGroups) {
      plan = plan::storage_groups(problem).plan;
      least_bytes = plan::lower_bound(problem);
    } else {
      plan::Found found = plan::search_plan(problem, {.most_nodes = most_nodes});
      plan = std::move(found.plan), least_bytes = found.lower_bound;
    }
#ifdef COPPICE_DEBUG
    const std::optional<std::string> fault = plan::find_fault(problem, plan);
    COPPICE_CHECK(!fault, "the layout of @{}: {}", function.function->name, *fault);
#endif
  }

  void place(size_t begin, Layout& layout) const {
    for (size_t i = 0; i < function_.buffers.size(); ++i) {
      if (buffer_at_[i] < 0) continue;
      const size_t at = begin + static_cast<size_t>(plan.offsets[static_cast<size_t>(buffer_at_[i])]);
      for (const uint32_t size : function_.buffers[i].sizes) layout.places[size] = {at, sizes_[size]};
      for (const Part& body : bodies_[i]) body.place(at, layout);
    }
  }

  plan::Problem problem;
  plan::Plan plan;
  int64_t least_bytes = 0;

 private:
  const FunctionPlan& function_;
  const std::vector<size_t>& sizes_;
  std::vector<int64_t> buffer_at_;  // in the problem; -1: nothing is needed
  std::vector<std::vector<Part>> bodies_;
};

}  // namespace

Layout lay_out(const FunctionPlan& function, const std::vector<size_t>& sizes,
               const std::vector<uint32_t>& outputs, Placement placement) {
  Layout layout;
  layout.places.resize(sizes.size());
  const uint64_t n = std::max<uint64_t>(num_buffers(function), 1);
  Part part(function, sizes, placement, std::min(kMostNodes, kMostNodesOfBuffers / n), layout);
  part.place(0, layout);
  layout.arena_bytes = static_cast<size_t>(part.plan.bytes);
  layout.least_bytes = static_cast<size_t>(part.least_bytes);
  layout.problem = std::move(part.problem), layout.plan = std::move(part.plan);
  // All outputs are there at the end: one lies behind the other.
  for (const uint32_t size : outputs) {
    if (sizes[size] == 0) continue;
    layout.places[size] = {layout.output_bytes, sizes[size]};
    const auto end = static_cast<int64_t>(layout.output_bytes + sizes[size]);
    layout.output_bytes = static_cast<size_t>(plan::align_up(end, kAlignment));
  }
  return layout;
}

}  // namespace coppice::executor
