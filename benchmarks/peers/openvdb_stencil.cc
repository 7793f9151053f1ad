// The stencil over an OpenVDB grid (see openvdb_stencil.h).
#include "benchmarks/peers/openvdb_stencil.h"

#include <openvdb/math/Stencils.h>
#include <openvdb/openvdb.h>
#include <openvdb/tree/LeafManager.h>

namespace coppice::bench {
namespace {

using openvdb::Coord;
using openvdb::FloatGrid;
using openvdb::FloatTree;

class Stencil final : public OpenVdbStencil {
 public:
  explicit Stencil(const Region& region) : now_(FloatGrid::create(0.0f)) {
    auto accessor = now_->getAccessor();
    const int32_t begin = region.first(), end = begin + region.side();
    for (int32_t x = begin; x < end; ++x) {
      for (int32_t y = begin; y < end; ++y) {
        for (int32_t z = begin; z < end; ++z) {
          if (region.contains(x, y, z)) accessor.setValue({x, y, z}, initial_value(x, y, z));
        }
      }
    }
    next_ = std::make_shared<FloatTree>(now_->tree(), 0.0f, openvdb::TopologyCopy());
    leaves_ = std::make_unique<openvdb::tree::LeafManager<FloatTree>>(*next_);
  }

  void run_stencil() override {
    openvdb::math::SevenPointStencil<FloatGrid> s(*now_);
    for_each([&](const auto& voxel) {
      s.moveTo(voxel.getCoord());
      const float m = s.getValue<0, 0, 0>();
      voxel.setValue(m + kDiffusion * (s.getValue<-1, 0, 0>() + s.getValue<1, 0, 0>() +
                                       s.getValue<0, -1, 0>() + s.getValue<0, 1, 0>() +
                                       s.getValue<0, 0, -1>() + s.getValue<0, 0, 1>() - 6.0f * m));
    });
  }

  void run_accessor() override {
    const auto now = now_->getConstUnsafeAccessor();
    for_each([&](const auto& voxel) {
      const Coord c = voxel.getCoord();
      const float m = now.getValue(c);
      const auto at = [&](int x, int y, int z) { return now.getValue(c.offsetBy(x, y, z)); };
      voxel.setValue(m + kDiffusion * (at(-1, 0, 0) + at(1, 0, 0) + at(0, -1, 0) + at(0, 1, 0) +
                                       at(0, 0, -1) + at(0, 0, 1) - 6.0f * m));
    });
  }

  void run_raw_voxels() override {
    for_each_leaf([](const Around& a, uint8_t mask, int x, int y, float* out) {
      const Row row = a.row(x, y);
      for (; mask != 0; mask &= mask - 1) {
        const int z = __builtin_ctz(mask);
        const float m = row.own[z];
        out[z] = m + kDiffusion * (row.x0[z] + row.x1[z] + row.y0[z] + row.y1[z] +
                                   (z > 0 ? row.own[z - 1] : row.before) +
                                   (z < 7 ? row.own[z + 1] : row.after) - 6.0f * m);
      }
    });
  }

  void run_raw_rows() override {
    for_each_leaf([](const Around& a, uint8_t mask, int x, int y, float* out) {
      const Row row = a.row(x, y);
      float ends[10], result[8];
      ends[0] = row.before, ends[9] = row.after;
      for (int z = 0; z < 8; ++z) ends[z + 1] = row.own[z];
      for (int z = 0; z < 8; ++z) {
        const float m = ends[z + 1];
        result[z] = m + kDiffusion * (row.x0[z] + row.x1[z] + row.y0[z] + row.y1[z] + ends[z] + ends[z + 2] -
                                      6.0f * m);
      }
      for (int z = 0; z < 8; ++z) out[z] = mask >> z & 1 ? result[z] : out[z];
    });
  }

  size_t memory_bytes() const override { return now_->memUsage() + next_->memUsage(); }

  void visit(const std::function<void(int32_t, int32_t, int32_t, float)>& visit) const override {
    for (auto voxel = next_->cbeginValueOn(); voxel; ++voxel) {
      // OpenVDB could keep a tile that has one value everywhere as such; set voxel by voxel it does not.
      const Coord c = voxel.getCoord();
      visit(c.x(), c.y(), c.z(), *voxel);
    }
  }

 private:
  // A row of eight voxels and the rows beside it.
  struct Row {
    const float *own, *x0, *x1, *y0, *y1;
    float before, after;
  };
  // A leaf's buffer and those of its six neighbours.
  struct Around {
    const float *own, *x0, *x1, *y0, *y1, *z0, *z1;
    Row row(int x, int y) const {
      const int n = x * 64 + y * 8;
      return {own + n,
              x > 0 ? own + n - 64 : x0 + 7 * 64 + y * 8,
              x < 7 ? own + n + 64 : x1 + y * 8,
              y > 0 ? own + n - 8 : y0 + x * 64 + 7 * 8,
              y < 7 ? own + n + 8 : y1 + x * 64,
              z0[n + 7],
              z1[n]};
    }
  };

  // Calls back with every row that has an active voxel: the mask of its eight, and where the results go.
  template <class Compute>
  void for_each_leaf(const Compute& compute) {
    static const float zeros[512] = {};
    const auto now = now_->getConstUnsafeAccessor();
    for (size_t i = 0; i < leaves_->leafCount(); ++i) {
      auto& leaf = leaves_->leaf(i);
      const auto buffer = [&](int x, int y, int z) {
        const auto* other = now.probeConstLeaf(leaf.origin().offsetBy(8 * x, 8 * y, 8 * z));
        return other != nullptr ? other->buffer().data() : zeros;
      };
      const Around around{buffer(0, 0, 0), buffer(-1, 0, 0), buffer(1, 0, 0), buffer(0, -1, 0),
                          buffer(0, 1, 0), buffer(0, 0, -1), buffer(0, 0, 1)};
      float* out = leaf.buffer().data();
      for (int x = 0; x < 8; ++x) {
        const uint64_t word = leaf.valueMask().template getWord<uint64_t>(x);
        for (int y = 0; word != 0 && y < 8; ++y) {
          const auto mask = static_cast<uint8_t>(word >> (8 * y));
          if (mask != 0) compute(around, mask, x, y, out + x * 64 + y * 8);
        }
      }
    }
  }

  template <class Compute>
  void for_each(const Compute& compute) {
    for (size_t i = 0; i < leaves_->leafCount(); ++i) {
      for (auto voxel = leaves_->leaf(i).beginValueOn(); voxel; ++voxel) compute(voxel);
    }
  }

  FloatGrid::Ptr now_;
  FloatTree::Ptr next_;
  std::unique_ptr<openvdb::tree::LeafManager<FloatTree>> leaves_;
};

}  // namespace

std::unique_ptr<OpenVdbStencil> make_openvdb_stencil(const Region& region, std::string&) {
  openvdb::initialize();
  return std::make_unique<Stencil>(region);
}

}  // namespace coppice::bench
