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

  void visit(const std::function<void(int32_t, int32_t, int32_t, float)>& visit) const override {
    for (auto voxel = next_->cbeginValueOn(); voxel; ++voxel) {
      // Where a whole tile has one value, OpenVDB could keep it as such; set voxel by voxel it does not.
      const Coord c = voxel.getCoord();
      visit(c.x(), c.y(), c.z(), *voxel);
    }
  }

 private:
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
