// The interface between coppice and libcoppice_window.so, the only code that links GLFW and Dear ImGui.
//
// Both sides come from one build, so C++ types and abstract classes cross; but the program exports nothing,
// so each calls the other through what is declared here and through virtual functions alone. No exception
// crosses these functions.
#pragma once

#include <cstddef>

#include "apps/render/gl_functions.h"
#include "apps/viewer/backend.h"

extern "C" {

// Both sides compare it; counts up when anything changes that crosses: what is declared here, in
// apps/viewer/*.h, or a type that these name.
#define COPPICE_WINDOW_ABI_VERSION 19
__attribute__((visibility("default"))) int coppice_window_abi_version(void);

struct CoppiceWindowOptions {
  const char* title;
  int width, height;  // of the window, in the screen's units
  // The program's, which has the loader of OpenGL. Returns 0, or 1 with a text in `error`.
  int (*load_gl)(coppice::render::GlProcLoader loader, coppice::render::GlFunctions* gl, char* error,
                 size_t error_bytes);
};

// Opens the window, on the thread that will use it; there is one at a time. Null, with one line in `error`,
// where there is no display, no OpenGL 3.3, or a window already. The caller deletes it.
__attribute__((visibility("default"))) coppice::viewer::ViewerBackend* coppice_open_window(
    const CoppiceWindowOptions* options, char* error, size_t error_bytes);

}  // extern "C"
