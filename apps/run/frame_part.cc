// Reads, shares out and writes (see frame_part.h).
#include "apps/run/frame_part.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "apps/mpm/agreement.h"
#include "apps/mpm/collect.h"
#include "apps/mpm/snapshot_parts.h"
#include "apps/output/row_layouts.h"
#include "apps/run/scene_points.h"
#include "core/check.h"
#include "core/file_part.h"
#include "core/trace.h"

namespace coppice {
namespace {

// A message is this, and behind it the names of files, each ended by a zero.
struct Call {
  enum class Kind : uint8_t { kRead, kWrite } kind;
  FrameNeeds needs;
};

std::vector<std::byte> message_of(const Call& call, std::string_view names = {}) {
  std::vector<std::byte> message(sizeof call + names.size());
  std::memcpy(message.data(), &call, sizeof call);
  if (!names.empty()) std::memcpy(message.data() + sizeof call, names.data(), names.size());
  return message;
}

}  // namespace

std::vector<std::byte> FramePart::to_read(const FrameNeeds& needs) {
  return message_of({Call::Kind::kRead, needs});
}

std::vector<std::byte> FramePart::to_write(const FrameFiles& files) {
  std::string names;
  for (const FrameFiles::Names& file : files.names) names += file.path + '\0' + file.temporary_path + '\0';
  return message_of({Call::Kind::kWrite, {}}, names);
}

void FramePart::wait_follow(mpm::SolverPart& own, std::span<const std::byte> message) {
  Call call;
  COPPICE_CHECK(message.size() >= sizeof call, "{} bytes", message.size());
  std::memcpy(&call, message.data(), sizeof call);
  if (call.kind == Call::Kind::kRead) return wait_read(own, call.needs);
  FrameFiles files;
  const char* at = reinterpret_cast<const char*>(message.data()) + sizeof call;
  const auto take = [&] {
    std::string name = at;
    at += name.size() + 1;
    return name;
  };
  for (FrameFiles::Names& file : files.names) file.path = take(), file.temporary_path = take();
  wait_write(own, files);
}

void FramePart::wait_read(mpm::SolverPart& own, const FrameNeeds& needs) {
  const TraceScope trace("frame.read");
  if (own.cluster()) rank_ = own.cluster()->rank(), n_ranks_ = own.cluster()->n_ranks();
  volume_rank_ = needs.picture && n_ranks_ > 1 ? 1 : 0;
  read_.reset();
  const std::optional<mpm::SnapshotParts> parts = mpm::parts_to_write(scene_.output, needs.picture);
  const uint64_t n = parts ? own.num_particles() : 0;
  std::vector<uint64_t> ends;
  for (int r = 1; r <= n_ranks_; ++r)
    ends.push_back(n * static_cast<uint64_t>(r) / static_cast<uint64_t>(n_ranks_));
  read_.emplace(scene_, parts ? own.wait_rows(*parts, ends) : mpm::ParticleSnapshot());
  read_->time_s = own.time_s();
  const auto rank = static_cast<size_t>(rank_);
  const uint64_t first = rank == 0 ? 0 : ends[rank - 1];
  read_->rows = {first, ends[rank] - first, n};
  if (needs.vdb) wait_find_volume_writer(own);
  wait_read_grid(own, needs);
  if (!needs.picture) return;
  read_->shown = show_particles(scene_, read_->particles);
  if (own.cluster()) wait_collect_shown(*own.cluster());
}

void FramePart::wait_collect_shown(const Cluster& cluster) {
  // Shares of the order of ids, one behind the other, are all particles in that order.
  ShownParticles& shown = read_->shown;
  read_->shown_positions.assign(shown.positions.begin(), shown.positions.end());
  mpm::wait_collect(cluster, read_->shown_positions);
  mpm::wait_collect(cluster, shown.colors);
  mpm::wait_collect(cluster, shown.looks);
  mpm::wait_collect(cluster, shown.scalar);
  shown.positions = read_->shown_positions;
}

void FramePart::wait_find_volume_writer(mpm::SolverPart& own) {
  if (can_write_volumes_) return;
  std::string why_not;
  if (rank_ == volume_rank_) {
    vdb_.emplace();
    if (!vdb_->is_available()) why_not = vdb_->why_not();
  }
  if (own.cluster()) {
    std::vector<char> text(why_not.begin(), why_not.end());
    mpm::wait_collect(own.cluster(), text);
    if (is_first()) why_not.assign(text.begin(), text.end());
    can_write_volumes_ = own.cluster()->wait_max(why_not.empty() ? 0 : 1) == 0;
  } else {
    can_write_volumes_ = why_not.empty();
  }
  if (is_first() && !why_not.empty()) VdbWriter::warn(why_not);
}

void FramePart::wait_read_grid(mpm::SolverPart& own, const FrameNeeds& needs) {
  if (!needs.vdb && !needs.vti) return;
  const bool has_velocity = needs.vti || scene_.output.fields.velocity;
  WrittenGrid grid =
      wait_read_own_grid(own, scene_.dim, {.velocity = has_velocity}, read_->particles, read_->attributes);
  PointBox box = grid.box();
  if (own.cluster()) box = wait_join_boxes(*own.cluster(), box);
  Vec3f origin = grid.blocks.origin;
  if (scene_.dim == 2) origin.z() = 0;  // where particles are
  read_->grid = {box, origin, grid.blocks.dx, read_->time_s};
  if (!own.cluster()) {
    read_->slab = std::move(grid);
    return;
  }
  if (needs.vdb && writes_volumes())
    read_->volume = wait_send_blocks(*own.cluster(), grid,
                                     [&](int rank, const PointBox&) { return rank == volume_rank_; });
  if (!needs.vti) return;
  read_->slab = wait_send_blocks(*own.cluster(), grid, [&](int rank, const PointBox& nodes) {
    const PointBox slab = slab_of(box, rank, n_ranks_);
    return !slab.is_empty() &&
           !PointBox{slab.min.cwiseMax(nodes.min), slab.max.cwiseMin(nodes.max)}.is_empty();
  });
}

std::optional<RowFile> FramePart::layout(FrameFileKind kind, const std::string& path) const {
  switch (kind) {
    case FrameFileKind::kPly:
      return lay_out_ply(path, read_->attributes.all(), read_->rows, describe_particles(scene_));
    case FrameFileKind::kVtu:
      return lay_out_vtu(path, read_->attributes.shown(), read_->rows,
                         {read_->time_s, read_->attributes.component_names()});
    case FrameFileKind::kVdb:
      return std::nullopt;
    case FrameFileKind::kVti:
      return lay_out_vti(read_->grid, arrays(), slab_of(read_->grid.box, rank_, n_ranks_));
  }
  return std::nullopt;
}

void FramePart::write(const FrameFiles& files) {
  for (size_t f = 0; f < files.names.size(); ++f) {
    const FrameFiles::Names& names = files.names[f];
    const auto kind = static_cast<FrameFileKind>(f);
    if (names.path.empty() || kind == FrameFileKind::kVdb) continue;
    const std::optional<RowFile> rows = layout(kind, names.path);
    FilePart file(names.path, names.temporary_path);
    write_rows(*rows, file, is_first());
    file.finish();
  }
  const FrameFiles::Names& volume = files.names[static_cast<size_t>(FrameFileKind::kVdb)];
  if (!volume.path.empty() && rank_ == volume_rank_) write_volume(volume);
}

void FramePart::wait_write(mpm::SolverPart& own, const FrameFiles& files, const std::function<void()>& more) {
  const TraceScope trace("frame.write_part");
  const auto act = [&] {
    write(files);
    if (more) more();
  };
  if (own.cluster())
    mpm::wait_agreed(*own.cluster(), act);
  else
    act();
  read_.reset();
}

void FramePart::write_volume(const FrameFiles::Names& names) const {
  const WrittenGrid& grid = n_ranks_ > 1 ? *read_->volume : *read_->slab;
  const mpm::DensityBlocks& d = grid.blocks;
  std::vector<Vec3i> blocks(d.origins.size() / 3);
  for (size_t b = 0; b < blocks.size(); ++b)
    blocks[b] = Vec3i(d.origins[3 * b], d.origins[3 * b + 1], d.origins[3 * b + 2]);
  const VdbGrids more(grid);
  vdb_->write_temporary(names.path, names.temporary_path,
                        {"density", d.dx, d.origin, 2, blocks, d.values, more.grids()});
  FilePart(names.path, names.temporary_path).finish();
}

}  // namespace coppice
