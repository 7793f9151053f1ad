// Averages at nodes, and boxes of them (see written_grid.h).
#include "apps/run/written_grid.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "apps/mpm/bspline.h"

namespace coppice {
namespace {

size_t nodes_of(const mpm::DensityBlocks& blocks, int dim) {
  const auto width = static_cast<size_t>(blocks.block_size);
  return dim == 3 ? width * width * width : width * width;
}

// Calls visit(n, ijk) for each node of all blocks, n being its place among their values.
template <class Visit>
void for_each_node(const mpm::DensityBlocks& blocks, int dim, Visit&& visit) {
  const int width = blocks.block_size, depth = dim == 3 ? width : 1;
  size_t n = 0;
  for (size_t b = 0; b < blocks.origins.size() / 3; ++b) {
    const Vec3i low(&blocks.origins[3 * b]);
    for (int i = 0; i < width; ++i)
      for (int j = 0; j < width; ++j)
        for (int k = 0; k < depth; ++k) visit(n++, Vec3i(low + Vec3i(i, j, k)));
  }
}

// Finds nodes by their coordinates.
class NodeTable {
 public:
  NodeTable(const mpm::DensityBlocks& blocks, int dim) : width_(blocks.block_size), dim_(dim) {
    for (size_t b = 0; b < blocks.origins.size() / 3; ++b)
      first_[key(Vec3i(&blocks.origins[3 * b]) / width_)] = b * nodes_of(blocks, dim);
  }

  static constexpr size_t kNone = ~size_t{0};
  // Returns the node's place among the blocks' values, or kNone where there is no block. Coordinates of the
  // grid are not negative.
  size_t find(const Vec3i& node) {
    const Vec3i block = node / width_, inside = node - width_ * block;
    // Most nodes of a particle are in one block.
    if (const uint64_t asked = key(block); asked != last_) {
      const auto found = first_.find(asked);
      last_ = asked;
      last_first_ = found == first_.end() ? kNone : found->second;
    }
    if (last_first_ == kNone) return kNone;
    const int n = dim_ == 3 ? (inside.x() * width_ + inside.y()) * width_ + inside.z()
                            : inside.x() * width_ + inside.y();
    return last_first_ + static_cast<size_t>(n);
  }

 private:
  static uint64_t key(const Vec3i& block) {
    return static_cast<uint64_t>(block.x()) << 42 | static_cast<uint64_t>(block.y()) << 21 |
           static_cast<uint64_t>(block.z());
  }

  int width_, dim_;
  std::unordered_map<uint64_t, size_t> first_;  // of a block's nodes, among the blocks' values
  uint64_t last_ = ~uint64_t{0};                // the block that was asked for
  size_t last_first_ = kNone;
};

// A particle's nodes, with the share that each has of it.
struct Stencil {
  std::array<size_t, 27> node;
  std::array<float, 27> share;
  int size = 0;
};

Vec3f cells_of(const WrittenGrid& grid, const Vec3f& position) {
  return (position - grid.blocks.origin) / grid.blocks.dx;
}

// Calls visit(node) for a node of each block in which a particle may have nodes.
template <class Visit>
void for_each_corner(const WrittenGrid& grid, const Vec3f& position, Visit&& visit) {
  const Vec3f cells = cells_of(grid, position);
  Vec3i low = Vec3i::Zero(), high = Vec3i::Zero();
  for (int axis = 0; axis < grid.dim; ++axis) {
    low[axis] = static_cast<int>(mpm::bspline_base(cells[axis]));
    high[axis] = low[axis] + mpm::kStencilWidth - 1;
    if (high[axis] / grid.blocks.block_size == low[axis] / grid.blocks.block_size) high[axis] = low[axis];
  }
  const Vec3i step = (high - low).cwiseMax(1);
  for (int x = low.x(); x <= high.x(); x += step.x())
    for (int y = low.y(); y <= high.y(); y += step.y())
      for (int z = low.z(); z <= high.z(); z += step.z()) visit(Vec3i(x, y, z));
}

Stencil stencil_of(NodeTable& nodes, int dim, const Vec3f& cells) {
  float weight[3][mpm::kStencilWidth] = {{1, 0, 0}, {1, 0, 0}, {1, 0, 0}};
  Vec3i base = Vec3i::Zero();
  for (int axis = 0; axis < dim; ++axis) {
    const float low = mpm::bspline_base(cells[axis]);
    base[axis] = static_cast<int>(low);
    mpm::bspline_weights(cells[axis] - low, weight[axis]);
  }
  Stencil stencil;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < (dim == 3 ? 3 : 1); ++k) {
        const size_t node = nodes.find(base + Vec3i(i, j, k));
        if (node == NodeTable::kNone) continue;
        stencil.node[static_cast<size_t>(stencil.size)] = node;
        stencil.share[static_cast<size_t>(stencil.size++)] = weight[0][i] * weight[1][j] * weight[2][k];
      }
    }
  }
  return stencil;
}

