// Loads step.graph.
#include "apps/mpm/step_graph.h"

#include "executor/builtin_operations.h"
#include "executor/text.h"
#include "mpm_graphs.h"
#include "sparse/operations.h"

namespace coppice::mpm {
namespace {

executor::Registry make_registry() {
  executor::Registry registry;
  executor::add_builtin_operations(registry);
  add_sparse_operations(registry);
  return registry;
}

}  // namespace

const executor::LoadedModule& solver_functions() {
  static const executor::Registry registry = make_registry();
  static const IntrusivePtr<executor::LoadedModule> module = executor::LoadedModule::load(
      executor::parse(embedded::mpm_graphs("step.graph"), "step.graph"), registry);
  return *module;
}

}  // namespace coppice::mpm
