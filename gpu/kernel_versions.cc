// Versions of kernel files (see kernel_versions.h).
#include "gpu/kernel_versions.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <filesystem>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/error.h"

namespace coppice {
namespace {

struct Installed {
  const KernelVersion* version;
  bool is_rejected = false;
};

struct Versions {
  std::mutex mutex;
  std::vector<std::unique_ptr<const KernelVersion>> made;
  std::unordered_map<const KernelBitcode*, std::vector<Installed>> of_file;  // the oldest first
  std::vector<RejectedKernels> rejected;
  std::vector<const KernelBitcode*> noted;
};
// They are never destroyed: kernels may be launched while the program's other statics are.
Versions& versions() {
  static auto* const all = new Versions;
  return *all;
}
constinit std::atomic<uint64_t> generation{0};

std::string_view take_word(std::string_view& text, char end = ' ') {
  const size_t at = std::min(text.find(end), text.size());
  const std::string_view word = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return word;
}

using FactsByName = std::map<std::string, KernelVersion::Facts, std::less<>>;

// Describes a type that kernels and the program share.
struct SharedType {
  std::string_view layout;  // empty: no kernel looks into it
  std::string_view file;    // a hash of the one that defines it
};
// Holds an interface (gpu/jit/kernel_interface.h) by the names in it.
struct Interface {
  std::map<std::string_view, std::string_view> arguments;
  std::map<std::string_view, SharedType> types;
  std::map<std::string_view, std::string_view> library;  // hashes of headers
  FactsByName facts;
};
Interface parse_interface(std::string_view text) {
  Interface parsed;
  while (!text.empty()) {
    std::string_view line = take_word(text, '\n');
    const std::string_view what = take_word(line);
    if (what == "kernel") {
      const std::string_view name = take_word(line);
      KernelVersion::Facts& facts = parsed.facts[std::string(name)];
      facts.active_only = take_word(line) == "1";
      const std::string_view effects = take_word(line);
      std::from_chars(effects.data(), effects.data() + effects.size(), facts.effects);
      facts.contents = take_word(line);
      parsed.arguments[name] = line;
      continue;
    }
    const std::string_view name = take_word(line, '\t');
    if (what == "library") {
      parsed.library[name] = line;
    } else {
      const std::string_view layout = take_word(line, '\t');
      parsed.types[name] = {layout, line};
    }
  }
  return parsed;
}

// Returns why kernels of interface `now` may not take the place of those of `own`; empty where they may.
std::string why_not(const Interface& own, const Interface& now, std::string_view file) {
  for (const auto& [name, arguments] : own.arguments) {
    const auto found = now.arguments.find(name);
    if (found == now.arguments.end()) return fmt::format("kernel {}.{}: it is gone", file, name);
    if (found->second != arguments) return fmt::format("kernel {}.{}: its arguments changed", file, name);
  }
  for (const auto& [name, type] : own.types) {
    const auto found = now.types.find(name);
    if (found == now.types.end() || found->second.layout.empty()) continue;     // no kernel looks into it
    const bool is_same = type.layout.empty() ? found->second.file == type.file  // nobody knew what it was
                                             : found->second.layout == type.layout;
    if (!is_same) return fmt::format("a type that its kernels share with the program changed ({})", name);
  }
  for (const auto& [header, hash] : own.library) {
    const auto found = now.library.find(header);
    if (found != now.library.end() && found->second != hash)
      return fmt::format("{}, by which kernels and the program work together, changed", header);
  }
  return "";
}

// Is called with the mutex held. Returns the newest that is good, of those before `end`.
const KernelVersion* newest_good(const std::vector<Installed>& all, size_t end) {
  while (end > 0 && all[end - 1].is_rejected) --end;
  return end == 0 ? nullptr : all[end - 1].version;
}
size_t place_of(const std::vector<Installed>& all, const KernelVersion& version) {
  const auto is_it = [&](const Installed& i) { return i.version == &version; };
  return static_cast<size_t>(std::find_if(all.begin(), all.end(), is_it) - all.begin());
}

}  // namespace

const KernelVersion& make_kernel_version(const KernelBitcode& file, BuiltKernels built) {
  const std::string source = std::filesystem::path(file.source_file).filename().string();
  const Interface own = parse_interface(file.interface);
  Interface now = parse_interface(built.interface);
  if (const std::string why = why_not(own, now, file.name); !why.empty())
    throw Error(ErrorCode::kCompile, fmt::format("{}: {}; build the program again", source, why));
  auto version = std::make_unique<KernelVersion>();
  version->file = &file;
  version->bytes = std::move(built.bitcode);
  version->code = file;
  version->code.bitcode = version->bytes;
  version->facts = std::move(now.facts);
  Versions& v = versions();
  const std::lock_guard lock(v.mutex);
  const auto note_same = [&](const KernelBitcode& code, const FactsByName& facts) {
    for (const auto& [name, fact] : version->facts) {
      const auto before = facts.find(name);
      if (before != facts.end() && before->second == fact) version->as_before.emplace(name, &code);
    }
  };
  note_same(file, own.facts);
  for (const auto& other : v.made) {
    if (other->file == &file) note_same(other->code, other->facts);
  }
  return *v.made.emplace_back(std::move(version));
}

std::string known_kernels(const KernelBitcode& file) {
  std::string lines;
  const auto add = [&](const FactsByName& facts) {
    for (const auto& [name, fact] : facts)
      lines += fmt::format("kernel {} {} {} {}\n", name, int{fact.active_only}, fact.effects, fact.contents);
  };
  add(parse_interface(file.interface).facts);
  Versions& v = versions();
  const std::lock_guard lock(v.mutex);
  for (const auto& version : v.made) {
    if (version->file == &file) add(version->facts);
  }
  return lines;
}

uint64_t kernel_generation() { return generation.load(std::memory_order_acquire); }

const KernelVersion* current_kernel_version(const KernelBitcode& file) {
  Versions& v = versions();
  const std::lock_guard lock(v.mutex);
  const auto found = v.of_file.find(&file);
  return found == v.of_file.end() ? nullptr : newest_good(found->second, found->second.size());
}

bool stands(const KernelBitcode& file, const KernelVersion& version, bool with_lines) {
  const KernelVersion* const now = current_kernel_version(file);
  const auto bytes = now != nullptr ? now->code.bitcode : file.bitcode;
  if (std::ranges::equal(bytes, version.code.bitcode)) return true;
  return !with_lines &&
         (now != nullptr ? now->facts : parse_interface(file.interface).facts) == version.facts;
}

const KernelVersion* kernel_version_before(const KernelBitcode& file, const KernelVersion& version) {
  Versions& v = versions();
  const std::lock_guard lock(v.mutex);
  const std::vector<Installed>& all = v.of_file.at(&file);
  return newest_good(all, place_of(all, version));
}

void install_kernel_version(const KernelBitcode& file, const KernelVersion& version) {
  Versions& v = versions();
  const std::lock_guard lock(v.mutex);
  v.of_file[&file].push_back({&version});
  ++generation;
}

void reject_kernel_version(const KernelBitcode& file, const KernelVersion& version, const std::string& why) {
  Versions& v = versions();
  const std::lock_guard lock(v.mutex);
  std::vector<Installed>& all = v.of_file.at(&file);
  Installed& one = all.at(place_of(all, version));
  if (std::exchange(one.is_rejected, true)) return;
  v.rejected.push_back({&file, why});
  ++generation;
}

std::vector<RejectedKernels> take_rejected_kernels() {
  Versions& v = versions();
  const std::lock_guard lock(v.mutex);
  return std::exchange(v.rejected, {});
}

void note_kernel_file(const KernelBitcode& file) {
  if (file.recipe.empty()) return;
  Versions& v = versions();
  const std::lock_guard lock(v.mutex);
  if (std::find(v.noted.begin(), v.noted.end(), &file) == v.noted.end()) v.noted.push_back(&file);
}

std::vector<const KernelBitcode*> noted_kernel_files() {
  Versions& v = versions();
  const std::lock_guard lock(v.mutex);
  return v.noted;
}

}  // namespace coppice
