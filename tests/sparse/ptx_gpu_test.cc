// GPU code of the runtime's and the tests' kernels: it compiles, assembles, and keeps its memory orders.
#include <gtest/gtest.h>

#include "checks.kernels.h"
#include "dynamic_lists.kernels.h"
#include "heat.kernels.h"
#include "jit.kernels.h"
#include "lists.kernels.h"
#include "loop_lists.kernels.h"
#include "loops.kernels.h"
#include "messages.kernels.h"
#include "runtime_activation.kernels.h"
#include "runtime_append.kernels.h"
#include "runtime_box.kernels.h"
#include "runtime_collection.kernels.h"
#include "single_cells.kernels.h"
#include "sparse/program.h"
#include "sparse/program_ptx.h"
#include "sparse/tree.h"
#include "tests/sparse/ptx_check.h"
#include "tiles.kernels.h"
#include "topology_model.kernels.h"

namespace coppice {
namespace {

int line_of(const std::string& words) {
  std::ifstream in(std::string(heat_kernels.source_file));
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.find(words) != std::string::npos) return number;
  }
  ADD_FAILURE() << "'" << words << "' is not in " << heat_kernels.source_file;
  return 0;
}

class Ptx : public testing::Test {
 protected:
  // A case of a launch, all of whose arguments are copied.
  template <class Kernel, class... Arguments>
  void add(const Kernel& kernel, Loop loop, Arguments... arguments) {
    cases.push_back({std::string(kernel.file->name) + "." + std::string(kernel.name),
                     [this, kernel, loop, arguments...](jit::PtxTarget target) {
                       return ProgramPtx::of(checks ? checked : program, target, kernel, loop, arguments...);
                     }});
  }
  std::string text_of(const std::string& name, int sm) {
    for (const auto& c : cases) {
      if (c.name == name) return c.compile({sm});
    }
    ADD_FAILURE() << "no case " << name;
    return "";
  }

  void add_runtime() {
    const device::TreeState* tree = nullptr;
    const device::NodeLayout* node = nullptr;
    const device::LoopElement* elements = nullptr;
    device::LoopElement* to = nullptr;
    device::AllocatorState* allocator = nullptr;
    int32_t* coords = nullptr;
    uint32_t* u32 = nullptr;
    uint64_t* u64 = nullptr;
    add(deactivate_coords, range(9), leaf3.topology(), coords);
    add(test_coords, range(9), leaf3.topology(), coords, u32);
    auto* state = const_cast<device::TreeState*>(tree);
    const CoppiceBulkLevel level{};
    add(select_live, range(9), tree, CoppiceSelection{}, static_cast<void*>(u64), u32, u64);
    add(fill_chunks, range(9), tree, node, u32, to);
    add(bulk_keys, range(9), node, 1u, coords, u64, u32, u64);
    add(bulk_flag_empty, range(9), level, u32);
    add(bulk_fill, range(9), level, u32);
    add(bulk_bits, range(9), level);
    add(activate_box, range(9), masked3.topology(), device::LoopBox{});
    add(list_length_at, range(1), tree, node, coords, u64);
    add(clear_lists, range(9), state, node, elements);
    const CoppiceKeys keys{};
    const CoppiceAppend append{};
    const CoppiceBlocks blocks{};
    const CoppiceListEnd* ends = nullptr;
    const unsigned char* values = nullptr;
    const uint32_t* words = nullptr;
    const uint64_t* names = nullptr;
    CoppiceAppendTotals* totals = nullptr;
    add(count_in_blocks, range(9), keys, blocks, totals);
    add(add_up_blocks, range(9), blocks, uint64_t{4}, u32);
    add(write_keys, range(9), keys, u64, u32, totals);
    add(flag_runs, range(9), names, u32);
    add(name_lists, range(9), names, words, uint64_t{4}, uint64_t{9}, u64, u32);
    add(plan_lists, range(9), append);
    add(link_chunks, range(9), append, CoppiceNewCells{});
    add(write_blocks, range(9), blocks, uint64_t{9}, ends, CoppiceElementPlace{}, values);
    add(write_in_order, range(9), words, uint64_t{4}, words, uint64_t{9}, uint64_t{9}, ends,
        CoppiceElementPlace{}, values);
    add(collect_chain, range(9), allocator);
    add(collect_below, range(9), state, 1u, node);
    add(flag_elements, range(9), tree, node, 1, u32, uint64_t{1}, u32);
    add(fill_elements, range(9), tree, node, 1, u32, uint64_t{1}, u32, to);
    add(fill_neighbours, range(9), tree, node, elements, node, u32);
    add(recycle_all_cells, range(9), state, 1u, 64u);
    add(zero_containers, range(9), elements, uint64_t{64});
    add(collect_begin, range(1), allocator, 51u, u64);
    add(collect_move_free, range(9), allocator);
    add(collect_bookkeep, range(1), allocator);
    add(collect_refill, range(9), allocator, 51u);
  }
  void add_tests() {
    const Shell shell{{1, 2, 3}, 1, 1};
    int* i32 = nullptr;
    add(diffuse, over(leaf3), Heat{now3, next3}, 0.1f);
    add(diffuse, over(masked3), Heat{now_masked, next_masked}, 0.1f);
    add(diffuse2, over(leaf2), Heat{now2, next2}, 0.1f);
    add(diffuse, over_box(masked3, {3, 4, 5}, {6, 7, 8}), Heat{now_masked, next_masked}, 0.1f);
    add(grow_shell, range(9), now3, shell, 9);
    add(append_items, range(9), numbers, 3, static_cast<uint32_t*>(nullptr));
    add(append_and_read, range(9), numbers, static_cast<uint32_t*>(nullptr));
    add(sum_cells, over(leaf3), now3, static_cast<double*>(nullptr), static_cast<uint64_t*>(nullptr));
    add(set_cells2, over(leaf2), x2);
    add(read_coords2, range(9), x2, i32, i32);
    add(grow_coords2, range(9), x2, i32, 1);
    add(copy_other2, over(leaf2), x2, y2);
    add(look_up2, range(9), x2, leaf2.topology(), i32, i32, i32);
    add(move_blocks2, over(leaf2), x2, block2.topology(), y2);
    add(visit1, over(lists), numbers, static_cast<CoppiceVisits*>(nullptr));
    add(sum_rows, range(9), 9, i32, static_cast<uint64_t*>(nullptr), static_cast<uint32_t*>(nullptr));
    add(pass_along, range(9), static_cast<uint32_t*>(nullptr), static_cast<uint32_t*>(nullptr));
    add(scatter2, over(leaf2), x2, y2, z2);
    add(scatter3, over(masked3), x3, y3, z3);
    add(gather_and_scatter2, over(leaf2), x2, y2, y2, x2);
    add(flicker2, range(9), leaf2.topology(), block2.topology(), block2.topology(), 3);
  }
  void add_math() {
    const double* in = nullptr;
    add(sine_and_cosine, range(9), static_cast<const float*>(nullptr), static_cast<float*>(nullptr));
    add(powers_of_ten, range(9), in, static_cast<double*>(nullptr));
  }

