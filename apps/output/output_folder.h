// The folder that a run writes into: names of its files, and preparing it.
#pragma once

#include <cstdint>
#include <string>

namespace coppice {

// Paths of a run's outputs; frames count from 0 and are written with at least four digits.
std::string frame_png_path(const std::string& folder, int64_t frame);      // frame_0000.png
std::string particles_ply_path(const std::string& folder, int64_t frame);  // particles_0000.ply
std::string density_vdb_path(const std::string& folder, int64_t frame);    // density_0000.vdb
std::string stats_csv_path(const std::string& folder);                     // stats.csv
std::string movie_mp4_path(const std::string& folder);                     // movie.mp4

// True for the base names above, with any number of digits.
bool is_output_name(const std::string& file_name);

// Refuses a folder that cannot be taken, and touches nothing: called before long work is begun. Errors: kUsage when
// `folder` is a file, or when an earlier run's outputs are in it and `overwrite` is off; kIo when it cannot be listed.
void check_output_folder(const std::string& folder, bool overwrite);

// Checks `folder`, then creates it (and its parents). With `overwrite` an earlier run's outputs are removed, with the
// temporaries of a run that was killed ("<output>.tmp.<...>"); nothing else is touched, no subfolder either. Errors:
// those of the check; kIo when it cannot be created, emptied or written to.
void prepare_output_folder(const std::string& folder, bool overwrite);

}  // namespace coppice
