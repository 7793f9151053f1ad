// Watching kernel files and replacing them (see kernel_reload.h).
#include "sparse/kernel_reload.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/hash.h"
#include "core/log.h"
#include "gpu/kernel_builder.h"
#include "gpu/kernel_store.h"
#include "gpu/kernel_versions.h"
#include "sparse/bound_launches.h"

namespace coppice {
namespace {

using Clock = std::chrono::steady_clock;
using Status = KernelReloadStatus::State;

constexpr auto kPeriod = std::chrono::milliseconds(250);

// What tells that a file was written: editors replace files, so the inode counts, too.
struct Stamp {
  int64_t seconds = 0, nanoseconds = 0;
  uint64_t bytes = 0, inode = 0;
  bool operator==(const Stamp&) const = default;
  bool is_later_than(const Stamp& o) const {
    return seconds != o.seconds ? seconds > o.seconds : nanoseconds > o.nanoseconds;
  }
};
// Nothing while a file is not there: between an editor's two steps.
std::optional<Stamp> stamp_of(const std::filesystem::path& file) {
  struct stat s {};
  if (::stat(file.c_str(), &s) != 0) return std::nullopt;
  return Stamp{s.st_mtim.tv_sec, s.st_mtim.tv_nsec, static_cast<uint64_t>(s.st_size), s.st_ino};
}
// How long ago it was written, at most a second: clocks of files may be of elsewhere.
Clock::duration age_of(const Stamp& stamp) {
  using std::chrono::nanoseconds, std::chrono::seconds;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto age = std::chrono::duration_cast<Clock::duration>(now - seconds(stamp.seconds) -
                                                               nanoseconds(stamp.nanoseconds));
  return std::clamp<Clock::duration>(age, Clock::duration::zero(), seconds(1));
}

// A kernel file that is watched.
struct Watched {
  const KernelBitcode* file;
  KernelRecipe recipe;
  std::vector<std::pair<std::filesystem::path, Stamp>> sources;

  std::string name() const { return recipe.source.filename().string(); }
  // When it was saved, if a source is not what it was.
  std::optional<Clock::time_point> look() {
    std::optional<Clock::time_point> saved;
    for (auto& [path, known] : sources) {
      const std::optional<Stamp> now = stamp_of(path);
      if (!now || *now == known) continue;
      known = *now;
      saved = Clock::now() - age_of(*now);
    }
    return saved;
  }
  void watch(const std::vector<std::filesystem::path>& files) {
    std::vector<std::pair<std::filesystem::path, Stamp>> all;
    for (const auto& path : files) {
      const auto is_it = [&](const auto& known) { return known.first == path; };
      const auto known = std::find_if(sources.begin(), sources.end(), is_it);
      // One that is new was there when clang read it.
      all.emplace_back(path, known != sources.end() ? known->second : stamp_of(path).value_or(Stamp()));
    }
    sources = std::move(all);
  }
};

// What clang made, on its way to the thread that launches.
struct Built {
  const KernelBitcode* file = nullptr;
  std::string name;
  Clock::time_point saved;
  const KernelVersion* version = nullptr;
};
// Its bound launches with the new code, while that is being compiled.
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
  explicit State(std::function<void()> given) : on_news(std::move(given)), thread([this] { watch(); }) {}
  ~State() {
    stopping = true;
    { const std::lock_guard lock(mutex); }
    changed.notify_all();
    thread.join();
  }

  void watch();
  void add_new_files();
  void compile(Watched& w, Clock::time_point saved);
  void say(Status state, std::string text);
  void begin(Built built);
  void refuse(const std::string& name, const std::string& why);
  std::optional<LoadedKernels> install(Candidate& candidate);
  void renew_launches();

  const std::function<void()> on_news;
  std::atomic<bool> stopping{false};
  mutable std::mutex mutex;  // of what follows, up to the next blank line
  std::condition_variable changed;
  KernelReloadStatus status;
  std::deque<Built> ready;
  bool must_compile = false;

  std::vector<Watched> watched;  // of the thread
  std::vector<const KernelBitcode*> looked_at;

  std::optional<Candidate> candidate;  // of who polls
  uint64_t generation = kernel_generation();

