// OpenGL that is out of memory while a test says so.
#pragma once
#include <utility>

#include "apps/render/gl_functions.h"

namespace coppice::render {

struct SmallGlDevice {
  static inline bool is_full = false;

  // The functions of the context that is current; one at a time in a process.
  explicit SmallGlDevice(const GlFunctions& functions) : gl(functions) {
    get_error = std::exchange(gl.GetError, error_now);
  }
  GlFunctions gl;

 private:
  static inline PFNGLGETERRORPROC get_error = nullptr;
  static GLenum APIENTRY error_now() { return is_full ? GLenum{GL_OUT_OF_MEMORY} : get_error(); }
};

}  // namespace coppice::render
