// A collider's lit surface, by ray, with exact depth.
flat in int v_index;

uniform mat4 u_world_from_view;
uniform vec2 u_shown_low;   // world: what lies outside is not shown
uniform vec2 u_shown_high;
uniform vec3 u_to_light;  // world
uniform vec3 u_color;     // linear
uniform int u_is_flat;    // a scene of two dimensions: no light

out vec4 o_color;

// In the world, of a point on the collider's surface.
vec3 normal_at(Collider c, vec3 world) {
  vec3 local = (world - c.center) * c.axes;
  vec3 normal = round_normal(c, local);
  if (normal != vec3(0.0)) return c.axes * normal;
  vec3 beyond = abs(local) - c.half_size;  // largest on the axis whose face it is
  vec3 axis = beyond.x > beyond.y ? (beyond.x > beyond.z ? vec3(1, 0, 0) : vec3(0, 0, 1))
                                  : (beyond.y > beyond.z ? vec3(0, 1, 0) : vec3(0, 0, 1));
  return c.axes * (axis * sign(local));
}

void main() {
  Ray ray = view_ray(gl_FragCoord.xy);
  vec3 origin = (u_world_from_view * vec4(ray.origin, 1.0)).xyz;
  vec3 direction = mat3(u_world_from_view) * ray.direction;
  Collider c = load_collider(v_index);
  float t = hit_collider(c, origin, direction);
  if (t < 0.0) discard;
  vec2 at = (origin + t * direction).xy;
  if (any(lessThan(at, u_shown_low)) || any(greaterThan(at, u_shown_high))) discard;
  gl_FragDepth = depth_of(ray.origin.z + t * ray.direction.z);
  vec3 normal = normal_at(c, origin + t * direction);
  float sun = max((dot(normal, u_to_light) + 0.25) / 1.25, 0.0);
  vec3 light = 0.72 * sun + mix(vec3(0.16, 0.14, 0.13), vec3(0.28, 0.31, 0.36), 0.5 + 0.5 * normal.y);
  o_color = vec4(pow(min(u_is_flat != 0 ? u_color : u_color * light, 1.0), vec3(1.0 / 2.2)), 1.0);
}
