// A small particle: one GL point over the sphere's outline, at the depth of the sphere's front.
uniform usamplerBuffer u_particles;  // xyz as float bits, index of colour

flat out vec2 v_depth;  // of the sphere's centre; what its front is nearer
flat out uint v_id;

void main() {
  vec3 center = view_from_world(uintBitsToFloat(texelFetch(u_particles, gl_VertexID).xyz));
  float radius = visible_radius(center);
  float pixel = u_orthographic != 0 ? u_pixel_m : u_pixel_m * -center.z;
  float front = depth_of(center.z + radius);
  float middle = depth_of(center.z);
  v_depth = vec2(middle, middle - front);
  v_id = uint(gl_VertexID) + 1u;
  gl_Position = u_clip_from_view * vec4(center, 1.0);
  gl_Position.z = (2.0 * front - 1.0) * gl_Position.w;
  gl_PointSize = 2.0 * radius / pixel;
}
