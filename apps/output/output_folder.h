// The folder that a run writes into: names of its files, keeping other runs out of it, and preparing it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/aside_files.h"

namespace coppice {

// Paths of a run's outputs; frames count from 0 and are written with at least four digits.
std::string frame_png_path(const std::string& folder, int64_t frame);      // frame_0000.png
std::string particles_ply_path(const std::string& folder, int64_t frame);  // particles_0000.ply
std::string density_vdb_path(const std::string& folder, int64_t frame);    // density_0000.vdb
std::string particles_vtu_path(const std::string& folder, int64_t frame);  // particles_0000.vtu
std::string grid_vti_path(const std::string& folder, int64_t frame);       // grid_0000.vti
std::string particles_pvd_path(const std::string& folder);                 // particles.pvd
std::string grid_pvd_path(const std::string& folder);                      // grid.pvd
std::string stats_csv_path(const std::string& folder);                     // stats.csv
std::string movie_mp4_path(const std::string& folder);                     // movie.mp4
std::string checkpoint_path(const std::string& folder);                    // state.checkpoint

// Returns true for the base names above, with any number of digits.
bool is_output_name(const std::string& file_name);

// Keeps other runs, of this process too, from writing into a folder while it lives. The kernel holds the lock
// and lets it go when the process ends, however it ends; nothing is left in the folder, and whoever only
// reads is not kept out. On a file system without such locks it keeps nobody out.
class FolderLock {
 public:
  FolderLock() = default;  // of no folder
  // Errors: kUsage when another one has it; kIo when it cannot be opened.
  explicit FolderLock(const std::string& folder);
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;
  ~FolderLock();

  // Returns whether this is the lock of the folder that is at `folder` now.
  bool is_of(const std::string& folder) const;
  // Returns the path, without links, at which the folder was locked; empty: of no folder.
  const std::string& path() const { return path_; }
  // Returns false where the folder was removed or moved since.
  bool is_in_place() const { return is_of(path_); }

 private:
  std::string path_;
  int descriptor_ = -1;
};

// A run's claim to the folder that it writes into.
class OutputFolder {
 public:
  // Refuses a folder that cannot be taken, and touches nothing: made before long work is begun. A folder that
  // is there is locked from here on. Errors: kUsage when it is a file, when another run writes into it, or
  // when an earlier run's outputs are in it and `overwrite` is off, or when a link on the way to it leads
  // nowhere; kIo when it lies in a file or cannot be listed.
  // A run that `resumes` an earlier one leaves its tables and its checkpoint where they are, and the frames
  // up to keep_up_to(), which is called before prepare(); what is behind these is replaced.
  OutputFolder(std::string given, bool overwrite, bool resumes = false);
  void keep_up_to(int64_t frame) { last_kept_ = frame; }
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;
  // Puts back what prepare() has set aside, unless remove_earlier() was called. So does a signal that ends
  // the program.
  ~OutputFolder() = default;

  // Checks once more, creates the folder (and its parents) where none is locked, and locks it. With
  // `overwrite` an earlier run's outputs are set aside, as "<output>.tmp.earlier", and the temporaries of a
  // run that was killed ("<output>.tmp.<...>") removed; nothing else is touched, no subfolder either. Called
  // when the first frame is there to be written: what fails before leaves the earlier one. Errors: as above;
  // kIo when it cannot be created, emptied or written to.
  void prepare();
  // Removes what was set aside. Called when the first frame is on disk. Errors: kIo.
  void remove_earlier();

  // Returns the path that files are written to, after prepare(): of the folder that is locked, without links,
  // since a link may be put onto another folder while the run goes on. It is asked for at each file. Errors:
  // those of require_in_place().
  const std::string& path() const;
  // Errors: kIo when the folder that is locked was removed or moved, so that nobody would find the files.
  void require_in_place() const;
  // Returns the folder's name for messages: as it was given, or, where that leads elsewhere now, its path and
  // how it was given.
  std::string text() const;

 private:
  void lock();
  // Errors: kUsage where an earlier run's outputs are there and may not be replaced.
  void refuse_earlier() const;
  bool is_kept(const std::string& name) const;

  std::string given_;
  bool overwrite_;
  std::optional<int64_t> last_kept_;  // of a run that resumes
  AsideFiles earlier_;
  FolderLock lock_;
};

}  // namespace coppice
