// Owners of OpenGL names: textures, buffers, framebuffers, vertex arrays and linked programs.
//
// Each must be destroyed while the context it was made in is current, and before its GlFunctions.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include "apps/render/gl_functions.h"
#include "core/math.h"

namespace coppice::render {

// One OpenGL name. `Generate` and `Delete` are members of GlFunctions.
template <auto Generate, auto Delete>
class GlName {
 public:
  explicit GlName(const GlFunctions& gl) : gl_(&gl) { (gl.*Generate)(1, &id_); }
  ~GlName() { (gl_->*Delete)(1, &id_); }
  GlName(const GlName&) = delete;
  GlName& operator=(const GlName&) = delete;

  GLuint id() const { return id_; }

 private:
  const GlFunctions* gl_;
  GLuint id_ = 0;
};
using GlTexture = GlName<&GlFunctions::GenTextures, &GlFunctions::DeleteTextures>;
using GlBuffer = GlName<&GlFunctions::GenBuffers, &GlFunctions::DeleteBuffers>;
using GlFramebuffer = GlName<&GlFunctions::GenFramebuffers, &GlFunctions::DeleteFramebuffers>;
using GlRenderbuffer = GlName<&GlFunctions::GenRenderbuffers, &GlFunctions::DeleteRenderbuffers>;
using GlVertexArray = GlName<&GlFunctions::GenVertexArrays, &GlFunctions::DeleteVertexArrays>;

// A linked program of the embedded shaders shaders/<name>; shaders/common.glsl is put before each, and
// `defines`, lines of the preprocessor, before that. `#include "name"` takes in another of them.
class GlProgram {
 public:
  // Throws Error(kUnavailable) with the driver's log: the sources are ours, and a driver that refuses them is
  // at fault.
  GlProgram(const GlFunctions& gl, std::string_view vertex_name, std::string_view fragment_name,
            std::string_view defines = {});
  ~GlProgram();
  GlProgram(const GlProgram&) = delete;
  GlProgram& operator=(const GlProgram&) = delete;

  void use() const;
  // Uniforms of the program in use; a name that the compiler removed is ignored.
  void set(const char* name, int value) const;
  void set(const char* name, float value) const;
  void set(const char* name, const Vec2f& value) const;
  void set(const char* name, const Vec3f& value) const;
  void set(const char* name, const Vec4f& value) const;
  void set(const char* name, const Vec2i& value) const;
  void set(const char* name, const Vec3i& value) const;
  void set(const char* name, const Mat4f& value) const;

 private:
  GLint find(const char* name) const;

  const GlFunctions* gl_;
  GLuint id_;
};

// An array that shaders read by texelFetch from a samplerBuffer.
class GlBufferTexture {
 public:
  GlBufferTexture(const GlFunctions& gl, GLenum format);

  // Replaces the contents.
  void upload(std::span<const std::byte> bytes);
  void bind(int unit) const;

 private:
  const GlFunctions* gl_;
  GlBuffer buffer_;
  GlTexture texture_;
  GLenum format_;
};

// Allocates a 2-D texture without mipmaps, clamped to its edge.
void allocate_texture(const GlFunctions& gl, const GlTexture& texture, GLenum format, int width, int height,
                      GLint filter, const void* pixels = nullptr);

}  // namespace coppice::render
