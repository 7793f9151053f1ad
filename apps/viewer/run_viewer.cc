// The viewer's main loop (see run_viewer.h).
#include "apps/viewer/run_viewer.h"

#include <fmt/format.h>

#include "apps/output/output_folder.h"
#include "apps/output/own_files.h"
#include "apps/viewer/log_ring.h"
#include "apps/viewer/still_thread.h"
#include "core/error.h"
#include "core/log.h"
#include "gpu/kernel_store.h"

namespace coppice::viewer {
namespace {

class SessionOf final : public Session {
 public:
  SessionOf(const ViewerRun& run, ViewerBackend& backend)
      : run_(run), backend_(backend), journal_(run.journal) {
    journal_.begin();
    for (const JournalEntry& entry : run.journal_begin) journal_.add(entry);
    thread_.emplace(run.make, options(run));
  }

  const std::string& title() const override { return run_.title; }
  bool post(Command command) override { return thread_->post(std::move(command)); }
  SimulationStatus status() const override { return thread_->status(); }
  Reports reports() const override { return thread_->reports(); }
  std::vector<std::shared_ptr<const LogLine>> log_lines(uint64_t after) const override {
    return log_.lines(after);
  }
  void log(LogLevel level, const std::string& text) override { log_.add(level, text); }
  CompileStatus compile_status() const override {
    const KernelStore::Progress p = KernelStore::progress();
    return {p.asked, p.done(), p.compiled, p.seconds};
  }
  bool has_more() const override { return thread_->has_more(); }
  std::vector<Parameter> parameters() const override { return thread_->parameters(); }
  render::Camera first_camera(const Snapshot& s, float aspect) const override {
    if (run_.first_camera) return run_.first_camera(s, aspect);
    return s.dim == 2 ? render::frame_domain_2d(s.domain, aspect) : render::frame_domain_3d(s.domain, aspect);
  }
  bool has_camera_path() const override { return run_.has_camera_path; }
  render::Camera camera_at(const std::vector<render::CameraKey>& keys, double time_s) const override {
    return render::camera_at(keys, time_s);
  }
  std::unique_ptr<LiveView> make_live_view(const render::GlFunctions& gl) const override {
    return viewer::make_live_view(gl);
  }
  std::string write_screenshot(const Snapshot& snapshot, const render::Camera& camera,
                               const ViewOptions& options, int width, int height) noexcept override {
    try {
      const std::filesystem::path& folder = run_.screenshot_folder;
      if (!folder.empty()) std::filesystem::create_directories(folder);
      const FolderLock lock(folder.empty() ? "." : folder.string());
      std::filesystem::path file;
      for (int i = 0; file.empty() || std::filesystem::exists(file); ++i)
        file = folder / fmt::format("view_{:04d}.png", i);
      render::write_png(stills_.render(snapshot, camera, width, height, options), file.string());
      return file.string();
    } catch (const std::exception& e) {
      return fmt::format("no picture: {}", e.what());
    }
  }

  bool has_still(const Snapshot& snapshot, const ViewOptions& options) const override {
    return has_still_scene(snapshot, options);
  }
  void ask_still(uint64_t number, std::shared_ptr<const Snapshot> snapshot, const render::Camera& camera,
                 const ViewOptions& options, int width, int height) override {
    if (!still_thread_) still_thread_.emplace([this] { backend_.wake(); });
    still_thread_->ask(number, std::move(snapshot), camera, options, width, height);
  }
  void forget_still() override {
    if (still_thread_) still_thread_->forget();
  }
  std::optional<Still> take_still() override { return still_thread_ ? still_thread_->take() : std::nullopt; }

  Film* begin_film(std::string& why) noexcept override {
    try {
      if (!run_.screenshot_folder.empty()) std::filesystem::create_directories(run_.screenshot_folder);
      std::filesystem::path folder;
      for (int i = 0; folder.empty() || !std::filesystem::create_directory(folder); ++i)
        folder = run_.screenshot_folder / fmt::format("film_{:04d}", i);
      return films_.emplace_back(std::make_unique<FilmWriter>(folder)).get();
    } catch (const std::exception& e) {
      why = fmt::format("no film: {}", e.what());
      return nullptr;
    }
  }

  std::shared_ptr<const Snapshot> take() { return thread_->take(); }
  // Ends the simulation. Errors: what writing the journal met.
  void wait_end() {
    forget_still();  // while the steps under way end
    thread_.reset();
    if (journal_failure_) std::rethrow_exception(journal_failure_);
  }

 private:
  SimulationThreadOptions options(const ViewerRun& run) {
    SimulationThreadOptions o = run.options;
    o.on_news = [this] { backend_.wake(); };
    // A disk that is full must not stop the simulation.
    o.journal = [this](uint64_t steps, const Command& c) {
      try {
        if (!journal_failure_) journal_.add({steps, c});
      } catch (const Error& error) {
        log_warning("the journal ends here: {}", error.what());
        journal_failure_ = std::current_exception();
      }
    };
    return o;
  }

  const ViewerRun& run_;
  ViewerBackend& backend_;
  LogRing log_;
  const LogCopy log_copy_{log_};
  JournalWriter journal_;  // used by the simulation's thread alone, as the next one, while that runs
  std::exception_ptr journal_failure_;
  StillRenderer stills_;
  std::optional<StillThread> still_thread_;
  std::vector<std::unique_ptr<FilmWriter>> films_;
  std::optional<SimulationThread> thread_;
};

// The back end's loop, until it is closed or stopped.
ViewerOutcome show_until_closed(SessionOf& session, ViewerBackend& backend, const std::atomic<bool>& stop) {
  while (!stop.load(std::memory_order_relaxed)) {
    if (!backend.poll(session)) return ViewerOutcome::kClosed;
    if (!backend.wants_snapshot()) continue;
    if (std::shared_ptr<const Snapshot> next = session.take()) backend.show(std::move(next));
  }
  return ViewerOutcome::kStopped;
}

}  // namespace

ViewerOutcome run_viewer(const ViewerRun& run, ViewerBackend& backend, const std::atomic<bool>& stop) {
  refuse_output("--journal", run.journal.string(), run.screenshot_folder.string());
  SessionOf session(run, backend);
  ViewerOutcome outcome = ViewerOutcome::kStopped;
  std::exception_ptr failure;
  try {
    outcome = show_until_closed(session, backend, stop);
  } catch (...) {
    failure = std::current_exception();  // a disk that is full must not take the journal along
  }
  const SimulationStatus last = session.status();
  try {
    session.wait_end();
  } catch (const Error& error) {
    if (!failure && last.state != RunState::kFailed) throw;
    log_warning("{}", error.what());
  }
  if (failure) std::rethrow_exception(failure);
  if (last.state == RunState::kFailed) throw Error(last.error, last.message);
  if (last.replay_refused > 0)
    throw Error(ErrorCode::kUsage,
                fmt::format("of the journal, {} command{} refused, the first: {}", last.replay_refused,
                            last.replay_refused == 1 ? " was" : "s were", last.replay_refusal));
  return last.state == RunState::kEnded ? ViewerOutcome::kEnded : outcome;
}

}  // namespace coppice::viewer
