// Draws coloured segments and edges of boxes in space, one pixel wide: a domain, axes, the blocks of a tree.
#pragma once

#include <cstdint>
#include <vector>

#include "apps/render/color_map.h"
#include "apps/render/gl_objects.h"
#include "apps/render/view.h"
#include "core/math.h"

namespace coppice::render {

class LineRenderer {
 public:
  // The context is current here, in draw() and in the destructor; `gl` outlives the renderer.
  explicit LineRenderer(const GlFunctions& gl);

  void clear();
  void add_segment(const Vec3f& from, const Vec3f& to, const Rgb& color);  // m
  // 12 edges, for 32 bytes; an empty box has none.
  void add_box(const Aabb3f& box, const Rgb& color);

  // Draws into a framebuffer (0: the window's) with depth, tested against the depth that is there.
  // Copies what was added since the last time to the graphics device. Throws Error(kUnavailable)
  // for more than the driver draws.
  void draw(const View& view, GLuint framebuffer);

 private:
  // shaders/line.vert reads this, for segments and boxes alike.
  struct Line {
    Vec3f from;  // m
    uint32_t color;
    Vec3f to;  // m
    uint32_t unused = 0;
  };
  static_assert(sizeof(Line) == 32);

  void draw_lines(const std::vector<Line>& lines, const GlBufferTexture& buffer, int vertices_per_line);

  const GlFunctions& gl_;
  GLint max_texels_ = 0;
  GlProgram program_;
  GlVertexArray no_attributes_;
  GlBufferTexture segment_buffer_;
  GlBufferTexture box_buffer_;
  std::vector<Line> segments_;
  std::vector<Line> boxes_;
  bool is_uploaded_ = false;
};

}  // namespace coppice::render