  std::thread thread;  // last: it uses the above
};

void KernelReload::State::say(Status state, std::string text) {
  {
    const std::lock_guard lock(mutex);
    status = {state, std::move(text)};
  }
  if (on_news) on_news();
}

void KernelReload::State::refuse(const std::string& name, const std::string& why) {
  log_warning("kernels: {} is not taken: {}", name, why);
  say(Status::kFailed, why);
}

// ---- the thread that watches

void KernelReload::State::add_new_files() {
  for (const KernelBitcode* const file : noted_kernel_files()) {
    if (std::find(looked_at.begin(), looked_at.end(), file) != looked_at.end()) continue;
    looked_at.push_back(file);
    try {
      Watched w{file, read_kernel_recipe(std::filesystem::path(file->recipe)), {}};
      w.watch(kernel_sources(w.recipe, w.recipe.dependencies));
      // What was saved since the build is a change, though nobody looked by then.
      const Stamp built = stamp_of(w.recipe.bitcode).value_or(Stamp());
      for (auto& [path, known] : w.sources) {
        if (known.is_later_than(built)) known = Stamp();
      }
      log_debug("kernels: {} is watched, with {} headers", w.name(), w.sources.size() - 1);
      watched.push_back(std::move(w));
      const std::lock_guard lock(mutex);
      if (status.state == Status::kNone) status = {Status::kWatching, {}};
    } catch (const Error& error) {
      log_info("kernels: {}", error.what());
      const std::lock_guard lock(mutex);
      if (status.state == Status::kNone) status.text = error.what();
    }
  }
}

// What is saved while clang is at work is compiled again, and what clang had read of it is dropped.
void KernelReload::State::compile(Watched& w, Clock::time_point saved) {
  for (;;) {
    say(Status::kCompiling, fmt::format("{} is being compiled", w.name()));
    std::string why;
    const KernelVersion* version = nullptr;
    try {
      BuiltKernels built = wait_build_kernels(w.recipe, stopping);
      w.watch(built.sources);
      version = &make_kernel_version(*w.file, std::move(built));
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kCancelled) return;
      why = error.what();
    }
    if (const auto again = w.look()) {
      saved = *again;
      continue;
    }
    if (version == nullptr) return refuse(w.name(), why);
    {
      const std::lock_guard lock(mutex);
      std::erase_if(ready, [&](const Built& b) { return b.file == w.file; });
      ready.push_back({w.file, w.name(), saved, version});
    }
    if (on_news) on_news();
    return;
  }
}

void KernelReload::State::watch() {
  while (!stopping) {
    add_new_files();
    bool all = false;
    {
      const std::lock_guard lock(mutex);
      all = std::exchange(must_compile, false);
    }
    for (Watched& w : watched) {
      std::optional<Clock::time_point> saved = w.look();
      if (all && !saved) saved = Clock::now();
      if (saved && !stopping) compile(w, *saved);
    }
    std::unique_lock lock(mutex);
    changed.wait_for(lock, kPeriod, [&] { return stopping || must_compile; });
  }
}

// ---- the thread that launches

void KernelReload::State::begin(Built built) {
  candidate.reset();
  Candidate c{std::move(built), {}};
  try {
    for (const std::shared_ptr<detail::Bound>& bound : BoundLaunches::all()) {
      if (bound->request->file != c.built.file) continue;
      c.launches.emplace_back(bound, BoundLaunches::prepare_at(*bound, c.built.version));
    }
  } catch (const Error& error) {
    return refuse(c.built.name, error.what());  // what it does now is not allowed with these trees
  }
  candidate = std::move(c);
}

// Nothing where the device refuses a launch of it.
std::optional<LoadedKernels> KernelReload::State::install(Candidate& c) {
  std::string why;
  for (const auto& [bound, launch] : c.launches) {
    if (!launch.code.is_error()) continue;
    if (why.empty()) why = launch.code.error().what();
    if (const auto b = bound.lock()) b->device->kernels().remove(std::string(launch.name));
  }
  if (!why.empty()) {
    refuse(c.built.name, why);
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
    const auto b = bound.lock();
    if (!b) continue;
    b->launch = make_intrusive<SharedLaunch>(std::move(launch));
    b->version = c.built.version;
  }
  const double took_s = std::chrono::duration<double>(Clock::now() - c.built.saved).count();
  std::string text = fmt::format("{} loaded in {:.0f} ms", c.built.name, 1e3 * took_s);
  log_info("kernels: {}", text);
  say(Status::kLoaded, std::move(text));
  return LoadedKernels{c.built.name, hash128(c.built.version->bytes).hex(), took_s};
}

// Launches that were bound meanwhile, or whose kernel was rejected by a device since.
void KernelReload::State::renew_launches() {
  for (const RejectedKernels& r : take_rejected_kernels())
    refuse(std::filesystem::path(r.file->source_file).filename().string(), r.why);
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
  while (kernel_generation() != s.generation) {
    s.generation = kernel_generation();
    s.renew_launches();
  }
  return loaded;
}

bool KernelReload::is_pending() const { return state_->candidate.has_value(); }

void KernelReload::compile_now() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->must_compile = true;
  }
  state_->changed.notify_all();
}

KernelReloadStatus KernelReload::status() const {
  const std::lock_guard lock(state_->mutex);
  return state_->status;
}

}  // namespace coppice
