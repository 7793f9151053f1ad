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

openvdb::FloatGrid::Ptr make_grid(const int32_t* block_origins, const float* values, int64_t n_blocks,
                                  int32_t log2) {
  openvdb::FloatGrid::Ptr grid = openvdb::FloatGrid::create(0.0f);
  openvdb::FloatGrid::Accessor accessor = grid->getAccessor();
  const int32_t width = 1 << log2;
  for (int64_t block = 0; block < n_blocks; ++block) {
    const openvdb::Coord low(block_origins[3 * block], block_origins[3 * block + 1],
                             block_origins[3 * block + 2]);
    for (int32_t i = 0; i < width; ++i) {
      for (int32_t j = 0; j < width; ++j) {
        for (int32_t k = 0; k < width; ++k, ++values) {
          if (*values != 0.0f) accessor.setValue(low.offsetBy(i, j, k), *values);
        }
      }
    }
  }
  return grid;
}

// OpenVDB 10 does not look at its stream when it closes it, so a disk that fills up at the last flush goes
// unnoticed: reading the file to its end finds out.
void check_written(const char* path, openvdb::Index64 n_active) {
  openvdb::io::File file(path);
  file.open(/*delayLoad=*/false);
  const openvdb::GridPtrVecPtr grids = file.getGrids();
  if (grids->size() != 1 || grids->front()->activeVoxelCount() != n_active) {
    throw std::runtime_error("the file does not hold what was written");
  }
}

}  // namespace

extern "C" {

int coppice_vdb_abi_version(void) { return COPPICE_VDB_ABI_VERSION; }

int coppice_write_vdb(const char* path, const char* grid_name, float voxel_size, const float origin[3],
                      const int32_t* block_origins, const float* values, int64_t n_blocks,
                      int32_t block_size_log2, char* error, size_t error_bytes) {
  return guarded(error, error_bytes, [&] {
    const openvdb::FloatGrid::Ptr grid = make_grid(block_origins, values, n_blocks, block_size_log2);
    const openvdb::math::Transform::Ptr transform =
        openvdb::math::Transform::createLinearTransform(voxel_size);
    transform->postTranslate(openvdb::Vec3d(origin[0], origin[1], origin[2]));
    grid->setTransform(transform);
    grid->setName(grid_name);
    grid->setGridClass(openvdb::GRID_FOG_VOLUME);
    grid->setCreator("coppice");
    openvdb::io::File file(path);
    file.write(openvdb::GridPtrVec{grid});
    file.close();
    check_written(path, grid->activeVoxelCount());
  });
}

int coppice_summarize_vdb(const char* path, const char* grid_name, CoppiceVdbSummary* summary, char* error,
                          size_t error_bytes) {
  return guarded(error, error_bytes, [&] {
    openvdb::io::File file(path);
    file.open(/*delayLoad=*/false);
    const auto grid = openvdb::gridPtrCast<openvdb::FloatGrid>(file.readGrid(grid_name));
    if (!grid) throw std::runtime_error("the grid does not hold floats");
    *summary = {};
    for (auto voxel = grid->cbeginValueOn(); voxel; ++voxel) {
      summary->sum += static_cast<double>(*voxel) * static_cast<double>(voxel.getVoxelCount());
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
