// Averages at nodes, and boxes of them (see written_grid.h).
#include "apps/run/written_grid.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <unordered_map>

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

// Fills in the averages of `fields` at the grid's nodes.
void add_averages(WrittenGrid& grid, const mpm::ParticleSnapshot& particles,
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
  for (size_t i = 0; i < particles.position.size(); ++i) {
    const Vec3f cells = (particles.position[i] - grid.blocks.origin) / grid.blocks.dx;
    const Stencil stencil = stencil_of(nodes, grid.dim, cells);
    for (size_t s = 0; s < static_cast<size_t>(stencil.size); ++s) {
      const float share = stencil.share[s] * particles.mass[i];
      const size_t node = stencil.node[s];
      mass[node] += share;
      for (size_t f = 0; f < fields.size(); ++f) {
        const auto components = static_cast<size_t>(fields[f].components);
        const float* values = static_cast<const float*>(fields[f].data) + i * components;
        for (size_t c = 0; c < components; ++c)
          grid.averages[f].values[node * components + c] += share * values[c];
      }
    }
  }
  for (NodeValues& average : grid.averages) {
    for (size_t v = 0; v < average.values.size(); ++v) {
      const float m = mass[v / static_cast<size_t>(average.components)];
      if (m > 0) average.values[v] /= m;
    }
  }
}

}  // namespace

PointBox WrittenGrid::box() const {
  PointBox box;
  for_each_node(blocks, dim, [&](size_t n, const Vec3i& at) {
    if (blocks.values[n] != 0) box.include(at);
  });
  return box;
}

std::vector<GridArray> WrittenGrid::arrays(const PointBox& box) const {
  std::vector<GridArray> arrays;
  const auto add = [&](const std::string& name, int components, const std::vector<std::string>& names,
                       const std::vector<float>& values) {
    arrays.push_back({name, components, names, [this, box, components, &values](std::span<float> to) {
                        const auto width = static_cast<size_t>(components);
                        for_each_node(blocks, dim, [&](size_t n, const Vec3i& at) {
                          if (blocks.values[n] != 0)
                            std::copy_n(&values[n * width], width, &to[box.index(at) * width]);
                        });
                      }});
  };
  add("density", 1, {}, blocks.values);
  if (!blocks.velocity.empty()) add("velocity", 3, {}, blocks.velocity);
  for (const NodeValues& a : averages) add(a.name, a.components, a.component_names, a.values);
  return arrays;
}

VdbGrids::VdbGrids(const WrittenGrid& grid) {
  if (!grid.blocks.velocity.empty()) grids_.push_back({"velocity", 3, grid.blocks.velocity});
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

WrittenGrid wait_read_grid(mpm::Solver& solver, int dim, const mpm::GridParts& parts,
                           const mpm::ParticleSnapshot& particles, const WrittenParticles& fields) {
  WrittenGrid grid{dim, solver.wait_density_with(parts), {}};
  add_averages(grid, particles, fields.averaged(), fields.component_names());
  return grid;
}

}  // namespace coppice
