// Watching kernel files and replacing them (see kernel_reload.h).
#include "sparse/kernel_reload.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/process_end.h"
#include "gpu/kernel_builder.h"
#include "gpu/kernel_store.h"
#include "gpu/kernel_versions.h"
#include "sparse/bound_launches.h"

namespace coppice {
namespace {

using Clock = std::chrono::steady_clock;
using Status = KernelReloadStatus::State;

std::string name_of(const KernelBitcode& file) {
  return std::filesystem::path(file.source_file).filename().string();
}

constexpr auto kPeriod = std::chrono::milliseconds(100);
// The clock of files may be off by this much from the process's own: they may be of another machine.
constexpr auto kClocksDiffer = std::chrono::seconds(1);

// The stamp tells whether a file was written: editors replace files, so the inode counts, too.
struct Stamp {
  int64_t seconds = 0, nanoseconds = 0;
  uint64_t bytes = 0, inode = 0;
  bool operator==(const Stamp&) const = default;
  bool is_later_than(const Stamp& o) const {
    return seconds != o.seconds ? seconds > o.seconds : nanoseconds > o.nanoseconds;
  }
};
// Returns nothing while a file is not there: between an editor's two steps.
std::optional<Stamp> stamp_of(const std::filesystem::path& file) {
  struct stat s {};
  if (::stat(file.c_str(), &s) != 0) return std::nullopt;
  return Stamp{s.st_mtim.tv_sec, s.st_mtim.tv_nsec, static_cast<uint64_t>(s.st_size), s.st_ino};
}
// Returns how long ago the file was written, as far as clocks tell.
Clock::duration age_of(const Stamp& stamp) {
  using std::chrono::nanoseconds, std::chrono::seconds;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto age = std::chrono::duration_cast<Clock::duration>(now - seconds(stamp.seconds) -
                                                               nanoseconds(stamp.nanoseconds));
  return std::clamp<Clock::duration>(age, Clock::duration::zero(), kClocksDiffer);
}

// Describes a kernel file that is watched.
struct Watched {
  const KernelBitcode* file;
  KernelRecipe recipe;
  std::vector<std::pair<std::filesystem::path, Stamp>> sources;
  std::optional<Clock::time_point> saved;  // and not compiled since

  std::string name() const { return recipe.source.filename().string(); }
  // Returns whether a source has changed since the last look; then `saved` says when.
  bool look() {
    bool has_changed = false;
    for (auto& [path, known] : sources) {
      const std::optional<Stamp> now = stamp_of(path);
      if (!now || *now == known) continue;
      known = *now;
      saved = Clock::now() - age_of(*now);
      has_changed = true;
    }
    return has_changed;
  }
  // Watches these files, and where `is_all` is false also those watched before. A new one counts as
  // changed if it was written after `read`, when clang may have had it before.
  void watch(const std::vector<std::filesystem::path>& files, bool is_all, const Stamp& read) {
    auto all = is_all ? decltype(sources)() : sources;
    for (const auto& path : files) {
      const auto is_it = [&](const auto& known) { return known.first == path; };
      if (std::any_of(all.begin(), all.end(), is_it)) continue;
      const auto known = std::find_if(sources.begin(), sources.end(), is_it);
      const Stamp now = stamp_of(path).value_or(Stamp());
      const Stamp fresh = now.is_later_than(read) ? Stamp() : now;
      all.emplace_back(path, known != sources.end() ? known->second : fresh);
    }
    sources = std::move(all);
  }
  // Returns the folders of its sources, in which a file may appear that one of them includes.
  std::vector<std::filesystem::path> folders() const {
    std::vector<std::filesystem::path> all;
    for (const auto& [path, known] : sources) all.push_back(path.parent_path());
    return all;
  }
};

Stamp stamp_of(std::chrono::system_clock::time_point time) {
  const auto now = time.time_since_epoch();
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(now);
  const auto part = std::chrono::duration_cast<std::chrono::nanoseconds>(now - whole);
  return {whole.count(), part.count()};
}

// Holds what clang made, on its way to the thread that launches.
struct Built {
  const KernelBitcode* file = nullptr;
  std::string name;
  Clock::time_point saved;
  const KernelVersion* version = nullptr;
};
// Holds the bound launches of a file with the new code, while that is being compiled.
struct Candidate {
  Built built;
  std::vector<std::pair<std::weak_ptr<detail::Bound>, Launch>> launches;

