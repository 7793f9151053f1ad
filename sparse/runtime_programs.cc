// Programs of the runtime's own kernels (see runtime_programs.h).
#include "sparse/runtime_programs.h"

#include "loop_lists.kernels.h"
#include "runtime_collection.kernels.h"

namespace coppice {

using device::AllocatorState;
using device::LoopElement;

namespace {

// The runtime reaches all of a tree by pointers, which is not what the checks are for.
CodegenOptions without_checks() {
  CodegenOptions options = codegen_options();
  options.checks = false;
  return options;
}

void compile_lists(Program& program, device::TreeState* state) {
  const device::NodeLayout* layout = nullptr;
  uint32_t* words = nullptr;
  uint64_t* counts = nullptr;
  LoopElement* elements = nullptr;
  const uint32_t* const begins = nullptr;
  const CoppiceSlots slots{};
  program.compile(select_live, range(1), state, CoppiceSelection{}, static_cast<void*>(nullptr), words,
                  counts);
  program.compile(count_slots, range(1), slots, words);
  program.compile(write_slots, range(1), slots, begins, words);
  program.compile(write_elements, range(1), static_cast<const device::TreeState*>(state), slots, begins,
                  layout, layout, elements);
  program.compile(flag_elements, range(1), state, layout, 0, words, uint64_t{1}, words);
  program.compile(fill_elements, range(1), state, layout, 0, words, uint64_t{1}, words, elements);
  program.compile(fill_neighbours, range(1), state, layout, elements, layout, words);
}

void compile_collection(Program& program, device::TreeState* state) {
  const device::NodeLayout* layout = nullptr;
  uint64_t* counts = nullptr;
  AllocatorState* a = nullptr;
  program.compile(recycle_all_cells, range(1), state, 0u, 1u);
  program.compile(count_batches, range(1), a, 1u, counts);
  program.compile(count_recycled, range(1), a, counts);
  program.compile(count_version, range(1), state);
  program.compile(mark_changed, range(1), state);
  program.compile(tell_changes, range(1), state, uint64_t{0});
  program.compile(give_back_cells, range(1), state, 1u);
  program.compile(collect_below, range(1), state, 0u, layout);
  program.compile(collect_begin, range(1), a, 1u, counts);
  program.compile(collect_move_free, range(1), a);
  program.compile(collect_bookkeep, range(1), a);
  program.compile(collect_refill, range(1), a, 1u);
}

}  // namespace

RuntimePrograms::RuntimePrograms(const IntrusivePtr<Device>& device)
    : host_(device, without_checks()), in_order_(device, without_checks()) {}

void compile_runtime_kernels(Program& program, device::TreeState* state) {
  compile_lists(program, state);
  compile_collection(program, state);
}

}  // namespace coppice
