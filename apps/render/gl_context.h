// An OpenGL context without a window, through EGL.
//
// libEGL is loaded when the first context is asked for, so that the program starts on a machine without
// OpenGL. Tried in this order: Mesa's surfaceless platform, EGL devices, the default display with a pbuffer.
// A window (the viewer's) makes its context itself and only fills GlFunctions. A context belongs to one
// thread at a time.
#pragma once

#include <memory>
#include <string>

#include "apps/render/gl_functions.h"

namespace coppice::render {

class GlContext {
 public:
  // Throws Error(kUnavailable) with what was tried. The context is not current afterwards.
  GlContext();
  ~GlContext();
  GlContext(const GlContext&) = delete;
  GlContext& operator=(const GlContext&) = delete;

  // Makes the context current on this thread, and restores "none" when the scope ends.
  class Current {
   public:
    explicit Current(GlContext& context);
    ~Current();
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

   private:
    GlContext& context_;
  };

  const GlFunctions& gl() const { return gl_; }
  // Names the driver's version and renderer, and the way that it was reached.
  const std::string& description() const { return description_; }

 private:
  struct Egl;

  void make_current();
  void release();

  std::unique_ptr<Egl> egl_;
  GlFunctions gl_;
  std::string description_;
};

}  // namespace coppice::render
