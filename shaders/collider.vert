// The box around each collider: 36 vertices, of which the caller draws the back faces.
flat out int v_index;

void main() {
  v_index = gl_VertexID / 36;
  Collider c = load_collider(v_index);
  int vertex = gl_VertexID % 36;
  int face = vertex / 6;
  int corner = vertex % 6;
  // Two triangles of a face: (0 1 2) (2 1 3), counter-clockwise from outside.
  int which = corner < 3 ? corner : (corner == 3 ? 2 : (corner == 4 ? 1 : 3));
  float side = face < 3 ? 1.0 : -1.0;
  float u = (which & 1) == 0 ? -1.0 : 1.0;
  float v = (which & 2) == 0 ? -1.0 : 1.0;
  u *= side;
  int axis = face % 3;
  vec3 local = axis == 0 ? vec3(side, u, v) : (axis == 1 ? vec3(v, side, u) : vec3(u, v, side));
  vec3 world = c.center + c.axes * (local * c.half_size * 1.001);
  gl_Position = u_clip_from_view * vec4(view_from_world(world), 1.0);
}
