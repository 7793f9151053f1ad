// Buffers of segments and boxes.
#include "apps/render/line_renderer.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "core/error.h"

namespace coppice::render {
namespace {

constexpr int kSegmentVertices = 2;
constexpr int kBoxVertices = 24;
constexpr size_t kTexelsPerLine = 2;

}  // namespace

LineRenderer::LineRenderer(const GlFunctions& gl)
    : gl_(gl),
      program_(gl, "line.vert", "line.frag"),
      no_attributes_(gl),
      segment_buffer_(gl, GL_RGBA32UI),
      box_buffer_(gl, GL_RGBA32UI) {
  gl.GetIntegerv(GL_MAX_TEXTURE_BUFFER_SIZE, &max_texels_);
}

void LineRenderer::clear() {
  segments_.clear();
  boxes_.clear();
  is_uploaded_ = false;
}

void LineRenderer::add_segment(const Vec3f& from, const Vec3f& to, const Rgb& color) {
  segments_.push_back({from, pack_color(color), to});
  is_uploaded_ = false;
}

void LineRenderer::add_box(const Aabb3f& box, const Rgb& color) {
  if (box.is_empty()) return;
  boxes_.push_back({box.min, pack_color(color), box.max});
  is_uploaded_ = false;
}

void LineRenderer::draw_lines(const std::vector<Line>& lines, const GlBufferTexture& buffer,
                              int vertices_per_line) {
  if (lines.empty()) return;
  buffer.bind(0);
  program_.set("u_vertices_per_line", vertices_per_line);
  gl_.DrawArrays(GL_LINES, 0, vertices_per_line * static_cast<GLsizei>(lines.size()));
}

void LineRenderer::draw(const View& view, GLuint framebuffer) {
  const size_t limit =
      std::min<size_t>(static_cast<size_t>(max_texels_) / kTexelsPerLine, 0x7fffffff / kBoxVertices);
  const size_t most = std::max(segments_.size(), boxes_.size());
  if (most > limit) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("this OpenGL driver draws at most {} lines or boxes, not {}", limit, most));
  }
  if (!is_uploaded_) {
    segment_buffer_.upload(std::as_bytes(std::span(segments_)));
    box_buffer_.upload(std::as_bytes(std::span(boxes_)));
    check_gl(gl_, "copying lines to the graphics device");
    is_uploaded_ = true;
  }
  gl_.BindFramebuffer(GL_FRAMEBUFFER, framebuffer);
  gl_.Viewport(0, 0, view.width_px(), view.height_px());
  gl_.Enable(GL_DEPTH_TEST);
  gl_.DepthFunc(GL_LESS);
  gl_.DepthMask(GL_TRUE);
  gl_.BindVertexArray(no_attributes_.id());
  program_.use();
  set_view(program_, view);
  program_.set("u_lines", 0);
  draw_lines(boxes_, box_buffer_, kBoxVertices);
  draw_lines(segments_, segment_buffer_, kSegmentVertices);
  gl_.BindTexture(GL_TEXTURE_BUFFER, 0);
  gl_.BindVertexArray(0);
  gl_.UseProgram(0);
  gl_.Disable(GL_DEPTH_TEST);
  check_gl(gl_, "drawing lines");
}

}  // namespace coppice::render