// A particle as it goes to the ranks that average it: its position, its mass, and its values of all fields.
constexpr size_t kBeforeValues = 4;

// Calls visit(record) for all particles that have nodes in blocks of this rank, in the order of ids: ranks
// have their rows in that order, and so do the records that they send.
template <class Visit>
void wait_for_each_near(mpm::SolverPart& own, const WrittenGrid& grid, const mpm::ParticleSnapshot& particles,
                        std::span<const PlyAttribute> fields, Visit&& visit) {
  size_t width = kBeforeValues;
  for (const PlyAttribute& field : fields) width += static_cast<size_t>(field.components);
  std::vector<float> record(width);
  const auto pack = [&](size_t i) {
    float* to = std::copy_n(particles.position[i].data(), 3, record.data());
    *to++ = particles.mass[i];
    for (const PlyAttribute& field : fields) {
      const auto components = static_cast<size_t>(field.components);
      to = std::copy_n(static_cast<const float*>(field.data) + i * components, components, to);
    }
  };
  const size_t n = particles.position.size();
  if (!own.cluster()) {
    for (size_t i = 0; i < n; ++i) pack(i), visit(record.data());
    return;
  }
  const std::function<int(const Vec3i&)> owner_of = own.wait_owners();
  const auto n_ranks = static_cast<size_t>(own.cluster()->n_ranks());
  std::vector<RankLink::Bytes> parts(n_ranks);
  std::vector<size_t> sent_to(n_ranks, n);  // the particle that was sent last
  const auto bytes = std::as_bytes(std::span(record));
  for (size_t i = 0; i < n; ++i) {
    pack(i);
    for_each_corner(grid, particles.position[i], [&](const Vec3i& node) {
      const auto rank = static_cast<size_t>(owner_of(node));
      if (sent_to[rank] == i) return;
      sent_to[rank] = i;
      parts[rank].insert(parts[rank].end(), bytes.begin(), bytes.end());
    });
  }
  for (const RankLink::Bytes& part : own.cluster()->wait_exchange(std::move(parts))) {
    for (size_t at = 0; at < part.size(); at += bytes.size()) {
      std::memcpy(record.data(), part.data() + at, bytes.size());
      visit(record.data());
    }
  }
}

// Fills in the averages of `fields` at the grid's nodes.
void wait_add_averages(mpm::SolverPart& own, WrittenGrid& grid, const mpm::ParticleSnapshot& particles,
                       std::span<const PlyAttribute> fields,
                       const std::map<std::string, std::vector<std::string>>& names) {
  if (fields.empty()) return;
  NodeTable nodes(grid.blocks, grid.dim);
  const size_t n_nodes = grid.blocks.values.size();
  std::vector<float> mass(n_nodes, 0.0f);
  for (const PlyAttribute& field : fields) {
    const auto of = names.find(field.name);
    grid.averages.push_back({field.name, field.components,
                             of == names.end() ? std::vector<std::string>() : of->second,
                             std::vector<float>(n_nodes * static_cast<size_t>(field.components), 0.0f)});
  }
  wait_for_each_near(own, grid, particles, fields, [&](const float* particle) {
    const Stencil stencil = stencil_of(nodes, grid.dim, cells_of(grid, Vec3f(particle)));
    for (size_t s = 0; s < static_cast<size_t>(stencil.size); ++s) {
      const float share = stencil.share[s] * particle[3];
      const size_t node = stencil.node[s];
      mass[node] += share;
      const float* values = particle + kBeforeValues;
      for (NodeValues& average : grid.averages) {
        const auto components = static_cast<size_t>(average.components);
        for (size_t c = 0; c < components; ++c) average.values[node * components + c] += share * *values++;
      }
    }
  });
  for (NodeValues& average : grid.averages) {
    for (size_t v = 0; v < average.values.size(); ++v) {
      const float m = mass[v / static_cast<size_t>(average.components)];
      if (m > 0) average.values[v] /= m;
    }
  }
}

// Calls visit(values, components) for the arrays of a grid's nodes.
template <class Grid, class Visit>
void for_each_array(Grid& grid, Visit&& visit) {
  visit(grid.blocks.values, size_t{1});
  if (grid.has_velocity) visit(grid.blocks.velocity, size_t{3});
  for (auto& average : grid.averages) visit(average.values, static_cast<size_t>(average.components));
}

}  // namespace

PointBox WrittenGrid::box() const {
  PointBox box;
  for_each_node(blocks, dim, [&](size_t n, const Vec3i& at) {
    if (blocks.values[n] != 0) box.include(at);
  });
  return box;
}

