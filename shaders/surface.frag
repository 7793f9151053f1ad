// Depth of a body's surface, by ray.
#include "surface.glsl"
uniform mat4 u_world_from_view;
uniform int u_field;

out uint o_id;

void main() {
  Ray ray = view_ray(gl_FragCoord.xy);
  vec3 origin = (u_world_from_view * vec4(ray.origin, 1.0)).xyz;
  vec3 direction = mat3(u_world_from_view) * ray.direction;
  float t = enter_body(u_field, origin, direction);
  if (t < 0.0) discard;
  gl_FragDepth = depth_of(ray.origin.z + t * ray.direction.z);
  o_id = kFirstSurface + uint(u_field);
}
