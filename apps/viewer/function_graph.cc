// Functions as graphs (see function_graph.h).
#include "apps/viewer/function_graph.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sparse/bound_launch.h"

namespace coppice::viewer {

FunctionGraph function_graph(const executor::LoadedFunction& f) {
  FunctionGraph graph;
  graph.name = '@' + f.name;
  for (const executor::LoadedOperation& op : f.operations) {
    GraphOperation shown;
    shown.text = shown.event = op.info->name;
    const bool is_launch = op.info->name == "sparse.launch";
    if (is_launch) shown.text = shown.event = op.attributes[0].binding->get<BoundLaunch>().name();
    for (const uint32_t r : op.arguments) {
      const uint32_t producer = f.registers[r].producer;
      const bool is_new = std::find(shown.waits.begin(), shown.waits.end(), producer) == shown.waits.end();
      if (producer != executor::kNoOperation && is_new) shown.waits.push_back(producer);
    }
    graph.operations.push_back(std::move(shown));
  }
  return graph;
}

std::vector<uint32_t> critical_path(const std::vector<GraphOperation>& operations) {
  const size_t n = operations.size();
  std::vector<std::vector<uint32_t>> users(n);
  std::vector<size_t> missing(n);
  std::vector<uint32_t> ready, before(n, executor::kNoOperation);
  // Time and number of operations of the longest way up to and with each.
  std::vector<std::pair<double, int>> longest(n);
  for (uint32_t op = 0; op < n; ++op) {
    missing[op] = operations[op].waits.size();
    for (const uint32_t w : operations[op].waits) users[w].push_back(op);
    if (missing[op] == 0) ready.push_back(op);
  }
  uint32_t last = executor::kNoOperation;
  for (size_t i = 0; i < ready.size(); ++i) {
    const uint32_t op = ready[i];
    std::pair<double, int> most{0, 0};
    for (const uint32_t w : operations[op].waits) {
      if (longest[w] > most) most = longest[w], before[op] = w;
    }
    longest[op] = {most.first + operations[op].ms, most.second + 1};
    if (last == executor::kNoOperation || longest[op] > longest[last]) last = op;
    for (const uint32_t user : users[op])
      if (--missing[user] == 0) ready.push_back(user);
  }
  std::vector<uint32_t> path;
  for (; last != executor::kNoOperation; last = before[last]) path.push_back(last);
  std::reverse(path.begin(), path.end());
  return path;
}

void measure(FunctionGraph& graph, const std::vector<Timing>& timings) {
  for (GraphOperation& op : graph.operations) {
    op.ms = 0, op.is_critical = false;
    const Timing* outermost = nullptr;
    for (const Timing& t : timings) {
      const bool is_one = t.place == TracePlace::kStream && t.name == op.event;
      if (is_one && (outermost == nullptr || t.depth < outermost->depth)) outermost = &t;
    }
    if (outermost != nullptr && outermost->calls > 0) op.ms = outermost->mean_ms / outermost->calls;
  }
  graph.critical_ms = 0;
  for (const uint32_t op : critical_path(graph.operations)) {
    graph.operations[op].is_critical = true;
    graph.critical_ms += graph.operations[op].ms;
  }
}

}  // namespace coppice::viewer
