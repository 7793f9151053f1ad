// Exact depth of a collider's surface, by ray.
flat in int v_index;

uniform mat4 u_world_from_view;
uniform vec2 u_shown_low;   // world: what lies outside is not shown
uniform vec2 u_shown_high;

out uint o_id;

void main() {
  Ray ray = view_ray(gl_FragCoord.xy);
  vec3 origin = (u_world_from_view * vec4(ray.origin, 1.0)).xyz;
  vec3 direction = mat3(u_world_from_view) * ray.direction;
  float t = hit_collider(load_collider(v_index), origin, direction);
  if (t < 0.0) discard;
  vec2 at = (origin + t * direction).xy;
  if (any(lessThan(at, u_shown_low)) || any(greaterThan(at, u_shown_high))) discard;
  gl_FragDepth = depth_of(ray.origin.z + t * ray.direction.z);
  o_id = kFirstCollider + uint(v_index);
}
