// The levels of the Poisson solver, and the function that solves (see poisson_solver.h).
#include "sparse/poisson/poisson_solver.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/error.h"
#include "runtime_poisson.kernels.h"
#include "sparse/buffer_operations.h"
#include "sparse/tree_storage.h"

namespace coppice {
namespace {

using BlockCoord = std::array<int32_t, 3>;  // in leaves

constexpr int32_t kSide = 8;
constexpr int64_t kCells = 512, kCoarseCells = 64;  // of a leaf, and of what it is on the next level
constexpr int kMostLevels = 16;
constexpr uint32_t kMostRestarts = 8;
constexpr int kCoarsestPairs = 12;  // of sweeps on the last level, which is a leaf in most cases

BlockCoord parent_of(const BlockCoord& b) { return {b[0] >> 1, b[1] >> 1, b[2] >> 1}; }
int32_t octant_of(const BlockCoord& b) { return (b[0] & 1) << 2 | (b[1] & 1) << 1 | (b[2] & 1); }

// The cells of one fineness. The first one's are those of the user's leaf.
struct Level {
  explicit Level(const Node& given) : leaf(given) {}
  Level(Tree made, const Node& given) : tree(std::move(made)), leaf(given) {}

  std::optional<Tree> tree;  // of coarser levels
  Node leaf;
  Field<float> b, x, y, weight;  // right side, and two arrays for the sweeps; y has the result
  std::vector<BlockCoord> blocks;
  BufferRef children, parents;  // i32[blocks][8], i32[blocks]
  int64_t n_blocks() const { return static_cast<int64_t>(blocks.size()); }
};

void place_fields(Level& level, const std::string& prefix = "poisson.") {
  level.b = level.leaf.place<float>(prefix + "b"), level.x = level.leaf.place<float>(prefix + "x");
  level.y = level.leaf.place<float>(prefix + "y"), level.weight = level.leaf.place<float>(prefix + "weight");
}

// Returns "poisson.", or "poisson.2." and so on where the tree has fields of another solver.
std::string unused_prefix(const Node& leaf) {
  std::string prefix = "poisson.";
  const auto& fields = leaf.storage().description().fields();
  for (int n = 2; std::any_of(fields.begin(), fields.end(),
                              [&](const FieldDescription& f) { return f.name == prefix + "u"; });
       ++n)
    prefix = fmt::format("poisson.{}.", n);
  return prefix;
}

void check_leaf(const Program& program, const Node& leaf) {
  const auto& storage = leaf.storage();
  storage.refuse_over_ranks("a PoissonSolver");
  if (&storage.device() != &program.device())
    throw Error(ErrorCode::kInvalidArgument, "PoissonSolver: its tree is of another device than its program");
  const auto& node = storage.description().node(leaf.id());
  const bool is_cells = node.kind == device::NodeKind::kDense || node.kind == device::NodeKind::kBitmasked;
  const bool is_cube =
      std::all_of(node.extents.begin(), node.extents.end(), [](int32_t n) { return n == kSide; });
  if (is_cells && node.extents.size() == 3 && is_cube && node.layout == CellLayout::kStructOfArrays) return;
  throw Error(
      ErrorCode::kInvalidArgument,
      "PoissonSolver: its node must be dense or bitmasked, of 8 x 8 x 8 cells of a tree with three axes, "
      "and a struct of arrays");
}

// Returns how many leaves there are from the first one of each axis on.
BlockCoord extents_of(const std::set<BlockCoord>& blocks) {
  BlockCoord extents{1, 1, 1};
  for (const BlockCoord& b : blocks) {
    for (size_t k = 0; k < 3; ++k) extents[k] = std::max(extents[k], b[k] + 1);
  }
  return extents;
}

// Adds a node of leaves of so many an axis; where they are many, below two pointer nodes, for they may be few
// and far between. Errors: kInvalidArgument.
Node add_leaves(const Tree& tree, const BlockCoord& extents) {
  constexpr int32_t kTogether = 32;
  const auto count = [](const BlockCoord& e) { return int64_t{e[0]} * e[1] * e[2]; };
  if (count(extents) <= int64_t{1} << 18)
    return tree.root().pointer({extents[0], extents[1], extents[2]}).dense({kSide, kSide, kSide});
  BlockCoord outer{};
  for (size_t k = 0; k < 3; ++k) outer[k] = (extents[k] + kTogether - 1) / kTogether;
  if (count(outer) > int64_t{1} << 24)
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("PoissonSolver: its active cells are too far apart: they span {} x {} x {} leaves",
                    2 * int64_t{extents[0]}, 2 * int64_t{extents[1]}, 2 * int64_t{extents[2]}));
  return tree.root()
      .pointer({outer[0], outer[1], outer[2]})
      .pointer({kTogether, kTogether, kTogether})
      .dense({kSide, kSide, kSide});
}

template <class T>
BufferRef upload(Device& device, const std::vector<T>& values) {
  const size_t bytes = values.size() * sizeof(T);
  BufferRef buffer = device.reserve(bytes, bytes);
  device.wait_copy(buffer->data(), values.data(), bytes);
  return buffer;
}

}  // namespace

