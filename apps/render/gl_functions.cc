// Loads the table of OpenGL entry points and turns OpenGL's error codes into Errors.
#include "apps/render/gl_functions.h"

#include <fmt/format.h>

#include "core/error.h"

namespace coppice::render {

GlFunctions load_gl_functions(GlProcLoader loader) {
  GlFunctions gl;
#define COPPICE_GL_LOAD(type, name)                     \
  gl.name = reinterpret_cast<type>(loader("gl" #name)); \
  if (gl.name == nullptr)                               \
    throw Error(ErrorCode::kUnavailable,                \
                "this OpenGL driver lacks gl" #name "; OpenGL 3.3 is needed to draw frames");
  COPPICE_GL_FUNCTIONS(COPPICE_GL_LOAD)
#undef COPPICE_GL_LOAD
  return gl;
}

std::string describe_gl(const GlFunctions& gl) {
  const auto text = [&gl](GLenum name) {
    const GLubyte* string = gl.GetString(name);
    return string == nullptr ? std::string("unknown") : std::string(reinterpret_cast<const char*>(string));
  };
  return fmt::format("{}, {}", text(GL_VERSION), text(GL_RENDERER));
}

void check_gl(const GlFunctions& gl, const char* where) {
  const GLenum error = gl.GetError();
  if (error == GL_NO_ERROR) return;
  // A lost context reports an error for ever, so that "until none is left" must be bounded.
  for (int i = 0; i < 16 && gl.GetError() != GL_NO_ERROR; ++i) {
  }
  if (error == GL_OUT_OF_MEMORY) {
    throw Error(ErrorCode::kOutOfMemory, fmt::format("OpenGL ran out of memory while {}", where));
  }
  throw Error(ErrorCode::kInternal, fmt::format("OpenGL error 0x{:04x} while {}", error, where));
}

}  // namespace coppice::render