  bool is_ready() const {
    return std::all_of(launches.begin(), launches.end(),
                       [](const auto& l) { return l.second.code.is_available(); });
  }
};

}  // namespace

struct KernelReload::State {
  explicit State(std::function<void()> given) : on_news(std::move(given)) {
    if (is_alone) {
      thread = start_thread([this] { watch(); });
    } else {
      status.text = "kernels are watched by another viewer of this process";
    }
  }
  ~State() {
    if (!is_alone) return;
    let_go();
    if (guard.is_in_child())
      forget_thread(thread);
    else
      thread.join();
    exists = false;
  }
  void let_go() {
    stopping = true;
    { const std::lock_guard lock(mutex); }
    changed->notify_all();
  }

  void watch();
  void add_new_files();
  void add(const KernelBitcode& file);
  void compile(Watched& w);
  bool try_compile(Watched& w, const std::function<bool()>& must_stop);
  void say(const KernelBitcode* of, Status state, std::string text);
  void begin(Built built);
  void drop_candidate();
  void refuse(const KernelBitcode* file, const std::string& name, const std::string& why);
  std::optional<LoadedKernels> install(Candidate& candidate);
  void renew_launches();

  static inline std::atomic<bool> exists{false};
  const bool is_alone = !exists.exchange(true);
  const std::function<void()> on_news;
  const Stamp began = stamp_of(std::chrono::system_clock::now() + kClocksDiffer);  // at the latest
  std::atomic<bool> stopping{false};
  mutable std::mutex mutex;  // of what follows, up to the next blank line
  ThreadsCondition changed;
  KernelReloadStatus status;
  std::map<const KernelBitcode*, std::string> failures;  // of files that have not been loaded since
  std::deque<Built> ready;
  bool must_compile = false;

  std::vector<Watched> watched;  // of the thread
  std::vector<const KernelBitcode*> looked_at;

  std::optional<Candidate> candidate;  // of who polls
  uint64_t generation = kernel_generation();

  const ForkGuard guard;
  const ProcessEndWatch process_end{[this] { return let_go(), nullptr; }};
  std::thread thread;  // last: it uses the above
};

void KernelReload::State::say(const KernelBitcode* of, Status state, std::string text) {
  {
    const std::lock_guard lock(mutex);
    if (state == Status::kFailed) failures[of] = text;
    if (state == Status::kLoaded) failures.erase(of);
    status = {state, std::move(text)};
  }
  if (on_news) on_news();
}

void KernelReload::State::refuse(const KernelBitcode* file, const std::string& name, const std::string& why) {
  log_warning("kernels: {} is not taken: {}", name, why);
  say(file, Status::kFailed, why);
}

// ---- the thread that watches

void KernelReload::State::add(const KernelBitcode& file) {
  Watched w{&file, read_kernel_recipe(std::filesystem::path(file.recipe)), {}, {}};
  // A file saved since the build counts as changed, though nobody looked by then; and a build since the
  // program's beginning was not the program's.
  Stamp built = stamp_of(w.recipe.bitcode).value_or(Stamp());
  if (built.is_later_than(began)) built = began;
  w.watch(kernel_sources(w.recipe, w.recipe.dependencies), true, built);
  log_debug("kernels: {} is watched, with {} headers", w.name(), w.sources.size() - 1);
  watched.push_back(std::move(w));
}

void KernelReload::State::add_new_files() {
  for (const KernelBitcode* const file : noted_kernel_files()) {
    if (std::find(looked_at.begin(), looked_at.end(), file) != looked_at.end()) continue;
    looked_at.push_back(file);
    std::string why;
    try {
      add(*file);
    } catch (const std::exception& error) {
      why = error.what();
      log_info("kernels: {}", why);
    }
    const std::lock_guard lock(mutex);
    if (status.state == Status::kNone) status = {why.empty() ? Status::kWatching : Status::kNone, why};
  }
}

// Returns false where it is to be done again, since a source was saved meanwhile.
bool KernelReload::State::try_compile(Watched& w, const std::function<bool()>& must_stop) {
  const Clock::time_point saved = w.saved.value_or(Clock::now());
  w.saved.reset();
  say(w.file, Status::kCompiling, fmt::format("{} is being compiled", w.name()));
  const Stamp read = stamp_of(std::chrono::system_clock::now() - kClocksDiffer);
  BuiltKernels built;
  std::string why;
  const KernelVersion* version = nullptr;
  try {
    built = wait_build_kernels(w.recipe, known_kernels(*w.file), must_stop);
    const bool is_whole = built.why_not.empty();
    w.watch(built.sources.empty() ? w.folders() : built.sources, is_whole, read);
    if (must_stop()) return false;
    why = built.why_not;
    if (is_whole) version = &make_kernel_version(*w.file, std::move(built));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kCancelled) return false;
    why = error.what();
  } catch (const std::exception& error) {
    why = error.what();
  }
  if (version == nullptr) {
    refuse(w.file, w.name(), why);
    return true;
  }
  {
    const std::lock_guard lock(mutex);
    std::erase_if(ready, [&](const Built& b) { return b.file == w.file; });
    ready.push_back({w.file, w.name(), saved, version});
  }
  if (on_news) on_news();
  return true;
}