struct PoissonSolver::State {
  State(Program& p, const Node& leaf, double side) : program(p), h2(side * side) {
    check_leaf(program, leaf);
    if (!(side > 0) || !std::isfinite(side))
      throw Error(ErrorCode::kInvalidArgument, fmt::format("PoissonSolver: cells of side {}", side));
    Level& finest = levels.emplace_back(leaf);
    const std::string prefix = unused_prefix(leaf);
    u = leaf.place<double>(prefix + "u"), f = leaf.place<double>(prefix + "f");
    r = leaf.place<double>(prefix + "r"), p_ = leaf.place<double>(prefix + "p"),
    q = leaf.place<double>(prefix + "q");
    place_fields(finest, prefix);
    state = device().reserve(sizeof(CoppicePoissonState), sizeof(CoppicePoissonState));
  }

  Device& device() const { return program.device(); }
  CoppicePoissonState* scalars() const { return state->as<CoppicePoissonState>(); }

  void wait_make_levels();
  std::vector<BlockCoord> wait_blocks(const Level& level);
  void add_coarser_level();
  void connect(Level& fine, Level& coarse);
  void wait_weigh(const Level& fine, const Level& coarse, int depth);
  Function trace_solve();
  void trace_cycle(size_t depth);
  void trace_smooth(const Level& level, const Field<float>& from, const Field<float>& to);
  void trace_sum(const BufferRef& parts, size_t offset) {
    sum_to<double>(device(), parts, levels[0].n_blocks(), state, static_cast<int64_t>(offset));
  }
  template <class T>
  BufferRef scratch(int64_t n) {
    return temporary(device(), static_cast<size_t>(n) * sizeof(T));
  }
  BufferRef parts() { return scratch<double>(levels[0].n_blocks()); }

  Program& program;
  const double h2;
  Field<double> u, f, r, p_, q;
  std::vector<Level> levels;
  BlockCoord extents{};  // of coarser levels' trees, in leaves
  BufferRef state;
  std::optional<Slot<double>> tolerance;
  std::optional<Slot<uint32_t>> most_iterations;
  std::optional<Function> solve;
  uint64_t topology_version = 0;
};

// ---- levels

std::vector<BlockCoord> PoissonSolver::State::wait_blocks(const Level& level) {
  const uint64_t n = level.leaf.wait_num_active_blocks();
  std::vector<int32_t> origins(3 * n);
  const size_t bytes = origins.size() * sizeof(int32_t);
  const BufferRef buffer = device().reserve(std::max<size_t>(bytes, 4), std::max<size_t>(bytes, 4));
  wait(program.launch(write_origins, over(level.leaf), level.leaf.topology(), buffer->as<int32_t>()));
  device().wait_copy(origins.data(), buffer->data(), bytes);
  std::vector<BlockCoord> blocks(n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < 3; ++k) blocks[i][k] = origins[3 * i + k] >> 3;  // whole leaves, also below 0
  }
  return blocks;
}

void PoissonSolver::State::add_coarser_level() {
  const Level& fine = levels.back();
  std::set<BlockCoord> parents;
  for (const BlockCoord& b : fine.blocks) parents.insert(parent_of(b));
  std::vector<std::array<int32_t, 3>> firsts;  // cells
  for (const BlockCoord& b : parents) firsts.push_back({b[0] * kSide, b[1] * kSide, b[2] * kSide});
  // All coarser levels have the extents of the first of them, so that they have its kernels, too.
  if (levels.size() == 1) extents = extents_of(parents);
  Tree tree(share(&device()), TreeOptions{.name = fmt::format("poisson.{}", levels.size())});
  const Node leaf = add_leaves(tree, extents);
  Level coarse(std::move(tree), leaf);
  place_fields(coarse);
  wait(coarse.leaf.activate(std::move(firsts)));
  coarse.blocks = wait_blocks(coarse);
  levels.push_back(std::move(coarse));
}

