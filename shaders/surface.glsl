// Rays against the surfaces of particles, in the world, metres: field 0 is water, field 1 is jelly.
#define SURFACE
#include "bricks.glsl"
uniform int u_has_field[2];
uniform vec3 u_field_low[2];     // what is drawn of it
uniform vec3 u_field_high[2];
uniform vec3 u_field_offset[2];  // cells: sample space is the world's divided by u_cell_m, and this added
uniform float u_cell_m;

const int kWater = 0;
const int kJelly = 1;

vec3 safe_direction(vec3 d) { return mix(d, vec3(1e-7), lessThan(abs(d), vec3(1e-7))); }
float field_at(int f, vec3 world) { return value_at(world / u_cell_m + u_field_offset[f]); }

// Where the ray is in the field's box.
vec2 box_range(int f, vec3 origin, vec3 direction) {
  vec3 a = (u_field_low[f] - origin) / direction;
  vec3 b = (u_field_high[f] - origin) / direction;
  vec3 enter = min(a, b);
  vec3 leave = max(a, b);
  return vec2(max(max(enter.x, enter.y), enter.z), min(min(leave.x, leave.y), leave.z));
}

// Distance along the ray to the next crossing between the two distances, or -1.
float crossing(int f, vec3 origin, vec3 direction, float t_first, float t_last) {
  if (!(t_first < t_last)) return -1.0;
  vec3 start = origin / u_cell_m + u_field_offset[f];
  Found found = march(start, direction, t_first / u_cell_m, t_last / u_cell_m);
  return found.t < 0.0 ? -1.0 : refine(found, start, direction) * u_cell_m;
}

// Distance to where a ray from outside meets the body, or -1. A body that reaches a side of its box is cut
// off there.
float enter_body(int f, vec3 origin, vec3 direction) {
  if (u_has_field[f] == 0) return -1.0;
  direction = safe_direction(direction);
  vec2 range = box_range(f, origin, direction);
  float t = max(range.x, 0.0);
  if (!(t < range.y)) return -1.0;
  if (field_at(f, origin + (t + 1e-3 * u_cell_m) * direction) >= u_threshold) return t;
  return crossing(f, origin, direction, t, range.y);
}

// How far a ray from a point inside goes in the body; 0 when it is outside.
float leave_body(int f, vec3 origin, vec3 direction) {
  direction = safe_direction(direction);
  float t_last = box_range(f, origin, direction).y;
  if (!(t_last > 0.0) || field_at(f, origin) < u_threshold) return 0.0;
  float t = crossing(f, origin, direction, 0.0, t_last);
  return t < 0.0 ? t_last : t;
}

// Outward, at a point of the surface; that of the box where it cuts the body off.
vec3 body_normal(int f, vec3 world, vec3 direction) {
  vec3 to_low = abs(world - u_field_low[f]);
  vec3 to_high = abs(world - u_field_high[f]);
  float near = 2e-3 * u_cell_m;
  if (field_at(f, world) > 1.02 * u_threshold + 0.01) {
    vec3 side = vec3(lessThan(to_high, vec3(near))) - vec3(lessThan(to_low, vec3(near)));
    if (dot(side, direction) < 0.0) return normalize(side);
  }
  // Wide differences: what is smaller than particles is noise.
  vec2 h = vec2(f == kJelly ? 3.2 : 2.5, 0.0);
  vec3 p = world / u_cell_m + u_field_offset[f];
  vec3 slope = vec3(value_at(p + h.xyy) - value_at(p - h.xyy), value_at(p + h.yxy) - value_at(p - h.yxy),
                    value_at(p + h.yyx) - value_at(p - h.yyx));
  float size = length(slope);
  return size > 1e-6 ? -slope / size : -direction;
}
