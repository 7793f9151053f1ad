// Opens and closes the window, and listens to it.
#include "apps/viewer/window/glfw_window.h"

#define GLFW_INCLUDE_NONE
#include <GL/glcorearb.h>
#include <GLFW/glfw3.h>
#include <backends/imgui_impl_glfw.h>
#include <backends/imgui_impl_opengl3.h>
#include <imgui.h>

#include <cmath>
#include <filesystem>
#include <stdexcept>
#include <utility>

namespace coppice::viewer {
namespace {

bool is_open = false;  // on the program's first thread alone

std::string glfw_reason() {
  const char* text = nullptr;
  const int code = glfwGetError(&text);
  return code == GLFW_NO_ERROR || text == nullptr ? "GLFW gives no reason" : text;
}

GlfwWindow& window_of(GLFWwindow* handle) {
  return *static_cast<GlfwWindow*>(glfwGetWindowUserPointer(handle));
}

int modifiers_of(GLFWwindow* handle) {
  const auto is_down = [&](int left, int right) {
    return glfwGetKey(handle, left) == GLFW_PRESS || glfwGetKey(handle, right) == GLFW_PRESS;
  };
  return (is_down(GLFW_KEY_LEFT_CONTROL, GLFW_KEY_RIGHT_CONTROL) ? GLFW_MOD_CONTROL : 0) |
         (is_down(GLFW_KEY_LEFT_SHIFT, GLFW_KEY_RIGHT_SHIFT) ? GLFW_MOD_SHIFT : 0);
}

// A font that has units such as m² and °; Dear ImGui's own has neither.
void add_font(float scale) {
  static constexpr const char* kFont = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf";
  static constexpr ImWchar kRanges[] = {0x20,   0xff,   0x370,  0x3ff,  0x2010, 0x2027,
                                        0x2070, 0x209f, 0x2200, 0x22ff, 0};
  ImFontAtlas& fonts = *ImGui::GetIO().Fonts;
  std::error_code status;
  if (std::filesystem::exists(kFont, status)) {
    if (fonts.AddFontFromFileTTF(kFont, std::round(14 * scale), nullptr, kRanges) != nullptr) return;
  }
  ImFontConfig plain;
  plain.SizePixels = std::round(13 * scale);
  fonts.AddFontDefault(&plain);
}

}  // namespace

GlfwWindow::GlfwWindow(const char* title, int width, int height) {
  if (is_open) throw std::runtime_error("there is one already");
  glfwSetErrorCallback(nullptr);
  if (glfwInit() != GLFW_TRUE) throw std::runtime_error(glfw_reason());
  is_open = true;
  try {
    open(title, width, height);
  } catch (...) {
    shut();
    throw;
  }
}

GlfwWindow::~GlfwWindow() { shut(); }

void GlfwWindow::open(const char* title, int width, int height) {
  glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
  glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 3);
  glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
  glfwWindowHint(GLFW_OPENGL_FORWARD_COMPAT, GLFW_TRUE);
  glfwWindowHint(GLFW_SCALE_TO_MONITOR, GLFW_TRUE);
  window_ = glfwCreateWindow(width, height, title, nullptr, nullptr);
  if (window_ == nullptr) throw std::runtime_error("no OpenGL 3.3 on this display: " + glfw_reason());
  make_current();
  const auto get_string = reinterpret_cast<PFNGLGETSTRINGPROC>(glfwGetProcAddress("glGetString"));
  const GLubyte* renderer = get_string == nullptr ? nullptr : get_string(GL_RENDERER);
  renderer_ = renderer == nullptr ? "unknown" : reinterpret_cast<const char*>(renderer);
  // A software driver waits for the screen by sleeping or spinning in this thread; we pace ourselves instead.
  const bool is_software = renderer_.find("llvmpipe") != std::string::npos ||
                           renderer_.find("softpipe") != std::string::npos ||
                           renderer_.find("swrast") != std::string::npos;
  glfwSwapInterval(is_software ? 0 : 1);
  hear();
  begin_imgui();
}

void GlfwWindow::hear() {
  glfwSetWindowUserPointer(window_, this);
  glfwSetMouseButtonCallback(window_, [](GLFWwindow* w, int button, int action, int mods) {
    window_of(w).heard({InputEvent::Kind::kButton, button, action, mods});
    if (action == GLFW_PRESS) window_of(w).heard(KeyEvent{.kind = KeyEvent::Kind::kButton});
  });
  glfwSetCursorPosCallback(window_, [](GLFWwindow* w, double x, double y) {
    window_of(w).heard(
        {InputEvent::Kind::kMove, 0, 0, 0, Vec2f(static_cast<float>(x), static_cast<float>(y))});
  });
  glfwSetScrollCallback(window_, [](GLFWwindow* w, double, double y) {
    window_of(w).heard(
        {.kind = InputEvent::Kind::kScroll, .mods = modifiers_of(w), .notches = static_cast<float>(y)});
  });
  glfwSetCursorEnterCallback(window_, [](GLFWwindow* w, int) { window_of(w).touch(); });
  glfwSetWindowFocusCallback(window_, [](GLFWwindow* w, int) { window_of(w).touch(); });
  glfwSetWindowRefreshCallback(window_, [](GLFWwindow* w) { window_of(w).touch(); });
  glfwSetFramebufferSizeCallback(window_, [](GLFWwindow* w, int, int) { window_of(w).touch(); });
  glfwSetWindowCloseCallback(window_, [](GLFWwindow* w) { window_of(w).touch(); });
}