  IntrusivePtr<Device> device = Device::cpu(1);
  Program program{device}, checked{device, {.checks = true}};
  bool checks = false;  // which of the two compiles
  Tree tree3{device}, tree_masked{device}, tree2{device};
  Node leaf3 = tree3.root().pointer({64, 64, 64}).pointer({8, 8, 8}).dense({8, 8, 8});
  Field<float> now3 = leaf3.place<float>("now"), next3 = leaf3.place<float>("next");
  Node masked3 = tree_masked.root().pointer({64, 64, 64}).bitmasked({8, 8, 8});
  Field<float> now_masked = masked3.place<float>("now"), next_masked = masked3.place<float>("next");
  Field<int> x3 = masked3.place<int>("x"), y3 = masked3.place<int>("y"), z3 = masked3.place<int>("z");
  Node block2 = tree2.root().pointer({7, 64}), leaf2 = block2.dense({5, 8});
  Field<float> now2 = leaf2.place<float>("now"), next2 = leaf2.place<float>("next");
  Field<int> x2 = leaf2.place<int>("x"), y2 = leaf2.place<int>("y"), z2 = leaf2.place<int>("z");
  Tree tree_lists{device};
  Node lists = tree_lists.root().pointer({64}).dynamic(1 << 20, 64);
  Field<int> numbers = lists.place<int>("numbers");
  std::vector<ptx_check::Case> cases;
};

TEST_F(Ptx, EveryKernelAssemblesWithoutSpills) {
  add_runtime(), add_tests();
  if (jit::has_libdevice()) add_math();
  ptx_check::check_ptx_cases(cases, ptx_check::ptxas_path());
  if (ptx_check::ptxas_path().empty())
    GTEST_SKIP() << "no ptxas on PATH or in $CUDA_HOME/bin: the PTX was written, but not assembled";
}

