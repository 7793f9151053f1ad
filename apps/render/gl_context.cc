// EGL by dlopen: picks a display that works without a window system and makes an OpenGL 3.3 core context on
// it.
#include "apps/render/gl_context.h"

#include <dlfcn.h>

// Keeps X11's headers, and their macros, out.
#define EGL_NO_X11
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "core/error.h"

namespace coppice::render {
namespace {

// EGL's entry points; the library stays loaded for the process's life (drivers do not survive dlclose).
struct EglFunctions {
  decltype(&eglGetProcAddress) GetProcAddress = nullptr;
  decltype(&eglGetDisplay) GetDisplay = nullptr;
  decltype(&eglQueryString) QueryString = nullptr;
  decltype(&eglInitialize) Initialize = nullptr;
  decltype(&eglTerminate) Terminate = nullptr;
  decltype(&eglBindAPI) BindAPI = nullptr;
  decltype(&eglChooseConfig) ChooseConfig = nullptr;
  decltype(&eglCreateContext) CreateContext = nullptr;
  decltype(&eglDestroyContext) DestroyContext = nullptr;
  decltype(&eglCreatePbufferSurface) CreatePbufferSurface = nullptr;
  decltype(&eglDestroySurface) DestroySurface = nullptr;
  decltype(&eglMakeCurrent) MakeCurrent = nullptr;
};

template <class F>
void load_symbol(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  if (function == nullptr) {
    throw Error(ErrorCode::kUnavailable, fmt::format("cannot draw frames: libEGL.so.1 lacks {}", name));
  }
}

EglFunctions load_egl() {
  void* library = dlopen("libEGL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw Error(ErrorCode::kUnavailable,
                "cannot draw frames: libEGL.so.1 is not installed (Debian: apt install libegl1 "
                "libgl1-mesa-dri), or run "
                "with output.png = false");
  }
  EglFunctions egl;
  load_symbol(library, "eglGetProcAddress", egl.GetProcAddress);
  load_symbol(library, "eglGetDisplay", egl.GetDisplay);
  load_symbol(library, "eglQueryString", egl.QueryString);
  load_symbol(library, "eglInitialize", egl.Initialize);
  load_symbol(library, "eglTerminate", egl.Terminate);
  load_symbol(library, "eglBindAPI", egl.BindAPI);
  load_symbol(library, "eglChooseConfig", egl.ChooseConfig);
  load_symbol(library, "eglCreateContext", egl.CreateContext);
  load_symbol(library, "eglDestroyContext", egl.DestroyContext);
  load_symbol(library, "eglCreatePbufferSurface", egl.CreatePbufferSurface);
  load_symbol(library, "eglDestroySurface", egl.DestroySurface);
  load_symbol(library, "eglMakeCurrent", egl.MakeCurrent);
  return egl;
}

struct Candidate {
  EGLDisplay display;
  std::string name;
};

std::vector<Candidate> list_displays(const EglFunctions& egl) {
  std::vector<Candidate> displays;
  const char* text = egl.QueryString(EGL_NO_DISPLAY, EGL_EXTENSIONS);
  const std::string_view extensions = text == nullptr ? "" : text;
  const auto has = [&](std::string_view name) { return extensions.find(name) != std::string_view::npos; };
  const auto platform_display =
      reinterpret_cast<PFNEGLGETPLATFORMDISPLAYEXTPROC>(egl.GetProcAddress("eglGetPlatformDisplayEXT"));
  if (platform_display != nullptr && has("EGL_MESA_platform_surfaceless")) {
    displays.push_back(
        {platform_display(EGL_PLATFORM_SURFACELESS_MESA, nullptr, nullptr), "EGL surfaceless"});
  }
  const auto query_devices =
      reinterpret_cast<PFNEGLQUERYDEVICESEXTPROC>(egl.GetProcAddress("eglQueryDevicesEXT"));
  if (platform_display != nullptr && query_devices != nullptr && has("EGL_EXT_platform_device")) {
    EGLDeviceEXT devices[16];
    EGLint count = 0;
    if (query_devices(16, devices, &count) == EGL_TRUE) {
      for (int i = 0; i < count; ++i) {
        displays.push_back({platform_display(EGL_PLATFORM_DEVICE_EXT, devices[i], nullptr),
                            fmt::format("EGL device {}", i)});
      }
    }
  }
  displays.push_back({egl.GetDisplay(EGL_DEFAULT_DISPLAY), "EGL default display"});
  return displays;
}

}  // namespace