void GlfwWindow::begin_imgui() {
  ImGui::CreateContext();
  has_ui_ = true;
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;
  io.LogFilename = nullptr;
  float scale_y = 1;
  glfwGetWindowContentScale(window_, &ui_scale_, &scale_y);
  if (!(ui_scale_ >= 1)) ui_scale_ = 1;
  ImGui::StyleColorsDark();
  ImGuiStyle& style = ImGui::GetStyle();
  style.WindowRounding = 4;
  style.FrameRounding = 3;
  style.GrabRounding = 3;
  style.Colors[ImGuiCol_WindowBg].w = 0.88f;
  style.ScaleAllSizes(ui_scale_);
  add_font(ui_scale_);
  // Installs its callbacks before ours, and calls ours.
  has_ui_platform_ = ImGui_ImplGlfw_InitForOpenGL(window_, true);
  hear_keys();
  // Its own loader opens libGL.so.1, which a system with EGL alone has not.
  has_ui_renderer_ = has_ui_platform_ && ImGui_ImplOpenGL3_Init("#version 330 core");
  if (!has_ui_renderer_) throw std::runtime_error("Dear ImGui does not start: is there a libGL.so.1?");
}

// These stand in place of Dear ImGui's: before 1.87 it looks at the keys that are down as a frame begins, and
// loses those that are up again.
void GlfwWindow::hear_keys() {
  glfwSetKeyCallback(window_, [](GLFWwindow* w, int key, int scancode, int action, int mods) {
    using Kind = KeyEvent::Kind;
    window_of(w).heard({InputEvent::Kind::kKey, key, action, mods});
    window_of(w).heard(KeyEvent{.kind = action == GLFW_PRESS
                                            ? Kind::kPress
                                            : (action == GLFW_RELEASE ? Kind::kRelease : Kind::kRepeat),
                                .key = key,
                                .scancode = scancode,
                                .mods = mods,
                                .is_modifier = key >= GLFW_KEY_LEFT_SHIFT && key <= GLFW_KEY_RIGHT_SUPER});
  });
  glfwSetCharCallback(window_, [](GLFWwindow* w, unsigned character) {
    window_of(w).heard(KeyEvent{.kind = KeyEvent::Kind::kText, .character = character});
  });
}

void GlfwWindow::shut() {
  if (window_ != nullptr) make_current();
  if (has_ui_renderer_) ImGui_ImplOpenGL3_Shutdown();
  if (has_ui_platform_) ImGui_ImplGlfw_Shutdown();
  if (has_ui_) ImGui::DestroyContext();
  if (window_ != nullptr) glfwDestroyWindow(window_);
  glfwTerminate();
  is_open = false;
}

void GlfwWindow::make_current() { glfwMakeContextCurrent(window_); }
void GlfwWindow::release_current() { glfwMakeContextCurrent(nullptr); }

void GlfwWindow::wait(double seconds) {
  if (seconds > 0) {
    glfwWaitEventsTimeout(seconds);
  } else {
    glfwPollEvents();
  }
}

void GlfwWindow::heard(InputEvent event) {
  event.time_s = glfwGetTime();
  // The event has the mouse's position at its time; GLFW only tells where the mouse is now, which may be
  // elsewhere.
  if (event.kind == InputEvent::Kind::kMove) {
    mouse_ = event.position;
  } else {
    event.position = mouse_;
  }
  events_.push_back(event);
  touch();
}

void GlfwWindow::heard(const KeyEvent& event) {
  keys_.add(event);
  touch();
}

std::vector<InputEvent> GlfwWindow::take_events() { return std::exchange(events_, {}); }
bool GlfwWindow::take_touched() { return std::exchange(is_touched_, false); }
void GlfwWindow::hide() { glfwHideWindow(window_); }
bool GlfwWindow::should_close() const { return glfwWindowShouldClose(window_) == GLFW_TRUE; }
void GlfwWindow::close() { glfwSetWindowShouldClose(window_, GLFW_TRUE); }

void GlfwWindow::begin_ui() {
  using Kind = KeyEvent::Kind;
  for (const KeyEvent& e : keys_.take_frame()) {
    if (e.kind == Kind::kText) ImGui_ImplGlfw_CharCallback(window_, e.character);
    if (e.kind == Kind::kPress) ImGui_ImplGlfw_KeyCallback(window_, e.key, e.scancode, GLFW_PRESS, e.mods);
    if (e.kind == Kind::kRelease)
      ImGui_ImplGlfw_KeyCallback(window_, e.key, e.scancode, GLFW_RELEASE, e.mods);
  }
  if (!keys_.is_empty()) touch();
  ImGui_ImplOpenGL3_NewFrame();
  ImGui_ImplGlfw_NewFrame();
  ImGui::NewFrame();
}

void GlfwWindow::end_ui() {
  ImGui::Render();
  ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
  glfwSwapBuffers(window_);
}

Vec2i GlfwWindow::size() const {
  Vec2i size;
  glfwGetWindowSize(window_, &size.x(), &size.y());
  return size;
}

Vec2i GlfwWindow::pixels() const {
  if (glfwGetWindowAttrib(window_, GLFW_ICONIFIED) == GLFW_TRUE) return Vec2i::Zero();
  Vec2i pixels;
  glfwGetFramebufferSize(window_, &pixels.x(), &pixels.y());
  return pixels;
}

Vec2i GlfwWindow::position() const {
  Vec2i position;
  glfwGetWindowPos(window_, &position.x(), &position.y());
  return position;
}

}  // namespace coppice::viewer
