// Describes trees' memory for panels.
#pragma once
#include <string>

#include "apps/viewer/reports.h"
#include "sparse/memory_report.h"

namespace coppice::viewer {

TreeMemory tree_memory(std::string name, const MemoryReport& report);

// Continues the histories of `before` in `now`: trees and nodes are known by their order and names.
void add_to_history(const MemoryState& before, MemoryState& now);

}  // namespace coppice::viewer