// A source that is saved while clang is at work is compiled again at once, but at most a few times: a
// source that is saved all the time would never be finished, nor any other file.
void KernelReload::State::compile(Watched& w) {
  constexpr int kMostRestarts = 3;
  for (int i = 0; !stopping; ++i) {
    const bool may_restart = i < kMostRestarts;
    if (try_compile(w, [&] { return stopping || (may_restart && w.look()); })) return;
  }
}

void KernelReload::State::watch() {
  try {
    remove_dead_build_folders();
  } catch (const Error& error) {
    log_debug("kernels: {}", error.what());
  }
  while (!stopping) {
    add_new_files();
    bool all = false;
    {
      const std::lock_guard lock(mutex);
      all = std::exchange(must_compile, false);
    }
    for (Watched& w : watched) {
      w.look();
      if (all && !w.saved) w.saved = Clock::now();
      if (w.saved && !stopping) compile(w);
    }
    std::unique_lock lock(mutex);
    changed->wait_for(lock, kPeriod, [&] { return stopping || must_compile; });
  }
}

// ---- the thread that launches

// Drops the candidate, and compilations that were begun for it and that nobody else wants.
void KernelReload::State::drop_candidate() {
  if (!candidate) return;
  std::vector<IntrusivePtr<Device>> devices;
  for (const auto& [bound, launch] : candidate->launches) {
    const auto b = bound.lock();
    if (b && std::find(devices.begin(), devices.end(), b->device) == devices.end())
      devices.push_back(b->device);
  }
  candidate.reset();
  for (const IntrusivePtr<Device>& device : devices) device->kernels().drop_unwanted();
}

void KernelReload::State::begin(Built built) {
  drop_candidate();
  std::vector<std::shared_ptr<detail::Bound>> all = BoundLaunches::all();
  std::erase_if(all, [&](const auto& bound) { return bound->request->file != built.file; });
  const bool with_lines = lines_count(codegen_options()) ||
                          std::ranges::any_of(all, [](const auto& b) { return lines_count(b->options); });
  if (stands(*built.file, *built.version, with_lines))
    return say(built.file, Status::kLoaded, fmt::format("{} is as it was", built.name));
  Candidate c{std::move(built), {}};
  try {
    for (const std::shared_ptr<detail::Bound>& bound : all) {
      c.launches.emplace_back(bound, BoundLaunches::prepare_at(*bound, c.built.version));
    }
  } catch (const Error& error) {
    // The new kernel does something that is not allowed with these trees.
    return refuse(c.built.file, c.built.name, error.what());
  }
  candidate = std::move(c);
}