// Checks are code like any other: they cost registers, but need nothing that a GPU lacks.
TEST_F(Ptx, KernelsAssembleWithChecks) {
  checks = true;
  View<int> view;
  add(read_star3, over(masked3), StarStep{x3, y3}, 1, 0, 0);
  add(read_star2, over(leaf2), StarStep{x2, y2}, 1, 0);
  add(set2, range(9), x2, 1, 1);
  add(add2, range(9), x2, 1, 1);
  add(deactivate2, range(9), block2.topology(), 1, 1);
  add(copy_value2, over(leaf2), x2, y2, 1, int64_t{1});
  add(copy_neighbour2, over(leaf2), x2, y2, 1, 1);
  add(shift_view, range(9), View<const int>(nullptr, 9), view, 1);
  ptx_check::check_ptx_cases(cases, ptx_check::ptxas_path());
  checks = false;
  const std::string fast = text_of("checks.copy_value2", 80);
  checks = true;
  const std::string slow = text_of("checks.copy_value2", 80);
  EXPECT_EQ(fast.find("atom."), std::string::npos) << "a check is left without checks";
  EXPECT_NE(slow.find("atom."), std::string::npos);
}

// A text is copied from where PTX has it; a reader on the host must find a record's length stored last.
TEST_F(Ptx, PrintingAssembles) {
  add(say_all_types, range(9)), add(say_index, range(9), 2), add(say_cell, over(leaf2), x2, y2);
  add(say_block, over(leaf2)), add(assert_with_words, range(9), 2), add(assert_cell, over(leaf2), x2);
  ptx_check::check_ptx_cases(cases, ptx_check::ptxas_path());
  EXPECT_NE(text_of("messages.say_index", 80).find("st.release.gpu.global.u32"), std::string::npos);
  EXPECT_EQ(text_of("messages.say_index", 80).find(".local"), std::string::npos);
  EXPECT_EQ(text_of("messages.assert_with_words", 80).find("atom."), std::string::npos)
      << "an assertion is left without checks";
  checks = true;
  ptx_check::check_ptx_cases(cases, ptx_check::ptxas_path());
  EXPECT_NE(text_of("messages.assert_with_words", 80).find("atom."), std::string::npos);
}

TEST_F(Ptx, ActivationKeepsItsMemoryOrders) {
  add_tests();
  for (int sm : {75, 90}) {
    const std::string activate = text_of("lists.append_items", sm);
    const std::string deactivate = ProgramPtx::of(program, {sm}, deactivate_coords, range(9),
                                                  block2.topology(), static_cast<int32_t*>(nullptr));
    EXPECT_NE(activate.find("ld.acquire.gpu.global.u64"), std::string::npos) << "of a list's latest chunk";
    EXPECT_NE(activate.find("atom.acq_rel.gpu.global.cas.b32"), std::string::npos);
    EXPECT_NE(activate.find("nanosleep"), std::string::npos);
    EXPECT_NE(activate.find("fence.acq_rel.gpu"), std::string::npos) << "before a linked chunk is counted";
    // An election's mask is taken right where it is used: nothing that can diverge lies between.
    const std::regex election(
        R"(activemask\.b32\s+%r\d+;(\s*//[^\n]*|\s*\.loc[^\n]*|\s*mov[^\n]*|\s*cvta?[^\n]*|\s)*match\.any\.sync\.b64)");
    const auto elections =
        std::distance(std::sregex_iterator(activate.begin(), activate.end(), election), {});
    EXPECT_GE(elections, 4);
    size_t masks = 0;
    for (size_t at = 0; (at = activate.find("activemask", at)) != std::string::npos; ++at) ++masks;
    EXPECT_EQ(static_cast<size_t>(elections), masks) << activate;
    EXPECT_NE(deactivate.find("atom.acq_rel.gpu.global.cas.b32"), std::string::npos);
    EXPECT_EQ(deactivate.find("st.release"), std::string::npos) << "a deactivation stores no slot";
  }
}

// Pointers that lead on, around a loop, are the device's; one that may be the thread's own memory is not.
TEST_F(Ptx, AddressesHaveTheirSpaceWhereItIsKnown) {
  add(follow_links, range(9), static_cast<const Link*>(nullptr), static_cast<int*>(nullptr));
  add(pick_memory, range(9), static_cast<int*>(nullptr), 1);
  const std::string follow = text_of("jit.follow_links", 90), pick = text_of("jit.pick_memory", 90);
  const auto has = [](const std::string& text, const char* pattern) {
    return std::regex_search(text, std::regex(pattern));
  };
  EXPECT_TRUE(has(follow, R"(ld\.global\.(v\d\.)?[ubs]64)")) << follow;
  EXPECT_FALSE(has(follow, R"(\sld\.[ubs]\d)")) << follow;
  EXPECT_TRUE(has(pick, R"(st\.volatile\.[ubs]32)")) << pick;
  EXPECT_FALSE(has(pick, R"(st\.volatile\.global)")) << pick;
}

