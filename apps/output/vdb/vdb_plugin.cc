// libcoppice_vdb.so: writes and sums up OpenVDB files.
#include "apps/output/vdb/vdb_plugin.h"

#include <openvdb/io/File.h>
#include <openvdb/openvdb.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <stdexcept>

namespace {

// Calls `body`, and turns an exception into a text and a 1.
template <class Body>
int guarded(char* error, size_t error_bytes, Body body) {
  errno = 0;
  try {
    openvdb::initialize();
    body();
    return 0;
  } catch (const std::exception& e) {
    // OpenVDB tells of a full disk by what it then fails to do; errno knows better.
    const int reason = errno;
    const bool is_full = reason == ENOSPC || reason == EDQUOT || reason == EFBIG;
    std::snprintf(error, error_bytes, "%s", is_full ? std::strerror(reason) : e.what());
  } catch (...) {
    std::snprintf(error, error_bytes, "unknown error in OpenVDB");
  }
  return 1;
}

void set_value(float& to, const float* from) { to = *from; }
void set_value(openvdb::Vec3s& to, const float* from) { to = openvdb::Vec3s(from[0], from[1], from[2]); }

struct Blocks {
  const int32_t* origins;
  int64_t count;
  int32_t log2;
  const float* mask;  // zero where no voxel is active
};

template <class Grid>
typename Grid::Ptr make_grid(const Blocks& blocks, const CoppiceVdbGrid& from) {
  typename Grid::Ptr grid = Grid::create();
  typename Grid::Accessor accessor = grid->getAccessor();
  const int32_t width = 1 << blocks.log2;
  const float* mask = blocks.mask;
  const float* values = from.values;
  for (int64_t block = 0; block < blocks.count; ++block) {
    const int32_t* origin = blocks.origins + 3 * block;
    const openvdb::Coord low(origin[0], origin[1], origin[2]);
    for (int32_t i = 0; i < width; ++i) {
      for (int32_t j = 0; j < width; ++j) {
        for (int32_t k = 0; k < width; ++k, ++mask, values += from.components) {
          if (*mask == 0.0f) continue;
          typename Grid::ValueType value;
          set_value(value, values);
          accessor.setValue(low.offsetBy(i, j, k), value);
        }
      }
    }
  }
  return grid;
}

openvdb::GridBase::Ptr make_any_grid(const Blocks& blocks, const CoppiceVdbGrid& from) {
  if (from.components == 1) return make_grid<openvdb::FloatGrid>(blocks, from);
  const openvdb::Vec3SGrid::Ptr grid = make_grid<openvdb::Vec3SGrid>(blocks, from);
  grid->setVectorType(openvdb::VEC_CONTRAVARIANT_RELATIVE);
  return grid;
}

// OpenVDB 10 does not look at its stream when it closes it, so a disk that fills up at the last flush goes
// unnoticed: reading the file to its end finds out.
void check_written(const char* path, const openvdb::GridPtrVec& written) {
  openvdb::io::File file(path);
  file.open(/*delayLoad=*/false);
  const openvdb::GridPtrVecPtr grids = file.getGrids();
  bool is_same = grids->size() == written.size();
  for (size_t i = 0; is_same && i < written.size(); ++i)
    is_same = (*grids)[i]->activeVoxelCount() == written[i]->activeVoxelCount();
  if (!is_same) throw std::runtime_error("the file does not hold what was written");
}

// Sums up the voxels of a grid; add(sum, value) adds a value to the components' sums.
template <class Grid, class Add>
void summarize(const Grid& grid, CoppiceVdbSummary& summary, Add add) {
  for (auto voxel = grid.cbeginValueOn(); voxel; ++voxel)
    for (openvdb::Index64 n = voxel.getVoxelCount(); n > 0; --n) add(summary.sum, *voxel);
}

}  // namespace

extern "C" {

int coppice_vdb_abi_version(void) { return COPPICE_VDB_ABI_VERSION; }

int coppice_write_vdb(const char* path, const CoppiceVdbGrid* from, int64_t n_grids, float voxel_size,
                      const float origin[3], const int32_t* block_origins, int64_t n_blocks,
                      int32_t block_size_log2, char* error, size_t error_bytes) {
  return guarded(error, error_bytes, [&] {
    const openvdb::math::Transform::Ptr transform =
        openvdb::math::Transform::createLinearTransform(voxel_size);
    transform->postTranslate(openvdb::Vec3d(origin[0], origin[1], origin[2]));
    const Blocks blocks{block_origins, n_blocks, block_size_log2, from[0].values};
    openvdb::GridPtrVec grids;
    for (int64_t i = 0; i < n_grids; ++i) {
      grids.push_back(make_any_grid(blocks, from[i]));
      grids.back()->setTransform(transform);
      grids.back()->setName(from[i].name);
      grids.back()->setCreator("coppice");
    }
    grids.front()->setGridClass(openvdb::GRID_FOG_VOLUME);
    openvdb::io::File file(path);
    file.write(grids);
    file.close();
    check_written(path, grids);
  });
}

int coppice_summarize_vdb(const char* path, const char* grid_name, CoppiceVdbSummary* summary, char* error,
                          size_t error_bytes) {
  return guarded(error, error_bytes, [&] {
    openvdb::io::File file(path);
    file.open(/*delayLoad=*/false);
    const openvdb::GridBase::Ptr grid = file.readGrid(grid_name);
    *summary = {};
    if (const auto floats = openvdb::gridPtrCast<openvdb::FloatGrid>(grid)) {
      summary->components = 1;
      summarize(*floats, *summary, [](double* sum, float value) { *sum += value; });
    } else if (const auto vectors = openvdb::gridPtrCast<openvdb::Vec3SGrid>(grid)) {
      summary->components = 3;
      summarize(*vectors, *summary, [](double* sum, const openvdb::Vec3s& value) {
        for (int axis = 0; axis < 3; ++axis) sum[axis] += value[axis];
      });
    } else {
      throw std::runtime_error("the grid holds neither floats nor vectors of them");
    }
    summary->n_active = static_cast<int64_t>(grid->activeVoxelCount());
    const openvdb::CoordBBox box = grid->evalActiveVoxelBoundingBox();
    const openvdb::Vec3d origin = grid->indexToWorld(openvdb::Vec3d(0, 0, 0));
    for (int axis = 0; axis < 3; ++axis) {
      summary->min[axis] = box.min()[axis];
      summary->max[axis] = box.max()[axis];
      summary->voxel_size[axis] = grid->voxelSize()[axis];
      summary->origin[axis] = origin[axis];
    }
  });
}

}  // extern "C"
