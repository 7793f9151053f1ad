// Compiles and links programs from the embedded shaders, and fills buffer textures.
#include "apps/render/gl_objects.h"

#include <fmt/format.h>

#include <string>

#include "core/check.h"
#include "core/error.h"
#include "render_shaders.h"

namespace coppice::render {
namespace {

std::string one_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\0')) text.pop_back();
  for (char& c : text) {
    if (c == '\n') c = ';';
  }
  return text;
}

// The shader's text, with the text of each `#include "name"` in place of that line.
std::string shader_text(std::string_view name) {
  std::string text(embedded::render_shaders(name));
  COPPICE_CHECK(!text.empty(), "shader {} is not embedded", name);
  static constexpr std::string_view kInclude = "#include \"";
  for (size_t at = 0; (at = text.find(kInclude, at)) != std::string::npos;) {
    const size_t first = at + kInclude.size();
    const size_t last = text.find('"', first);
    text.replace(at, last + 1 - at, shader_text(text.substr(first, last - first)));
  }
  return text;
}

GLuint compile(const GlFunctions& gl, GLenum stage, std::string_view name, std::string_view defines) {
  const std::string common = shader_text("common.glsl");
  const std::string body = shader_text(name);
  const std::string source = fmt::format("#version 330 core\n{}\n{}\n#line 1\n{}", defines, common, body);
  const GLuint shader = gl.CreateShader(stage);
  const GLchar* text = source.c_str();
  gl.ShaderSource(shader, 1, &text, nullptr);
  gl.CompileShader(shader);
  GLint ok = 0;
  gl.GetShaderiv(shader, GL_COMPILE_STATUS, &ok);
  if (ok != 0) return shader;
  std::string log(4096, '\0');
  GLsizei length = 0;
  gl.GetShaderInfoLog(shader, static_cast<GLsizei>(log.size()), &length, log.data());
  log.resize(static_cast<size_t>(length));
  gl.DeleteShader(shader);
  throw Error(ErrorCode::kUnavailable,
              fmt::format("the OpenGL driver refuses shader {}: {}", name, one_line(std::move(log))));
}

}  // namespace

GlProgram::GlProgram(const GlFunctions& gl, std::string_view vertex_name, std::string_view fragment_name,
                     std::string_view defines)
    : gl_(&gl) {
  const GLuint vertex = compile(gl, GL_VERTEX_SHADER, vertex_name, defines);
  GLuint fragment = 0;
  try {
    fragment = compile(gl, GL_FRAGMENT_SHADER, fragment_name, defines);
  } catch (...) {
    gl.DeleteShader(vertex);
    throw;
  }
  id_ = gl.CreateProgram();
  gl.AttachShader(id_, vertex);
  gl.AttachShader(id_, fragment);
  gl.LinkProgram(id_);
  gl.DeleteShader(vertex);
  gl.DeleteShader(fragment);
  GLint ok = 0;
  gl.GetProgramiv(id_, GL_LINK_STATUS, &ok);
  if (ok != 0) return;
  std::string log(4096, '\0');
  GLsizei length = 0;
  gl.GetProgramInfoLog(id_, static_cast<GLsizei>(log.size()), &length, log.data());
  log.resize(static_cast<size_t>(length));
  gl.DeleteProgram(id_);
  throw Error(ErrorCode::kUnavailable, fmt::format("the OpenGL driver cannot link {} with {}: {}",
                                                   vertex_name, fragment_name, one_line(std::move(log))));
}

GlProgram::~GlProgram() { gl_->DeleteProgram(id_); }

void GlProgram::use() const { gl_->UseProgram(id_); }
GLint GlProgram::find(const char* name) const { return gl_->GetUniformLocation(id_, name); }
void GlProgram::set(const char* name, int value) const { gl_->Uniform1i(find(name), value); }
void GlProgram::set(const char* name, float value) const { gl_->Uniform1f(find(name), value); }
void GlProgram::set(const char* name, const Vec2f& v) const { gl_->Uniform2f(find(name), v.x(), v.y()); }
void GlProgram::set(const char* name, const Vec3f& v) const {
  gl_->Uniform3f(find(name), v.x(), v.y(), v.z());
}
void GlProgram::set(const char* name, const Vec4f& v) const {
  gl_->Uniform4f(find(name), v.x(), v.y(), v.z(), v.w());
}
void GlProgram::set(const char* name, const Vec2i& v) const { gl_->Uniform2i(find(name), v.x(), v.y()); }
void GlProgram::set(const char* name, const Vec3i& v) const {
  gl_->Uniform3i(find(name), v.x(), v.y(), v.z());
}
void GlProgram::set(const char* name, const Mat4f& value) const {
  gl_->UniformMatrix4fv(find(name), 1, GL_FALSE, value.data());  // Eigen and OpenGL both store columns
}

GlBufferTexture::GlBufferTexture(const GlFunctions& gl, GLenum format)
    : gl_(&gl), buffer_(gl), texture_(gl), format_(format) {}

void GlBufferTexture::upload(std::span<const std::byte> bytes) {
  // An empty store would make the texture incomplete, so that at least one texel is always there.
  static constexpr std::byte kNothing[16] = {};
  if (bytes.empty()) bytes = kNothing;
  gl_->BindBuffer(GL_TEXTURE_BUFFER, buffer_.id());
  gl_->BufferData(GL_TEXTURE_BUFFER, static_cast<GLsizeiptr>(bytes.size()), bytes.data(), GL_STREAM_DRAW);
  gl_->BindTexture(GL_TEXTURE_BUFFER, texture_.id());
  gl_->TexBuffer(GL_TEXTURE_BUFFER, format_, buffer_.id());
  gl_->BindBuffer(GL_TEXTURE_BUFFER, 0);
}

void GlBufferTexture::bind(int unit) const {
  gl_->ActiveTexture(GL_TEXTURE0 + static_cast<GLenum>(unit));
  gl_->BindTexture(GL_TEXTURE_BUFFER, texture_.id());
}

void allocate_texture(const GlFunctions& gl, const GlTexture& texture, GLenum format, int width, int height,
                      GLint filter, const void* pixels) {
  GLenum layout = GL_RED;
  GLenum type = GL_UNSIGNED_BYTE;
  if (format == GL_R32UI) layout = GL_RED_INTEGER, type = GL_UNSIGNED_INT;
  if (format == GL_RGBA8) layout = GL_RGBA;
  if (format == GL_DEPTH_COMPONENT32F) layout = GL_DEPTH_COMPONENT, type = GL_FLOAT;
  gl.BindTexture(GL_TEXTURE_2D, texture.id());
  gl.PixelStorei(GL_UNPACK_ALIGNMENT, 1);
  gl.TexImage2D(GL_TEXTURE_2D, 0, static_cast<GLint>(format), width, height, 0, layout, type, pixels);
  gl.TexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, filter);
  gl.TexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, filter);
  gl.TexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_S, GL_CLAMP_TO_EDGE);
  gl.TexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_T, GL_CLAMP_TO_EDGE);
}

}  // namespace coppice::render
