// The window's loop, its keys, and the entry points of the plugin.
#include "apps/viewer/window/window_backend.h"

#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>
#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <utility>

#include "apps/viewer/window/window_plugin.h"

namespace coppice::viewer {
namespace {

constexpr double kFrame_s = 1.0 / 60;
constexpr double kNews_s = 0.1;          // numbers alone are drawn anew so often
constexpr double kIdle_s = 0.1;          // ViewerBackend::poll waits no longer
constexpr double kCursor_s = 0.5;        // a text cursor blinks
constexpr float kLongestStep_s = 0.25f;  // of flight in one frame, after a pause
constexpr int kFramesBehindInput = 3;    // Dear ImGui sees a press, then a release, then settles
constexpr float kSelectionRadii = 20;    // around a picked point
constexpr double kRest_s = 0.4;          // until a still picture is worth its time
constexpr double kNotice_s = 20;         // what the window says is in the log then, and out of the way

bool is_same(const render::Camera& a, const render::Camera& b) {
  return a.position == b.position && a.look_at == b.look_at && a.fov_deg == b.fov_deg &&
         a.height_m == b.height_m;
}

}  // namespace

WindowBackend::WindowBackend(const char* title, int width, int height, LoadGl load_gl)
    : window_(title, width, height) {
  std::array<char, 512> error{};
  if (load_gl(glfwGetProcAddress, &gl_, error.data(), error.size()) != 0)
    throw std::runtime_error(error.data());
}

WindowBackend::~WindowBackend() {
  window_.make_current();
  picture_.reset();
}

bool WindowBackend::wants_snapshot() const {
  return !is_frozen_ && !window_.should_close() && !window_.pixels().isZero();
}

void WindowBackend::show(std::shared_ptr<const Snapshot> snapshot) {
  if (!is_frozen_) offered_ = std::move(snapshot);
}

void WindowBackend::wake() {
  has_news_ = true;
  glfwPostEmptyEvent();
}

bool WindowBackend::poll(Session& session) {
  try {
    start(session);
    sleep();
    if (window_.pixels().isZero()) {
      ui_->sees_instrument = false;
      post_watch(*ui_);
    }
    update_still();
    if (!window_.should_close() && is_due()) redraw();
  } catch (const std::exception& e) {
    if (ui_ && ui_->notice != e.what()) {
      ui_->notice = e.what();
      frames_owed_ = 1;
    }
  }
  if (!window_.should_close()) return true;
  window_.hide();  // steps under way may take a while to end
  return false;
}

void WindowBackend::start(Session& session) {
  window_.make_current();
  if (ui_) return;
  ui_ = std::make_unique<Ui>(Ui{.session = session});
  ui_->scale = window_.ui_scale();
  try {
    const auto blit = reinterpret_cast<PFNGLBLITFRAMEBUFFERPROC>(glfwGetProcAddress("glBlitFramebuffer"));
    if (blit == nullptr) throw std::runtime_error("this OpenGL driver lacks glBlitFramebuffer");
    picture_ = std::make_unique<Picture>(gl_, blit, session.make_live_view(gl_));
  } catch (const std::exception& e) {
    ui_->picture_error = e.what();
  }
}

void WindowBackend::sleep() {
  const double next_s = drawn_s_ + kFrame_s;
  window_.wait(has_work() ? next_s - glfwGetTime() : kIdle_s);
  // Events within a frame are gathered, not drawn one by one.
  if (window_.take_touched()) frames_owed_ = kFramesBehindInput;
  if (frames_owed_ == 0 && !offered_ && !hand_.is_acting()) return;
  while (glfwGetTime() < next_s && !window_.should_close()) window_.wait(next_s - glfwGetTime());
}

bool WindowBackend::is_due() {
  if (window_.take_touched()) frames_owed_ = kFramesBehindInput;
  if (window_.pixels().isZero()) return false;
  const double since_s = glfwGetTime() - drawn_s_;
  if (has_news_ && since_s >= kNews_s) return true;
  // Kernels are compiled then, which tells no news.
  if (ui_->status.state == RunState::kStarting && since_s >= kNews_s) return true;
  if (ImGui::GetIO().WantTextInput && since_s >= kCursor_s) return true;
  if (!ui_->notice.empty() && glfwGetTime() - noticed_s_ >= kNotice_s) return true;
  return has_work();
}

// Returns whether the next frame has anything to do, beside numbers.
bool WindowBackend::has_work() const {
  return frames_owed_ > 0 || offered_ || (picture_ && !picture_->is_complete()) || ui_->camera.is_moving() ||
         hand_.is_acting();
}

void WindowBackend::redraw() {
  has_news_ = false;
  frames_owed_ = std::max(frames_owed_ - 1, 0);
  const double now = glfwGetTime();
  const float step_s = std::min(static_cast<float>(now - drawn_s_), kLongestStep_s);
  drawn_s_ = now;
  Ui& ui = *ui_;
  ui.status = ui.session.status();
  ui.reports = ui.session.reports();
  ui.parameters = ui.session.parameters();
  if (ui.status.obeyed >= ui.pause_number) ui.wants_pause.reset();
  const KernelReloadStatus& kernels = ui.status.kernels;
  if (std::exchange(kernels_, kernels.text) != kernels.text &&
      kernels.state == KernelReloadStatus::State::kLoaded)
    ui.notice = kernels.text;  // which goes by itself
  if (std::exchange(noticed_, ui.notice) != ui.notice) noticed_s_ = now;
  if (now - noticed_s_ >= kNotice_s) ui.notice.clear();
  ui.widgets.begin_frame();
  window_.begin_ui();
  // Input is about the picture that was seen: a new snapshot has none to pick from before it is drawn.
  handle_input();
  attempt([&] { take_shown(); });
  ui.camera.advance(step_s);
  attempt([&] { place_camera(); });
  draw_picture();
  attempt([&] { add_to_film(); });
  hand_.draw(ui);
  ui.sees_instrument = false;
  if (ui.has_panels) draw_panels();
  post_watch(ui);
  ui.log.keep(ui);
  window_.end_ui();
  ask();
  publish();
}

// An error of the picture is said beside it: the frame of the panels is ended in any case.
template <class F>
void WindowBackend::attempt(F&& act) {
  try {
    act();
  } catch (const std::exception& e) {
    ui_->picture_error = e.what();
  }
}

void WindowBackend::take_shown() {
  if (!offered_) return;
  Ui& ui = *ui_;
  ui.shown = std::exchange(offered_, nullptr);
  ui.ranges.clear();
  ui.volume_ranges.clear();
  if (!ui.camera.has_begun()) ui.follows_path = ui.session.has_camera_path();
  if (picture_) picture_->show(ui.shown);
}

// Until a hand leads the camera, it goes through keyframes, or sees the domain as that is known by now.
void WindowBackend::place_camera() {
  Ui& ui = *ui_;
  if (!ui.shown) return;
  if (ui.camera.has_begun() && ui.camera.is_led_by_hand()) {
    ui.follows_path = false;
    placed_.reset();
    return;
  }
  const Vec2f size = window_.size().cast<float>();
  const bool follows = ui.follows_path && ui.has_path();
  const Aabb3f& domain = ui.shown->domain;
  if (!follows && ui.camera.has_begun() && domain.min == framed_.min && domain.max == framed_.max) return;
  const render::Camera wanted = follows && !ui.camera_keys.empty()
                                    ? ui.session.camera_at(ui.camera_keys, ui.shown->time_s)
                                    : ui.session.first_camera(*ui.shown, size.x() / size.y());
  framed_ = domain;
  // A picture of the same view goes on where it was.
  if (placed_ && is_same(wanted, *placed_)) return;
  placed_ = wanted;
  ui.camera.set_viewport(size.x(), size.y());
  ui.camera.begin(wanted);
}

// Asks for what is to be seen and is not in every snapshot.
void WindowBackend::ask() {
  const ViewOptions& view = ui_->view;
  const Wanted wanted{.trees = view.shows_trees,
                      .volumes = view.shows_volumes,
                      .grid = view.shows_volumes ? view.grid : std::string(),
                      .cell_m = view.cell_m};
  if (!(wanted == asked_) && ui_->post(Want{wanted})) asked_ = wanted;
}

void WindowBackend::handle_input() {
  const ImGuiIO& io = ImGui::GetIO();
  const Vec2f size = window_.size().cast<float>();
  ui_->camera.set_viewport(size.x(), size.y());
  for (const InputEvent& event : window_.take_events()) {
    if (event.kind == InputEvent::Kind::kKey && event.action != GLFW_RELEASE) attempt([&] { press(event); });
    if (!ui_->camera.has_begun()) continue;
    if (!io.WantCaptureMouse && scroll_slice(event)) continue;
    if (hand_.handle(event, io.WantCaptureMouse, *ui_)) continue;
    if (const auto clicked = mouse_.handle(event, io.WantCaptureMouse, ui_->camera))
      attempt([&] { click(*clicked); });
  }
  attempt([&] {
    hand_.update(
        io.WantCaptureMouse, [this](const Vec2f& at) { return seen_at(at, pick(at)); }, *ui_);
  });
}

// The wheel moves the slice whose key is held.
bool WindowBackend::scroll_slice(const InputEvent& event) {
  if (event.kind != InputEvent::Kind::kScroll) return false;
  for (const int key : {GLFW_KEY_X, GLFW_KEY_Y, GLFW_KEY_Z}) {
    if (!mouse_.is_held(key)) continue;
    ui_->move_slice(key - GLFW_KEY_X, event.notches);
    return true;
  }
  return false;
}

void WindowBackend::press(const InputEvent& event) {
  if (ImGui::GetIO().WantTextInput) return;  // it is typed into a field
  Ui& ui = *ui_;
  const bool has_shift = (event.mods & GLFW_MOD_SHIFT) != 0;
  if (event.code == GLFW_KEY_LEFT_BRACKET) return ui.move_slice(ui.slice_axis, -1);
  if (event.code == GLFW_KEY_RIGHT_BRACKET) return ui.move_slice(ui.slice_axis, 1);
  if (event.code == GLFW_KEY_COMMA && ui.shown && ui.shown->playback)
    return void(ui.go_to_frame(ui.shown->playback->now - 1));
  if (event.code == GLFW_KEY_PERIOD || event.code == GLFW_KEY_KP_DECIMAL) return ui.step();
  if (event.action == GLFW_REPEAT) return;
  switch (event.code) {
    case GLFW_KEY_SPACE:
      return ui.toggle_pause();
    case GLFW_KEY_R:
      return ui.reset();
    case GLFW_KEY_F:
      return frame_selection();
    case GLFW_KEY_HOME:
      if (ui.shown) ui.camera.frame(ui.shown->domain);
      return;
    case GLFW_KEY_1:
      return ui.show_points(!has_shift);
    case GLFW_KEY_2:
      return ui.show_volumes(render::VolumeMode::kSurface, !has_shift);
    case GLFW_KEY_3:
      return ui.show_volumes(render::VolumeMode::kFog, !has_shift);
    case GLFW_KEY_4:
      return ui.show_volumes(render::VolumeMode::kSlices, !has_shift);
    case GLFW_KEY_X:
    case GLFW_KEY_Y:
    case GLFW_KEY_Z:
      return ui.choose_slice(event.code - GLFW_KEY_X, has_shift);
    case GLFW_KEY_B:
      return ui.toggle_trees();
    case GLFW_KEY_L:
      ui.hand.tool = Tool::kLook;
      return;
    case GLFW_KEY_M:
      return choose_tool(Tool::kEmit);
    case GLFW_KEY_U:
      return choose_tool(Tool::kPush);
    case GLFW_KEY_C:
      return choose_tool(Tool::kCut);
    case GLFW_KEY_H:
      ui.has_panels = !ui.has_panels;
      return;
    case GLFW_KEY_P:
      is_frozen_ = ui.is_frozen = !is_frozen_;
      return;
    case GLFW_KEY_F5:
      ui.post(ReloadKernels{});
      return;
    case GLFW_KEY_F12:
      return has_shift ? toggle_film() : save_picture();
    case GLFW_KEY_ESCAPE:
      // An open list is closed first, by a click beside it.
      if (!ImGui::IsPopupOpen(nullptr, ImGuiPopupFlags_AnyPopup)) window_.close();
      return;
    default:
      return;
  }
}

void WindowBackend::choose_tool(Tool tool) {
  if (offers(ui_->status.hands, tool)) ui_->hand.choose(tool);
}

Vec2i WindowBackend::pixel_at(const Vec2f& position) const {
  const Vec2f scale = window_.pixels().cast<float>().cwiseQuotient(window_.size().cast<float>().cwiseMax(1));
  return position.cwiseProduct(scale).cast<int32_t>();
}

std::optional<PickedPoint> WindowBackend::pick(const Vec2f& position) {
  if (!picture_ || !ui_->shown) return std::nullopt;
  const Vec2i pixel = pixel_at(position);
  const std::optional<Picked> found = picture_->pick(pixel.x(), pixel.y());
  if (!found || found->set >= ui_->shown->points.size()) return std::nullopt;
  const PointSet& set = ui_->shown->points[found->set];
  if (found->point >= set.points.size()) return std::nullopt;
  const render::PackedPoint& point = set.points[found->point];
  return PickedPoint{.set = set.name,
                     .attribute = set.attribute,
                     .unit = set.unit,
                     .where = *found,
                     .steps = ui_->shown->steps,
                     .position = point.position,
                     .value = point.value,
                     .radius_m = set.radius_m,
                     .is_categorical = set.is_categorical};
}

// The picked point's middle; else where what is seen there is.
std::optional<Vec3f> WindowBackend::seen_at(const Vec2f& position, const std::optional<PickedPoint>& picked) {
  if (picked) return picked->position;
  const Vec2i pixel = pixel_at(position);
  return picture_ && ui_->shown ? picture_->position_at(pixel.x(), pixel.y()) : std::nullopt;
}

void WindowBackend::click(const Mouse::Click& click) {
  const std::optional<PickedPoint> found = pick(click.position);
  if (!click.is_double) {
    ui_->picked = found;
    ui_->view.cell_m = seen_at(click.position, found);
  } else if (found) {
    ui_->camera.set_pivot(found->position);
  }
}

// The picked point's surroundings; all points when none is picked.
void WindowBackend::frame_selection() {
  if (!ui_->shown) return;
  Aabb3f box;
  if (ui_->picked) {
    const Vec3f around = Vec3f::Constant(kSelectionRadii * ui_->picked->radius_m);
    box = {ui_->picked->position - around, ui_->picked->position + around};
  } else {
    for (const PointSet& set : ui_->shown->points) {
      for (const render::PackedPoint& p : set.points) {
        if (!p.position.allFinite()) continue;
        box.min = box.min.cwiseMin(p.position);
        box.max = box.max.cwiseMax(p.position);
      }
    }
  }
  ui_->camera.frame(box);
}

void WindowBackend::save_picture() {
  if (!ui_->shown || !ui_->camera.has_begun()) return;
  const Vec2i pixels = window_.pixels();
  // It has a context of its own, and a thread has one at a time.
  window_.release_current();
  ui_->notice =
      ui_->session.write_screenshot(*ui_->shown, ui_->camera.camera(), ui_->view, pixels.x(), pixels.y());
  window_.make_current();
}

// A film that somebody makes, or its end.
void WindowBackend::toggle_film() {
  if (film_ != nullptr) {
    std::exchange(film_, nullptr)->end();
    ui_->notice = "the film is being written; the log says where";
    return;
  }
  film_ = ui_->session.begin_film(ui_->notice);
  film_began_s_ = glfwGetTime();
  film_size_ = window_.pixels();
}

// Between two pictures of a film nothing may change, so it has the last one for all of that time.
void WindowBackend::add_to_film() {
  if (film_ == nullptr || !picture_ || !picture_->is_drawn()) return;
  if (window_.pixels() != film_size_) return toggle_film();  // a movie has one size
  const double time_s = glfwGetTime() - film_began_s_;
  if (film_->is_due(time_s)) film_->add(time_s, picture_->read(), film_size_.x(), film_size_.y());
}

// Returns whether all that is seen is drawn, and changes only when somebody does something.
bool WindowBackend::is_at_rest() const {
  const RunState state = ui_->status.state;
  const bool stands =
      is_frozen_ || state == RunState::kPaused || state == RunState::kFailed || state == RunState::kEnded;
  return stands && picture_->is_drawn() && picture_->has_snapshot() && !has_work() &&
         !window_.pixels().isZero();
}

// At rest the picture is drawn once more as files have it, beside the window. It is shown if the window
// still shows the same.
void WindowBackend::update_still() {
  Ui& ui = *ui_;
  if (!picture_) return;
  if (std::optional<Still> still = ui.session.take_still()) {
    if (!still->error.empty()) {
      ui.notice = "no fine picture: " + still->error;
      refused_still_ = {still->width, still->height};  // which would fail again
    } else if (still->number == picture_->version() && ui.wants_stills) {
      picture_->show_still(*still);
    }
    frames_owed_ = 1;
  }
  if (!ui.wants_stills) {
    picture_->hide_still();
    asked_still_ = 0;
    refused_still_.setZero();
    ui.session.forget_still();
  }
  if (std::exchange(rested_, picture_->version()) != picture_->version() || !is_at_rest()) {
    rested_s_ = glfwGetTime();
    if (asked_still_ != rested_) ui.session.forget_still();
  }
  if (!ui.wants_stills || asked_still_ == rested_ || glfwGetTime() - rested_s_ < kRest_s) return;
  // A picked cell is outlined in the window's own picture alone.
  if (!ui.shown || ui.view.cell_m || !ui.session.has_still(*ui.shown, ui.view)) return;
  const Vec2i size = picture_->size();
  if (size == refused_still_) return;
  asked_still_ = rested_;
  refused_still_.setZero();
  ui.session.ask_still(asked_still_, ui.shown, ui.camera.camera(), ui.view, size.x(), size.y());
}

void WindowBackend::draw_picture() {
  const Vec2i pixels = window_.pixels();
  gl_.BindFramebuffer(GL_FRAMEBUFFER, 0);
  gl_.Viewport(0, 0, pixels.x(), pixels.y());
  static constexpr float kBackground[] = {0.11f, 0.12f, 0.14f, 1};
  gl_.ClearBufferfv(GL_COLOR, 0, kBackground);
  if (!picture_ || !ui_->camera.has_begun()) return;
  attempt([&] {
    if (!picture_->draw(ui_->camera.camera(), ui_->view, pixels.x(), pixels.y())) return;
    ui_->picture_error.clear();
    ui_->ranges = picture_->ranges();
    ui_->volume_ranges = picture_->volume_ranges();
  });
  picture_->put_into_window();
}

void WindowBackend::draw_panels() {
  Ui& ui = *ui_;
  const Vec2i size = window_.size();
  const float gap = 10 * ui.scale, width = static_cast<float>(size.x()),
              height = static_cast<float>(size.y());
  const float left = std::min(280 * ui.scale, 0.5f * width - 2 * gap),
              right = std::min(420 * ui.scale, 0.5f * width - gap);
  const bool is_new_size = size != laid_out_;
  const auto when = is_new_size ? ImGuiCond_Always : ImGuiCond_FirstUseEver;
  laid_out_ = size;
  const float most = std::max(height - 2 * gap, 1.0f);
  ImGui::SetNextWindowPos({gap, gap}, when);
  ImGui::SetNextWindowSizeConstraints({left, 0}, {left, most});
  if (ImGui::Begin("Simulation", nullptr,
                   ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoFocusOnAppearing)) {
    draw_status(ui);
    draw_hand(ui);
    draw_instrument_switches(ui);
    const bool has_breakpoints = ImGui::CollapsingHeader("Breakpoints");
    ui.widgets.note("group:Breakpoints");
    if (has_breakpoints) breakpoints_.draw(ui);
    if (ui.shown && ImGui::CollapsingHeader("Readings", ImGuiTreeNodeFlags_DefaultOpen)) draw_readings(ui);
    if (ui.picked && ImGui::CollapsingHeader("Picked point", ImGuiTreeNodeFlags_DefaultOpen)) draw_picked(ui);
    const bool has_cell = ui.shown && ui.view.cell_m && ui.status.has_memory;
    if (has_cell && ImGui::CollapsingHeader("Cell", ImGuiTreeNodeFlags_DefaultOpen)) draw_cells(ui);
    if (ImGui::CollapsingHeader("View", ImGuiTreeNodeFlags_DefaultOpen)) draw_view(ui);
  }
  ImGui::End();
  ImGui::SetNextWindowPos({width - gap, gap}, when, {1, 0});
  ImGui::SetNextWindowSizeConstraints({right, 0}, {right, most});
  if (ImGui::Begin("Parameters", nullptr,
                   ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoFocusOnAppearing)) {
    parameters_.draw(ui);
  }
  ImGui::End();
  const Vec2f low(left + 2 * gap, gap);
  Vec2f high(width - right - 2 * gap, height - gap);
  high.y() -= timeline_.draw(ui, low, high);
  draw_scale(ui, low, high);
  draw_instrument(ui, low, high, is_new_size);
  draw_messages(ui, low, high);
}

void WindowBackend::publish() {
  WidgetLog& widgets = ui_->widgets;
  if (!widgets.is_on()) return;
  widgets.say("panels", ui_->has_panels ? "shown" : "hidden");
  widgets.say("picture", ui_->is_frozen ? "frozen" : "live");
  widgets.say("still", picture_ && picture_->has_still() ? "shown" : "none");
  if (film_ != nullptr) widgets.say("film", "recording");
  if (!ui_->copied.empty()) widgets.say("copied", ui_->copied);
  widgets.say("renderer", window_.renderer());
  if (ui_->camera.has_begun()) {
    widgets.say("camera is led by", ui_->follows_path ? "keyframes" : "hand");
    const Vec3f& at = ui_->camera.camera().position;
    widgets.say("camera", fmt::format("{:.5g} {:.5g} {:.5g}", at.x(), at.y(), at.z()));
  }
  widgets.note("window", Vec2f::Zero(), window_.size().cast<float>());
  widgets.publish(window_.position());
}

}  // namespace coppice::viewer

extern "C" {

int coppice_window_abi_version(void) { return COPPICE_WINDOW_ABI_VERSION; }

coppice::viewer::ViewerBackend* coppice_open_window(const CoppiceWindowOptions* options, char* error,
                                                    size_t error_bytes) {
  try {
    return new coppice::viewer::WindowBackend(options->title, options->width, options->height,
                                              options->load_gl);
  } catch (const std::exception& e) {
    std::snprintf(error, error_bytes, "%s", e.what());
  } catch (...) {
    std::snprintf(error, error_bytes, "unknown error");
  }
  return nullptr;
}

}  // extern "C"