// Blend buffers are a CPU's; on a GPU they would be kilobytes of local memory per thread.
TEST_F(Ptx, CellLoopsUseNoLocalMemory) {
  add_tests();
  for (const char* kernel : {"heat.diffuse", "heat.diffuse2", "heat.copy_other2", "tiles.scatter2"}) {
    const std::string text = text_of(kernel, 80);
    EXPECT_EQ(text.find(".local"), std::string::npos) << kernel;
  }
}

// Tiles are in shared memory, and known to be: generic loads would be slower.
TEST_F(Ptx, TilesAreInSharedMemory) {
  add_tests();
  auto count = [](const std::string& text, const std::string& words) {
    int n = 0;
    for (size_t at = text.find(words); at != text.npos; at = text.find(words, at + 1)) ++n;
    return n;
  };
  for (int sm : {75, 90}) {
    const std::string gather = text_of("heat.diffuse", sm), scatter = text_of("tiles.scatter2", sm),
                      plain = text_of("heat.copy_other2", sm);
    EXPECT_GE(count(gather, "ld.shared.f32"), 7);
    EXPECT_GE(count(gather, "st.shared.f32"), 1);
    EXPECT_EQ(count(gather, "bar.sync"), 2) << "before the cells, and before the next leaf";
    EXPECT_GE(count(scatter, "atom.shared.add.u32"), 1);
    EXPECT_EQ(count(scatter, "bar.sync"), 3);
    EXPECT_EQ(count(plain, "shared"), 0);
    EXPECT_EQ(count(gather, ".extern .shared .align 16 .b8 coppice_dynamic_shared[];"), 1)
        << "sized by the launch";
  }
}

TEST_F(Ptx, ATeamsItemBelongsToAThreadBlock) {
  add_tests();
  const std::string team = text_of("loops.pass_along", 80);
  EXPECT_NE(team.find("bar.sync"), std::string::npos);
  EXPECT_NE(team.find("ld.param.u16"), std::string::npos) << "of LaunchBlock::flags";
}

// Profilers and error reports name lines; more than that would make ptxas optimise less.
TEST_F(Ptx, NamesTheLinesOfTheKernelFile) {
  if (!std::ifstream(std::string(heat_kernels.source_file)))
    GTEST_SKIP() << "the lines are looked up in " << heat_kernels.source_file << ", which is not here";
  add_tests();
  for (int sm : {75, 90}) {
    const std::string text = text_of("heat.diffuse", sm);
    EXPECT_NE(text.find(fmt::format(".target sm_{}\n", sm)), std::string::npos) << "the target says more";
    std::smatch file;
    ASSERT_TRUE(
        std::regex_search(text, file, std::regex("\\.file\\s+([0-9]+) \"[^\"]*heat\\.kernels\\.cc\"")))
        << text;
    const int body = line_of("heat.next[cell] = heat.now[cell] + k * laplacian");
    EXPECT_NE(text.find(fmt::format("\t.loc\t{} {} ", file[1].str(), body)), std::string::npos) << body;
    EXPECT_EQ(text.find(".debug_info"), std::string::npos) << "no tables, only directives";
    if (ptx_check::ptxas_path().empty()) continue;
    const auto plain = ptx_check::assemble(ptx_check::ptxas_path(), text, sm, "-O3");
    const auto lines = ptx_check::assemble(ptx_check::ptxas_path(), text, sm, "-O3 -lineinfo");
    EXPECT_EQ(lines.error, "");
    EXPECT_EQ(lines.registers, plain.registers);
  }
  if (ptx_check::ptxas_path().empty())
    GTEST_SKIP() << "no ptxas on PATH or in $CUDA_HOME/bin: the PTX was written, but not assembled";
}

TEST_F(Ptx, MathWithoutLibdeviceIsOneLineThatNamesTheFunction) {
  add_math();
  auto words_of = [&](const ptx_check::Case& c) -> std::string {
    try {
      c.compile({.sm = 80, .libdevice = false});
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_TRUE(std::regex_match(
      words_of(cases[0]),
      std::regex(
          "kernel jit\\.sine_and_cosine: .* at .*jit\\.kernels\\.cc:[0-9]+: the math function (sin|cos)f "
          "without NVIDIA's libdevice is not supported on sm_80; configure Coppice with "
          "-DCOPPICE_LIBDEVICE=<CUDA toolkit>/nvvm/libdevice/libdevice.10.bc")))
      << words_of(cases[0]);
  EXPECT_NE(words_of(cases[1]).find("the math function pow "), std::string::npos) << words_of(cases[1]);
}

}  // namespace
}  // namespace coppice
