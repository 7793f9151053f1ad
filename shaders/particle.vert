// With GRAINS particles have radii of their own. One triangle per particle, facing the eye, whose inscribed
// circle is exactly the sphere's outline.
uniform usamplerBuffer u_particles;  // xyz as float bits, colour

flat out vec4 v_sphere;  // view space
flat out uint v_id;

void main() {
  int index = gl_VertexID / 3;
  int vertex = gl_VertexID - 3 * index;
  uvec4 texel = texelFetch(u_particles, index);
  vec3 center = view_from_world(uintBitsToFloat(texel.xyz));
#ifdef GRAINS
  float radius = visible_radius(center, packed_radius(texel.w));
#else
  float radius = visible_radius(center);
#endif
  v_sphere = vec4(center, radius);
  v_id = uint(index) + 1u;

  vec3 right = vec3(1.0, 0.0, 0.0);
  vec3 up = vec3(0.0, 1.0, 0.0);
  vec3 middle = center;
  float outline = radius;
  if (u_orthographic == 0) {
    float squared = dot(center, center);
    float sine = radius * radius / squared;
    if (sine >= 1.0) {  // the eye is inside
      gl_Position = vec4(2.0, 2.0, 2.0, 1.0);
      return;
    }
    vec3 toward = center * inversesqrt(squared);
    middle = center * (1.0 - sine);
    outline = radius * sqrt(1.0 - sine);
    right = normalize(abs(toward.y) < 0.9 ? cross(toward, vec3(0.0, 1.0, 0.0)) : cross(toward, vec3(1.0, 0.0, 0.0)));
    up = cross(right, toward);
  }
  vec2 corner = vertex == 0 ? vec2(0.0, 2.0) : vec2(vertex == 1 ? -1.7320508 : 1.7320508, -1.0);
  gl_Position = u_clip_from_view * vec4(middle + 1.002 * outline * (corner.x * right + corner.y * up), 1.0);
}