// Makes the tables between two levels.
void PoissonSolver::State::connect(Level& fine, Level& coarse) {
  std::map<BlockCoord, int32_t> number;
  for (size_t i = 0; i < coarse.blocks.size(); ++i) number[coarse.blocks[i]] = static_cast<int32_t>(i);
  std::vector<int32_t> children(8 * coarse.blocks.size(), -1), parents;
  for (size_t i = 0; i < fine.blocks.size(); ++i) {
    const int32_t at = 8 * number.at(parent_of(fine.blocks[i])) + octant_of(fine.blocks[i]);
    children[static_cast<size_t>(at)] = static_cast<int32_t>(i);
    parents.push_back(at);
  }
  coarse.children = upload(device(), children);
  fine.parents = upload(device(), parents);
}

// A cell of the coarser level is one of the domain where any of its eight is.
void PoissonSolver::State::wait_weigh(const Level& fine, const Level& coarse, int depth) {
  const BufferRef packed = scratch<float>(fine.n_blocks() * kCoarseCells);
  program.launch(mark_domain, over(fine.leaf), fine.weight, fine.x);
  program.launch(pack_coarse, over(fine.leaf), fine.x, packed->as<float>());
  program.launch(unpack_coarse, over(coarse.leaf), coarse.b, packed->as<float>(),
                 coarse.children->as<int32_t>());
  program.launch(mark_domain, over(coarse.leaf), coarse.b, coarse.x);
  // The boundary lies at the centres of the finest cells beside the domain: from the centre of a cell that is
  // 2^depth times as large, that is less than its side.
  const double distance = 0.5 + std::exp2(-(depth + 1));
  wait(program.launch(weigh_cells, over(coarse.leaf), coarse.x, coarse.weight,
                      static_cast<float>(1 / distance - 1)));
}

void PoissonSolver::State::wait_make_levels() {
  levels.erase(levels.begin() + 1, levels.end());
  solve.reset();
  Level& finest = levels.front();
  // Cells that are not active any more have no weight.
  program.launch(clear_weights, over(finest.leaf), finest.weight);
  program.launch(set_weight, over(finest.leaf), finest.weight, 6.0f);
  program.launch(clear_outside, over(finest.leaf), finest.weight, u, r, p_, q, f);
  program.launch(clear_outside_of_level, over(finest.leaf), finest.weight, finest.b, finest.x, finest.y);
  finest.blocks = wait_blocks(finest);
  // Counted from their lowest corner, leaves on both sides of 0 come together, too.
  BlockCoord low{INT32_MAX, INT32_MAX, INT32_MAX};
  for (const BlockCoord& b : finest.blocks) {
    for (size_t k = 0; k < 3; ++k) low[k] = std::min(low[k], b[k]);
  }
  for (BlockCoord& b : finest.blocks) {
    for (size_t k = 0; k < 3; ++k) b[k] -= low[k];
  }
  while (levels.back().blocks.size() > 1 && levels.size() < kMostLevels) {
    add_coarser_level();
    Level &fine = levels[levels.size() - 2], &coarse = levels.back();
    connect(fine, coarse);
    wait_weigh(fine, coarse, static_cast<int>(levels.size()) - 1);
  }
  solve = trace_solve();
}

// ---- what is traced

void PoissonSolver::State::trace_smooth(const Level& level, const Field<float>& from,
                                        const Field<float>& to) {
  program.launch(smooth, over(level.leaf), from, level.b, level.weight, to);
}

// Finds y of the level from its b.
void PoissonSolver::State::trace_cycle(size_t depth) {
  const Level& level = levels[depth];
  const Loop leaves = over(level.leaf);
  program.launch(smooth_zero, leaves, level.b, level.weight, level.x);
  if (depth + 1 == levels.size()) {
    repeat(kCoarsestPairs,
           [&] { trace_smooth(level, level.x, level.y), trace_smooth(level, level.y, level.x); });
    trace_smooth(level, level.x, level.y);
    return;
  }
  trace_smooth(level, level.x, level.y);
  program.launch(subtract_on_level, leaves, level.y, level.b, level.weight, level.x);
  const Level& coarse = levels[depth + 1];
  {
    const BufferRef packed = scratch<float>(level.n_blocks() * kCoarseCells);
    program.launch(pack_coarse, leaves, level.x, packed->as<float>());
    program.launch(unpack_coarse, over(coarse.leaf), coarse.b, packed->as<float>(),
                   coarse.children->as<int32_t>());
  }
  trace_cycle(depth + 1);
  const BufferRef packed = scratch<float>(coarse.n_blocks() * 8 * kCells);
  program.launch(pack_fine, over(coarse.leaf), coarse.y, packed->as<float>());
  program.launch(add_fine, leaves, level.y, level.weight, packed->as<float>(), level.parents->as<int32_t>());
  trace_smooth(level, level.y, level.x);
  trace_smooth(level, level.x, level.y);
}