// Returns nothing where the device refuses a launch of it.
std::optional<LoadedKernels> KernelReload::State::install(Candidate& c) {
  std::string why;
  for (const auto& [bound, launch] : c.launches) {
    if (!launch.code.is_error()) continue;
    if (why.empty()) why = launch.code.error().what();
    if (const auto b = bound.lock()) b->device->kernels().remove(std::string(launch.name));
  }
  if (!why.empty()) {
    refuse(c.built.file, c.built.name, why);
    return std::nullopt;
  }
  // Streams look at launches when their turn comes.
  std::vector<Device*> idle;
  for (const auto& [bound, launch] : c.launches) {
    const auto b = bound.lock();
    if (!b || std::find(idle.begin(), idle.end(), b->device.get()) != idle.end()) continue;
    wait(b->device->default_stream().barrier());
    idle.push_back(b->device.get());
  }
  install_kernel_version(*c.built.file, *c.built.version);
  for (auto& [bound, launch] : c.launches) {
    if (const auto b = bound.lock()) b->replace(std::move(launch), c.built.version);
  }
  const double took_s = std::chrono::duration<double>(Clock::now() - c.built.saved).count();
  std::string text = fmt::format("{} loaded in {:.0f} ms", c.built.name, 1e3 * took_s);
  log_info("kernels: {}", text);
  say(c.built.file, Status::kLoaded, std::move(text));
  return LoadedKernels{c.built.name, hash128(c.built.version->bytes).hex(), took_s};
}

// Renews launches that were bound meanwhile, or whose kernel was rejected by a device since.
void KernelReload::State::renew_launches() {
  for (const RejectedKernels& r : take_rejected_kernels()) refuse(r.file, name_of(*r.file), r.why);
  for (const std::shared_ptr<detail::Bound>& bound : BoundLaunches::all()) {
    if (bound->version == current_kernel_version(*bound->request->file)) continue;
    wait(bound->device->default_stream().barrier());
    BoundLaunches::wait_renew(*bound);
  }
}

KernelReload::KernelReload(std::function<void()> on_news)
    : state_(std::make_unique<State>(std::move(on_news))) {}
KernelReload::~KernelReload() = default;

std::vector<LoadedKernels> KernelReload::poll() {
  State& s = *state_;
  std::vector<LoadedKernels> loaded;
  for (;;) {
    std::optional<Built> next;
    {
      const std::lock_guard lock(s.mutex);
      const bool is_newer =
          s.candidate && !s.ready.empty() && s.ready.front().file == s.candidate->built.file;
      if (!s.ready.empty() && (!s.candidate || is_newer)) {
        next = std::move(s.ready.front());
        s.ready.pop_front();
      }
    }
    if (next) s.begin(std::move(*next));
    if (!s.candidate || !s.candidate->is_ready()) break;
    if (auto one = s.install(*s.candidate)) loaded.push_back(std::move(*one));
    s.candidate.reset();
  }
  try {
    for (uint64_t now = kernel_generation(); now != s.generation; now = kernel_generation()) {
      s.renew_launches();
      s.generation = now;
    }
  } catch (const std::exception&) {
    if (loaded.empty()) throw;  // else by the next call, which finds the same
  }
  return loaded;
}

bool KernelReload::is_pending() const { return state_->candidate.has_value(); }

void KernelReload::compile_now() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->must_compile = true;
  }
  state_->changed->notify_all();
}

KernelReloadStatus KernelReload::status() const {
  const std::lock_guard lock(state_->mutex);
  const State& s = *state_;
  if (s.status.state == Status::kCompiling || s.failures.empty()) return s.status;
  return {Status::kFailed, s.failures.begin()->second};
}

std::vector<LoadedKernels> standing_kernels() {
  std::vector<LoadedKernels> standing;
  for (const KernelBitcode* const file : noted_kernel_files()) {
    if (const KernelVersion* const version = current_kernel_version(*file))
      standing.push_back({name_of(*file), hash128(version->bytes).hex()});
  }
  return standing;
}

}  // namespace coppice
