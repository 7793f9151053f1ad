// Writes and checks checkpoints (see checkpoint_file.h).
#include "apps/run/checkpoint_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/read_file.h"

namespace coppice {
namespace {

// The file has: this line, the version's line, the scene's hash in hex and a line break, the state, and the
// hash of all that comes before, 16 bytes.
constexpr std::string_view kMagic = "coppice checkpoint 1\n";

std::string identity_of(const SceneIdentity& of) {
  Hasher hasher;
  hasher.update(of.scene.text);
  for (const std::string& assignment : of.assignments) hasher.update(assignment);
  const auto add_mesh = [&](const std::filesystem::path& path) {
    std::string bytes;
    if (!path.empty() && read_file(path.string(), bytes) == 0)
      hasher.update(bytes);  // else the scene has failed
  };
  for (const scene::Emitter& emitter : of.scene.emitters) add_mesh(emitter.mesh_path);
  for (const scene::Collider& collider : of.scene.colliders) add_mesh(collider.mesh_path);
  return hasher.hex();
}

std::string head_of(const SceneIdentity& scene) {
  return fmt::format("{}{}\n{}\n", kMagic, COPPICE_VERSION, identity_of(scene));
}

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw Error(ErrorCode::kUsage, why, {path});
}

// Takes a line off the front.
std::string_view take_line(const std::string& path, std::string_view& text) {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos) refuse(path, "the checkpoint is damaged: it ends too early");
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

}  // namespace

void write_checkpoint(const std::string& path, const SceneIdentity& scene,
                      const mpm::Checkpoint& checkpoint) {
  AtomicFile file(path);
  Hasher hasher;
  const auto write = [&](std::span<const std::byte> bytes) {
    hasher.update(bytes);
    file.write(bytes);
  };
  const std::string head = head_of(scene);
  write(std::as_bytes(std::span(head)));
  encode(checkpoint, write);
  const Hash128 sum = hasher.digest();
  file.write(std::as_bytes(std::span(&sum, 1)));
  file.commit();
}

mpm::Checkpoint read_checkpoint(const std::string& path, const SceneIdentity& scene) {
  constexpr size_t kMostBytes = size_t{1} << 40;
  std::string bytes;
  if (const int problem = read_file(path, bytes, kMostBytes); problem == ENOENT)
    refuse(path, "there is no checkpoint to go on from; a run with --checkpoint N leaves one");
  else if (problem != 0)
    refuse(path, fmt::format("cannot read the checkpoint: {}", why_unread(problem, kMostBytes)));
  if (!bytes.starts_with(kMagic)) refuse(path, "this is no checkpoint");
  std::string_view text = bytes;
  Hash128 sum;
  if (text.size() < kMagic.size() + sizeof sum) refuse(path, "the checkpoint is damaged: it ends too early");
  std::memcpy(&sum, text.data() + text.size() - sizeof sum, sizeof sum);
  text.remove_suffix(sizeof sum);
  if (hash128(std::as_bytes(std::span(text))) != sum)
    refuse(path, "the checkpoint is damaged: its checksum is another");
  text.remove_prefix(kMagic.size());
  if (const std::string_view version = take_line(path, text); version != COPPICE_VERSION)
    refuse(path, fmt::format("the checkpoint is of coppice {}, and this is {}", version, COPPICE_VERSION));
  if (take_line(path, text) != identity_of(scene))
    refuse(
        path,
        "the checkpoint is of another scene: its file, a mesh or what is set with --set has changed since");
  try {
    return mpm::decode(std::as_bytes(std::span(text)));
  } catch (const Error& error) {
    refuse(path, error.message());
  }
}

}  // namespace coppice
