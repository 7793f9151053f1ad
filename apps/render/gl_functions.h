// The OpenGL 3.3 entry points that the renderer uses, loaded by name at run time.
//
// Nothing links libGL: a table is filled through eglGetProcAddress, glfwGetProcAddress or the like, for the
// context that is current. The table is plain data and is passed by reference; it must outlive the objects
// made through it.
#pragma once

#include <GL/glcorearb.h>

#include <string>

namespace coppice::render {

#define COPPICE_GL_FUNCTIONS(X)                                                        \
  X(PFNGLACTIVETEXTUREPROC, ActiveTexture)                                             \
  X(PFNGLATTACHSHADERPROC, AttachShader)                                               \
  X(PFNGLBINDBUFFERPROC, BindBuffer)                                                   \
  X(PFNGLBINDFRAMEBUFFERPROC, BindFramebuffer)                                         \
  X(PFNGLBINDRENDERBUFFERPROC, BindRenderbuffer)                                       \
  X(PFNGLBINDTEXTUREPROC, BindTexture)                                                 \
  X(PFNGLBINDVERTEXARRAYPROC, BindVertexArray)                                         \
  X(PFNGLBLENDFUNCPROC, BlendFunc)                                                     \
  X(PFNGLBLITFRAMEBUFFERPROC, BlitFramebuffer)                                         \
  X(PFNGLBUFFERDATAPROC, BufferData)                                                   \
  X(PFNGLCHECKFRAMEBUFFERSTATUSPROC, CheckFramebufferStatus)                           \
  X(PFNGLCLEARBUFFERFVPROC, ClearBufferfv)                                             \
  X(PFNGLCLEARBUFFERUIVPROC, ClearBufferuiv)                                           \
  X(PFNGLCOLORMASKPROC, ColorMask)                                                     \
  X(PFNGLCOMPILESHADERPROC, CompileShader)                                             \
  X(PFNGLCREATEPROGRAMPROC, CreateProgram)                                             \
  X(PFNGLCREATESHADERPROC, CreateShader)                                               \
  X(PFNGLCULLFACEPROC, CullFace)                                                       \
  X(PFNGLDELETEBUFFERSPROC, DeleteBuffers)                                             \
  X(PFNGLDELETEFRAMEBUFFERSPROC, DeleteFramebuffers)                                   \
  X(PFNGLDELETEPROGRAMPROC, DeleteProgram)                                             \
  X(PFNGLDELETERENDERBUFFERSPROC, DeleteRenderbuffers)                                 \
  X(PFNGLDELETESHADERPROC, DeleteShader)                                               \
  X(PFNGLDELETETEXTURESPROC, DeleteTextures)                                           \
  X(PFNGLDELETEVERTEXARRAYSPROC, DeleteVertexArrays)                                   \
  X(PFNGLDEPTHFUNCPROC, DepthFunc)                                                     \
  X(PFNGLDEPTHMASKPROC, DepthMask)                                                     \
  X(PFNGLDISABLEPROC, Disable)                                                         \
  X(PFNGLDRAWARRAYSPROC, DrawArrays)                                                   \
  X(PFNGLDRAWBUFFERPROC, DrawBuffer)                                                   \
  X(PFNGLENABLEPROC, Enable)                                                           \
  X(PFNGLFINISHPROC, Finish)                                                           \
  X(PFNGLFRAMEBUFFERRENDERBUFFERPROC, FramebufferRenderbuffer)                         \
  X(PFNGLFRAMEBUFFERTEXTURE2DPROC, FramebufferTexture2D)                               \
  X(PFNGLGENBUFFERSPROC, GenBuffers)                                                   \
  X(PFNGLGENFRAMEBUFFERSPROC, GenFramebuffers)                                         \
  X(PFNGLGENRENDERBUFFERSPROC, GenRenderbuffers)                                       \
  X(PFNGLGENTEXTURESPROC, GenTextures)                                                 \
  X(PFNGLGENVERTEXARRAYSPROC, GenVertexArrays)                                         \
  X(PFNGLGETERRORPROC, GetError)                                                       \
  X(PFNGLGETFRAMEBUFFERATTACHMENTPARAMETERIVPROC, GetFramebufferAttachmentParameteriv) \
  X(PFNGLGETINTEGERVPROC, GetIntegerv)                                                 \
  X(PFNGLGETPROGRAMINFOLOGPROC, GetProgramInfoLog)                                     \
  X(PFNGLGETPROGRAMIVPROC, GetProgramiv)                                               \
  X(PFNGLGETSHADERINFOLOGPROC, GetShaderInfoLog)                                       \
  X(PFNGLGETSHADERIVPROC, GetShaderiv)                                                 \
  X(PFNGLGETSTRINGPROC, GetString)                                                     \
  X(PFNGLGETTEXIMAGEPROC, GetTexImage)                                                 \
  X(PFNGLGETUNIFORMLOCATIONPROC, GetUniformLocation)                                   \
  X(PFNGLLINKPROGRAMPROC, LinkProgram)                                                 \
  X(PFNGLPIXELSTOREIPROC, PixelStorei)                                                 \
  X(PFNGLREADBUFFERPROC, ReadBuffer)                                                   \
  X(PFNGLREADPIXELSPROC, ReadPixels)                                                   \
  X(PFNGLRENDERBUFFERSTORAGEPROC, RenderbufferStorage)                                 \
  X(PFNGLSCISSORPROC, Scissor)                                                         \
  X(PFNGLSHADERSOURCEPROC, ShaderSource)                                               \
  X(PFNGLTEXBUFFERPROC, TexBuffer)                                                     \
  X(PFNGLTEXIMAGE2DPROC, TexImage2D)                                                   \
  X(PFNGLTEXIMAGE3DPROC, TexImage3D)                                                   \
  X(PFNGLTEXPARAMETERIPROC, TexParameteri)                                             \
  X(PFNGLTEXSUBIMAGE3DPROC, TexSubImage3D)                                             \
  X(PFNGLUNIFORM1FPROC, Uniform1f)                                                     \
  X(PFNGLUNIFORM1IPROC, Uniform1i)                                                     \
  X(PFNGLUNIFORM2FPROC, Uniform2f)                                                     \
  X(PFNGLUNIFORM2IPROC, Uniform2i)                                                     \
  X(PFNGLUNIFORM3FPROC, Uniform3f)                                                     \
  X(PFNGLUNIFORM3IPROC, Uniform3i)                                                     \
  X(PFNGLUNIFORM4FPROC, Uniform4f)                                                     \
  X(PFNGLUNIFORMMATRIX4FVPROC, UniformMatrix4fv)                                       \
  X(PFNGLUSEPROGRAMPROC, UseProgram)                                                   \
  X(PFNGLVIEWPORTPROC, Viewport)

struct GlFunctions {
#define COPPICE_GL_MEMBER(type, name) type name = nullptr;
  COPPICE_GL_FUNCTIONS(COPPICE_GL_MEMBER)
#undef COPPICE_GL_MEMBER
};

using GlProc = void (*)();
using GlProcLoader = GlProc (*)(const char* name);

// Throws Error(kUnavailable) naming the first entry point that the driver lacks.
GlFunctions load_gl_functions(GlProcLoader loader);

// "4.5 (Core Profile) Mesa 22.3.6, llvmpipe (...)" of the current context.
std::string describe_gl(const GlFunctions& gl);

// Throws Error(kOutOfMemory) or Error(kInternal) if OpenGL recorded an error; `where` is what was being done.
void check_gl(const GlFunctions& gl, const char* where);

}  // namespace coppice::render