Function PoissonSolver::State::trace_solve() {
  const Level& finest = levels.front();
  const Loop leaves = over(finest.leaf), one = range(1);
  using S = CoppicePoissonState;
  const auto find_residual = [&] {
    program.launch(subtract_applied, leaves, u, f, r, h2);
    const BufferRef squares = parts(), given = parts();
    program.launch(square_residual, leaves, f, r, h2, squares->as<double>(), given->as<double>());
    trace_sum(squares, offsetof(S, rr)), trace_sum(given, offsetof(S, ff));
  };
  const auto iterate = [&] {
    trace_cycle(0);
    {
      const BufferRef with_r = parts(), with_q = parts();
      program.launch(multiply_preconditioned, leaves, finest.y, r, q, with_r->as<double>(),
                     with_q->as<double>());
      trace_sum(with_r, offsetof(S, new_zr)), trace_sum(with_q, offsetof(S, new_zq));
    }
    program.launch(find_beta, one, scalars());
    program.launch(turn, leaves, finest.y, p_, scalars());
    program.launch(apply_to, leaves, p_, q);
    {
      const BufferRef products = parts();
      program.launch(multiply, leaves, p_, q, products->as<double>());
      trace_sum(products, offsetof(S, pq));
    }
    program.launch(find_alpha, one, scalars());
    {
      const BufferRef squares = parts();
      program.launch(go_on, leaves, u, p_, r, q, finest.b, scalars(), squares->as<double>());
      trace_sum(squares, offsetof(S, rr));
    }
    program.launch(end_iteration, one, scalars());
  };
  const auto code = [&] {
    // The function keeps what it names, and whoever keeps the function may run it later.
    for (const Level& level : levels) {
      for (const BufferRef& table : {level.children, level.parents})
        if (table) fill(device(), table, 0, 0, 0);
    }
    find_residual();
    program.launch(look_at_start, one, scalars());
    branch({state, offsetof(S, drops_start)}, [&] {
      program.launch(set_zero, leaves, u);
      find_residual();
    });
    program.launch(begin_solve, one, scalars(), *tolerance, *most_iterations);
    loop_while({state, offsetof(S, begins_again)}, [&] {
      program.launch(hand_down, leaves, r, finest.b, scalars());
      loop_while({state, offsetof(S, goes_on)}, iterate);
      find_residual();
      program.launch(look_again, one, scalars(), kMostRestarts);
    });
  };
  return trace(share(&device()), code, "poisson.solve");
}

// ---- the solver

PoissonSolver::PoissonSolver(Program& program, const Node& leaf, double h)
    : state_(std::make_unique<State>(program, leaf, h)) {}
PoissonSolver::~PoissonSolver() = default;

const Field<double>& PoissonSolver::right_side() const { return state_->f; }
const Field<double>& PoissonSolver::solution() const { return state_->u; }
int PoissonSolver::levels() const { return static_cast<int>(state_->levels.size()); }
const Function& PoissonSolver::function() const {
  if (state_->solve) return *state_->solve;
  throw Error(ErrorCode::kInvalidArgument, "PoissonSolver::function() before the first solve");
}

PoissonResult PoissonSolver::wait_solve(double tolerance, int most_iterations) {
  if (!(tolerance >= 0) || most_iterations < 0)
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("PoissonSolver::wait_solve({}, {}): both must be 0 or more", tolerance, most_iterations));
  State& s = *state_;
  if (!s.tolerance) s.tolerance.emplace(share(&s.device())), s.most_iterations.emplace(share(&s.device()));
  const uint64_t version = s.levels.front().leaf.wait_topology_version();
  if (!s.solve || version != s.topology_version) s.wait_make_levels();
  s.topology_version = version;
  s.tolerance->set(tolerance), s.most_iterations->set(static_cast<uint32_t>(most_iterations));
  const AsyncValueRef<Chain> done = s.solve->run();
  wait(done);
  if (done.is_error()) throw done.error();
  CoppicePoissonState found{};
  s.device().wait_copy(&found, s.state->data(), sizeof found);
  PoissonResult result{.iterations = static_cast<int>(found.iterations)};
  if (found.ff == 0) return {.converged = true};
  result.residual = std::sqrt(found.rr / found.ff);
  result.converged = std::isfinite(found.ff) && found.rr <= found.limit;
  return result;
}

}  // namespace coppice