std::vector<GridArray> WrittenGrid::arrays() const {
  std::vector<GridArray> arrays;
  const auto add = [&](const std::string& name, int components, const std::vector<std::string>& names,
                       const std::vector<float>& values) {
    const auto fill = [this, components, &values](const PointBox& slab, std::span<float> to) {
      const auto width = static_cast<size_t>(components);
      for_each_node(blocks, dim, [&](size_t n, const Vec3i& at) {
        if (blocks.values[n] != 0 && slab.has(at))
          std::copy_n(&values[n * width], width, &to[slab.index(at) * width]);
      });
    };
    arrays.push_back({name, components, names, fill});
  };
  add("density", 1, {}, blocks.values);
  if (has_velocity) add("velocity", 3, {}, blocks.velocity);
  for (const NodeValues& a : averages) add(a.name, a.components, a.component_names, a.values);
  return arrays;
}

VdbGrids::VdbGrids(const WrittenGrid& grid) {
  if (grid.has_velocity) grids_.push_back({"velocity", 3, grid.blocks.velocity});
  for (const NodeValues& a : grid.averages) {
    if (a.component_names.empty()) {
      grids_.push_back({a.name, a.components, a.values});
      continue;
    }
    const size_t n = a.component_names.size();
    for (size_t c = 0; c < n; ++c) {
      std::vector<float>& values = components_.emplace_back();
      for (size_t v = c; v < a.values.size(); v += n) values.push_back(a.values[v]);
      grids_.push_back({a.name + "_" + a.component_names[c], 1, values});
    }
  }
}

WrittenGrid wait_read_own_grid(mpm::SolverPart& own, int dim, const mpm::GridParts& parts,
                               const mpm::ParticleSnapshot& particles, const WrittenParticles& fields) {
  WrittenGrid grid{dim, own.wait_own_blocks(parts), parts.velocity, {}};
  wait_add_averages(own, grid, particles, fields.averaged(), fields.component_names());
  return grid;
}

PointBox wait_join_boxes(const Cluster& cluster, const PointBox& own) {
  using Corners = std::array<int32_t, 6>;
  Corners corners{};
  std::copy_n(own.min.data(), 3, corners.begin());
  std::copy_n(own.max.data(), 3, corners.begin() + 3);
  PointBox box;
  for (const Corners& theirs : cluster.wait_gather(corners)) {
    const PointBox part{Vec3i(&theirs[0]), Vec3i(&theirs[3])};
    if (part.is_empty()) continue;
    box.include(part.min), box.include(part.max);
  }
  return box;
}

WrittenGrid wait_send_blocks(const Cluster& cluster, const WrittenGrid& own,
                             const std::function<bool(int rank, const PointBox& nodes)>& is_for) {
  const size_t n_nodes = nodes_of(own.blocks, own.dim);
  const Vec3i width(own.blocks.block_size, own.blocks.block_size, own.dim == 3 ? own.blocks.block_size : 1);
  std::vector<RankLink::Bytes> parts(static_cast<size_t>(cluster.n_ranks()));
  const auto put = [](RankLink::Bytes& to, auto values) {
    const auto bytes = std::as_bytes(values);
    to.insert(to.end(), bytes.begin(), bytes.end());
  };
  for (size_t b = 0; b < own.blocks.origins.size() / 3; ++b) {
    const std::span<const int32_t> first(&own.blocks.origins[3 * b], 3);
    const PointBox nodes{Vec3i(first.data()), Vec3i(first.data()) + width - Vec3i::Ones()};
    for (size_t r = 0; r < parts.size(); ++r) {
      if (!is_for(static_cast<int>(r), nodes)) continue;
      put(parts[r], first);
      for_each_array(own, [&](const std::vector<float>& values, size_t components) {
        put(parts[r], std::span(values).subspan(b * n_nodes * components, n_nodes * components));
      });
    }
  }
  WrittenGrid come{own.dim, {own.blocks.block_size, own.blocks.origin, own.blocks.dx}, own.has_velocity, {}};
  for (const NodeValues& a : own.averages)
    come.averages.push_back({a.name, a.components, a.component_names, {}});
  for (RankLink::Bytes& part : cluster.wait_exchange(std::move(parts))) {
    const std::byte* from = part.data();
    const auto take = [&](auto& to, size_t n) {
      to.resize(to.size() + n);
      std::memcpy(to.data() + to.size() - n, from, n * sizeof to[0]);
      from += n * sizeof to[0];
    };
    while (from < part.data() + part.size()) {
      take(come.blocks.origins, 3);
      for_each_array(
          come, [&](std::vector<float>& values, size_t components) { take(values, n_nodes * components); });
    }
    RankLink::Bytes().swap(part);
  }
  return come;
}

}  // namespace coppice
