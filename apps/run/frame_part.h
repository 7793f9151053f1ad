// A rank's part of a frame's files. The first rank says what they are (frame_writer.h); each rank writes its
// share of the particles and of the grid's box, all of them into the same files, and one writes the volume.
//
// Files have particles in the order of their ids, and a rank has its share of that order in memory, whoever
// simulates them. Without ranks the share is the whole. The first rank has besides what a picture shows of
// all particles, the rank of the volume all blocks.
#pragma once
#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/mpm/solver_part.h"
#include "apps/output/row_file.h"
#include "apps/output/vdb_writer.h"
#include "apps/run/frame_view.h"
#include "apps/run/written_grid.h"
#include "apps/run/written_particles.h"
#include "apps/scene/scene.h"

namespace coppice {

enum class FrameFileKind { kPly, kVtu, kVdb, kVti };
inline constexpr size_t kFrameFileKinds = 4;

// The first rank tells all alike what a frame's files need.
struct FrameNeeds {
  bool picture = false, vdb = false, vti = false;
};

// Files that the first rank has made, by their kinds, for all to write; those with empty names are not
// written.
struct FrameFiles {
  struct Names {
    std::string path, temporary_path;  // see core/file_part.h
  };
  std::array<Names, kFrameFileKinds> names;
};

class FramePart {
 public:
  // `scene` must live as long as this object.
  explicit FramePart(const scene::SceneConfig& scene) : scene_(scene) {}

  // Messages, by which the first rank has the others do the same as it does: they wait_follow(). All ranks
  // call the functions that wait together.
  static std::vector<std::byte> to_read(const FrameNeeds& needs);
  static std::vector<std::byte> to_write(const FrameFiles& files);
  void wait_follow(mpm::SolverPart& own, std::span<const std::byte> message);

  // Brings each rank what it will write, as the solver is now. Errors: those of SolverPart's functions.
  void wait_read(mpm::SolverPart& own, const FrameNeeds& needs);
  // Writes what was read, and forgets it. Beside that the first rank does something `more`. Errors: where it
  // fails on some ranks it does so on all (mpm/agreement.h); kIo where a rank cannot write.
  void wait_write(mpm::SolverPart& own, const FrameFiles& files, const std::function<void()>& more = {});

  // These are of what was read. Returns how the files are laid out: the first rank makes them so long. There
  // is no layout of volumes.
  std::optional<RowFile> layout(FrameFileKind kind, const std::string& path) const;
  const ShownParticles& shown() const { return read_->shown; }  // on the first rank, where pictures are drawn
  const PointBox& box() const { return read_->grid.box; }
  std::vector<GridArray> arrays() const {
    return read_->slab ? read_->slab->arrays() : std::vector<GridArray>();
  }
  // Returns whether there is somebody to write volumes; the first rank warns once where there is not.
  bool writes_volumes() const { return can_write_volumes_.value_or(false); }

 private:
  // Each rank has this of a frame between the two calls.
  struct Read {
    Read(const scene::SceneConfig& scene, mpm::ParticleSnapshot share)
        : particles(std::move(share)), attributes(scene, particles) {}
    mpm::ParticleSnapshot particles;
    WrittenParticles attributes;
    RowShare rows;
    double time_s = 0;
    ShownParticles shown;
    std::vector<Vec3f> shown_positions;  // of all ranks' particles
    VtiGrid grid;
    // Blocks in this rank's slab of the box; all of them, on the volume's rank. Without ranks the first has
    // all.
    std::optional<WrittenGrid> slab, volume;
  };

  void wait_read_grid(mpm::SolverPart& own, const FrameNeeds& needs);
  void wait_collect_shown(const Cluster& cluster);
  void wait_find_volume_writer(mpm::SolverPart& own);
  void write(const FrameFiles& files);
  void write_volume(const FrameFiles::Names& names) const;
  bool is_first() const { return rank_ == 0; }

  const scene::SceneConfig& scene_;
  int rank_ = 0, n_ranks_ = 1;
  int volume_rank_ = 0;
  std::optional<VdbWriter> vdb_;  // on that rank
  std::optional<bool> can_write_volumes_;
  std::optional<Read> read_;
};

}  // namespace coppice
