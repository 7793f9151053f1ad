// Graphs of additions as oneTBB's flow graph.
#pragma once
#include <tbb/flow_graph.h>
#include <tbb/task_arena.h>

#include <memory>
#include <vector>

#include "benchmarks/executor_cases.h"

namespace coppice::bench {

// shape[i]: what node i adds up, 1 or 2 earlier nodes; none: it starts.
using GraphShape = std::vector<std::vector<uint32_t>>;

// Values of nodes in an array of plain integers; each node a task.
struct FlowGraph {
  explicit FlowGraph(const GraphShape& shape, int threads = 1) : arena(threads), values(shape.size()) {
    arena.execute([&] {
      graph = std::make_unique<tbb::flow::graph>();
      for (uint32_t i = 0; i < shape.size(); ++i) {
        const uint32_t a = shape[i].empty() ? 0 : shape[i].front(),
                       b = shape[i].empty() ? 0 : shape[i].back();
        nodes.push_back(std::make_unique<tbb::flow::continue_node<tbb::flow::continue_msg>>(
            *graph, [this, i, a, b](const tbb::flow::continue_msg& m) {
              values[i] = values[a] + values[b];
              return m;
            }));
        if (shape[i].empty()) starts.push_back(i);
        for (const uint32_t from : shape[i]) tbb::flow::make_edge(*nodes[from], *nodes[i]);
      }
    });
  }
  void run() {
    arena.execute([&] {
      for (const uint32_t i : starts) nodes[i]->try_put(tbb::flow::continue_msg());
      graph->wait_for_all();
    });
    keep(values.back());
  }
  tbb::task_arena arena;
  std::vector<int32_t> values;
  std::unique_ptr<tbb::flow::graph> graph;
  std::vector<std::unique_ptr<tbb::flow::continue_node<tbb::flow::continue_msg>>> nodes;
  std::vector<uint32_t> starts;
};

}  // namespace coppice::bench
