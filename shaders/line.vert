// Ends of lines: two for a segment, 24 for the edges of a box.
uniform usamplerBuffer u_lines;  // two texels each: from (xyz as float bits) and colour; to
uniform int u_vertices_per_line;

flat out vec3 v_color;

void main() {
  int line = gl_VertexID / u_vertices_per_line;
  int vertex = gl_VertexID - line * u_vertices_per_line;
  uvec4 from = texelFetch(u_lines, 2 * line);
  uvec4 to = texelFetch(u_lines, 2 * line + 1);
  int end = vertex & 1;
  vec3 weight = vec3(float(end));
  if (u_vertices_per_line == 24) {
    // Four edges along each axis, at the corners of the other two.
    int edge = vertex >> 1;
    int axis = edge >> 2;
    weight[axis] = float(end);
    weight[(axis + 1) % 3] = float(edge & 1);
    weight[(axis + 2) % 3] = float((edge >> 1) & 1);
  }
  vec3 world = mix(uintBitsToFloat(from.xyz), uintBitsToFloat(to.xyz), weight);
  gl_Position = u_clip_from_view * vec4(view_from_world(world), 1.0);
  v_color = vec3((uvec3(from.w) >> uvec3(0u, 8u, 16u)) & 255u) / 255.0;
}
