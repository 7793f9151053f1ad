// A rectangle across y.
uniform vec3 u_low;
uniform vec3 u_high;

out vec3 v_world;

void main() {
  int corner = gl_VertexID < 3 ? gl_VertexID : 6 - gl_VertexID;  // 0 1 2, 3 2 1
  v_world = vec3((corner & 1) == 0 ? u_low.x : u_high.x, u_low.y, (corner & 2) == 0 ? u_low.z : u_high.z);
  gl_Position = u_clip_from_view * vec4(view_from_world(v_world), 1.0);
}