struct GlContext::Egl {
  EglFunctions functions = load_egl();
  EGLDisplay display = EGL_NO_DISPLAY;
  EGLContext context = EGL_NO_CONTEXT;
  EGLSurface surface = EGL_NO_SURFACE;  // none when the display needs none

  ~Egl() { close(); }

  void close() {
    if (display == EGL_NO_DISPLAY) return;
    if (surface != EGL_NO_SURFACE) functions.DestroySurface(display, surface);
    if (context != EGL_NO_CONTEXT) functions.DestroyContext(display, context);
    // The display is left initialized: EGL shares it among all contexts of the process, and terminating it
    // would destroy those of others.
    display = EGL_NO_DISPLAY;
    context = EGL_NO_CONTEXT;
    surface = EGL_NO_SURFACE;
  }

  // False, with everything released, when any step is refused.
  bool open(EGLDisplay candidate) {
    if (candidate == EGL_NO_DISPLAY || functions.Initialize(candidate, nullptr, nullptr) != EGL_TRUE)
      return false;
    display = candidate;
    if (create_context() && make_surface_and_current()) {
      functions.MakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
      return true;
    }
    close();
    return false;
  }

  bool create_context() {
    if (functions.BindAPI(EGL_OPENGL_API) != EGL_TRUE) return false;
    const EGLint attributes[] = {EGL_SURFACE_TYPE, EGL_PBUFFER_BIT, EGL_RENDERABLE_TYPE, EGL_OPENGL_BIT,
                                 EGL_NONE};
    EGLint count = 0;
    if (functions.ChooseConfig(display, attributes, &config, 1, &count) != EGL_TRUE || count == 0)
      return false;
    const EGLint version[] = {EGL_CONTEXT_MAJOR_VERSION,
                              3,
                              EGL_CONTEXT_MINOR_VERSION,
                              3,
                              EGL_CONTEXT_OPENGL_PROFILE_MASK,
                              EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT,
                              EGL_NONE};
    context = functions.CreateContext(display, config, EGL_NO_CONTEXT, version);
    return context != EGL_NO_CONTEXT;
  }

  bool make_surface_and_current() {
    if (functions.MakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context) == EGL_TRUE) return true;
    const EGLint size[] = {EGL_WIDTH, 16, EGL_HEIGHT, 16, EGL_NONE};
    surface = functions.CreatePbufferSurface(display, config, size);
    return surface != EGL_NO_SURFACE && functions.MakeCurrent(display, surface, surface, context) == EGL_TRUE;
  }

 private:
  EGLConfig config = nullptr;
};

GlContext::GlContext() : egl_(std::make_unique<Egl>()) {
  std::string tried;
  std::string reached;
  for (const Candidate& candidate : list_displays(egl_->functions)) {
    if (egl_->open(candidate.display)) {
      reached = candidate.name;
      break;
    }
    tried += (tried.empty() ? "" : ", ") + candidate.name;
  }
  if (reached.empty()) {
    throw Error(
        ErrorCode::kUnavailable,
        fmt::format("cannot draw frames: no OpenGL 3.3 context (tried {}); Debian's libgl1-mesa-dri has a "
                    "software driver, or run with output.png = false",
                    tried));
  }
  Current current(*this);
  gl_ = load_gl_functions(egl_->functions.GetProcAddress);
  description_ = fmt::format("{}, {}", describe_gl(gl_), reached);
}

GlContext::~GlContext() = default;

void GlContext::make_current() {
  if (egl_->functions.MakeCurrent(egl_->display, egl_->surface, egl_->surface, egl_->context) != EGL_TRUE) {
    throw Error(ErrorCode::kUnavailable,
                "cannot draw frames: the OpenGL context is current on another thread or lost");
  }
}

void GlContext::release() {
  egl_->functions.MakeCurrent(egl_->display, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
}

GlContext::Current::Current(GlContext& context) : context_(context) { context_.make_current(); }
GlContext::Current::~Current() { context_.release(); }

}  // namespace coppice::render
