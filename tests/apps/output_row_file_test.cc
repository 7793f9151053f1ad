// apps/output/row_layouts.h: shares of a file, written in any order, are the bytes that one writer writes.
#include <algorithm>
#include <numeric>
#include <vector>

#include "apps/output/row_layouts.h"
#include "core/error.h"
#include "tests/apps/geometry_test_files.h"

namespace coppice {
namespace {

// Particles from `first` on, as one of several writers has them.
struct Some {
  Some(uint64_t first, uint64_t n) : position(2 * n), stress(3 * n), material(n) {
    for (size_t i = 0; i < position.size(); ++i) position[i] = 0.5f * static_cast<float>(2 * first + i);
    for (size_t i = 0; i < stress.size(); ++i) stress[i] = -static_cast<float>(3 * first + i);
    for (size_t i = 0; i < n; ++i) material[i] = static_cast<uint8_t>(first + i);
  }
  std::vector<PlyAttribute> attributes() const {
    return {{"position", PlyType::kFloat32, 2, position.data()},
            {"material", PlyType::kUint8, 1, material.data()},
            {"stress", PlyType::kFloat32, 3, stress.data()}};
  }
  std::vector<float> position, stress;
  std::vector<uint8_t> material;
};

// Has the writers of a file write their shares, the last one first; each lays it out for itself.
void write_shares(const std::string& path, size_t n, const std::function<RowFile(size_t)>& lay_out) {
  AtomicFile file(path);
  file.set_size(lay_out(0).size_bytes());
  for (size_t w = n; w-- > 0;) {
    FilePart part(path, file.temporary_path());
    write_rows(lay_out(w), part, w == 0);
    part.finish();
  }
  file.commit();
}

const std::vector<std::vector<uint64_t>> kShares{{0},     {10},         {3, 7}, {0, 10},
                                                 {10, 0}, {2, 0, 5, 3}, {0, 0}, {70000, 50000}};

TEST(RowFile, SharesOfParticlesAreTheFileOfOne) {
  const TemporaryFolder folder;
  for (const std::vector<uint64_t>& sizes : kShares) {
    const uint64_t n = std::accumulate(sizes.begin(), sizes.end(), uint64_t{0});
    const Some all(0, n);
    const VtuOptions options{0.5, {{"stress", {"xx", "yy", "xy"}}}};
    write_particles_ply(folder / "one.ply", all.attributes(), static_cast<int64_t>(n), "sand");
    write_particles_vtu(folder / "one.vtu", all.attributes(), static_cast<int64_t>(n), options);
    std::vector<Some> some;
    std::vector<RowShare> shares;
    for (uint64_t first = 0; const uint64_t size : sizes) {
      some.emplace_back(first, size);
      shares.push_back({first, size, n});
      first += size;
    }
    write_shares(folder / "several.ply", sizes.size(), [&](size_t w) {
      return lay_out_ply("several.ply", some[w].attributes(), shares[w], "sand");
    });
    write_shares(folder / "several.vtu", sizes.size(), [&](size_t w) {
      return lay_out_vtu("several.vtu", some[w].attributes(), shares[w], options);
    });
    for (const std::string type : {"ply", "vtu"})
      EXPECT_TRUE(read_text(folder / ("several." + type)) == read_text(folder / ("one." + type)))
          << type << " of " << sizes.size();
  }
}

TEST(RowFile, SlabsOfABoxAreTheFileOfOne) {
  const TemporaryFolder folder;
  const GridArray density{"density", 1, {}, [](const PointBox& slab, std::span<float> to) {
                            for (const Vec3i& at : {Vec3i(1, 2, 3), Vec3i(4, 4, 4), Vec3i(2, 3, 0)})
                              if (slab.has(at)) to[slab.index(at)] = static_cast<float>(at.sum());
                          }};
  const GridArray velocity{"velocity", 3, {}, [](const PointBox& slab, std::span<float> to) {
                             const Vec3i at(1, 3, 3);
                             if (slab.has(at)) to[slab.index(at) * 3 + 1] = -1;
                           }};
  const std::vector<GridArray> arrays{density, velocity};
  for (const PointBox& box :
       {PointBox{Vec3i(1, 2, 0), Vec3i(5, 4, 5)}, PointBox{Vec3i(0, 1, 0), Vec3i(4, 6, 0)},
        PointBox{Vec3i(1, 3, 0), Vec3i(1, 3, 1)}, PointBox{}}) {
    const VtiGrid grid{box, Vec3f(1, 2, 3), 0.5f, 0.25};
    write_grid_vti(folder / "one.vti", grid, arrays);
    for (const int n : {1, 2, 3, 4, 9}) {
      uint64_t next = 0;
      write_shares(folder / "several.vti", static_cast<size_t>(n),
                   [&](size_t w) { return lay_out_vti(grid, arrays, slab_of(box, static_cast<int>(w), n)); });
      for (int r = 0; r < n; ++r) {
        const PointBox slab = slab_of(box, r, n);
        if (!slab.is_empty()) EXPECT_EQ(box.index(slab.min), next) << "nobody's and double points";
        next += slab.count();
      }
      EXPECT_EQ(next, box.count());
      EXPECT_TRUE(read_text(folder / "several.vti") == read_text(folder / "one.vti")) << n;
    }
  }
}

}  // namespace
}  // namespace coppice
