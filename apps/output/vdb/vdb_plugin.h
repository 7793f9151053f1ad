// The C interface between coppice and libcoppice_vdb.so, the only code that links OpenVDB.
//
// Plain C types, because the two sides may be built by different compilers. Functions return 0, or 1 with a
// text in `error`; no exception crosses.
#pragma once

#include <stddef.h>
#include <stdint.h>

extern "C" {

// Both sides compare it; counts up when a signature changes.
#define COPPICE_VDB_ABI_VERSION 2
int coppice_vdb_abi_version(void);

struct CoppiceVdbGrid {
  const char* name;
  int32_t components;   // 1 or 3
  const float* values;  // f32[n_blocks][b][b][b][components], z fastest, b = 2^block_size_log2
};
// block_origins: i32[n_blocks][3]. The first grid has one component; where it is zero, voxels stay
// inactive in all grids. Writes to `path` directly: the caller renames.
int coppice_write_vdb(const char* path, const struct CoppiceVdbGrid* grids, int64_t n_grids, float voxel_size,
                      const float origin[3], const int32_t* block_origins, int64_t n_blocks,
                      int32_t block_size_log2, char* error, size_t error_bytes);

struct CoppiceVdbSummary {
  int32_t components;  // 1 or 3
  double sum[3];       // of each component
  int64_t n_active;
  int32_t min[3], max[3];  // bounds of the active voxels, inclusive
  double voxel_size[3];
  double origin[3];
};
int coppice_summarize_vdb(const char* path, const char* grid_name, CoppiceVdbSummary* summary, char* error,
                          size_t error_bytes);

}  // extern "C"
