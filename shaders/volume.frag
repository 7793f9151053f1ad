// One ray through the bricks of a volume: FOG, SURFACE or SLICES is defined before.
uniform sampler2D u_colors;    // 256 x 1: colour, and extinction per cell in powers of 2
uniform sampler2D u_opaque;    // depth of what the framebuffer has
uniform int u_has_opaque;
uniform float u_pixel_scale;   // pixels of the framebuffer in one of the target's
uniform mat4 u_cell_from_view;
uniform vec3 u_low;            // what is drawn
uniform vec3 u_high;
uniform vec2 u_range;          // values of the first and the last colour, or their logarithms to base 2
uniform int u_is_logarithmic;
uniform vec3 u_surface_color;  // linear
uniform int u_is_clear;
uniform vec3 u_absorption;     // 1 / cell
uniform vec3 u_cut_low;        // 1 on axes where a body has a face at u_low
uniform vec3 u_cut_high;
uniform vec3 u_to_light;
uniform vec3 u_slice;          // sample space
uniform vec3 u_has_slice;
uniform int u_nearest;
uniform int u_hides_zero;

out vec4 o_color;  // premultiplied

float color_index(float v) {
  if (u_is_logarithmic != 0) v = log2(max(v, 1e-37));
  return clamp((v - u_range.x) / (u_range.y - u_range.x), 0.0, 1.0) * 255.0;
}
vec4 color_of(float v) { return texelFetch(u_colors, ivec2(color_index(v) + 0.5, 0), 0); }

#include "bricks.glsl"

#ifdef SURFACE
// Beyond a side that cuts the body off values go on as they are there.
vec3 gradient_at(vec3 p) {
  const vec2 h = vec2(1.0, 0.0);
  vec3 low = mix(vec3(-1e9), u_low, u_cut_low);
  vec3 high = mix(vec3(1e9), u_high, u_cut_high);
#define AT(offset) value_at(clamp(p + (offset), low, high))
  vec3 g = vec3(AT(h.xyy) - AT(-h.xyy), AT(h.yxy) - AT(-h.yxy), AT(h.yyx) - AT(-h.yyx));
#undef AT
  return g * (1.0 - u_is_flat);
}

vec4 shade(vec3 normal, vec3 d) {
  float sun = max((dot(normal, u_to_light) + 0.25) / 1.25, 0.0);
  float sky = 0.5 + 0.5 * normal.y;
  float shine = pow(max(dot(normal, normalize(u_to_light - d)), 0.0), 40.0);
  vec3 light = u_surface_color * (0.72 * sun + mix(vec3(0.16, 0.14, 0.13), vec3(0.28, 0.31, 0.36), sky));
  return vec4(pow(min(light + 0.12 * shine, 1.0), vec3(1.0 / 2.2)), 1.0);
}
#endif

#ifdef SURFACE
const vec3 kGlow = vec3(0.03, 0.25, 0.52);  // scattered light of deep water, linear
const int kMostCrossings = 6;

vec3 sky(vec3 d) {
  vec3 above = mix(vec3(0.62, 0.68, 0.75), vec3(0.26, 0.42, 0.68), smoothstep(0.0, 0.85, d.y));
  return mix(vec3(0.16, 0.17, 0.19), above, smoothstep(-0.06, 0.04, d.y));
}

// Cells of a straight ray that are inside of the body, from its surface at t on.
float cells_inside(vec3 origin, vec3 d, float t, float t_end) {
  float cells = 0.0;
  for (int i = 0; i < kMostCrossings && t < t_end; ++i) {
    float t_start = min(t + 0.1, t_end);
    bool is_inside = value_at(clamp(origin + t_start * d, u_low, u_high)) >= u_threshold;
    Found next = march(origin, d, t_start, t_end);
    float t_next = next.t < 0.0 || is_bad(next.value) ? t_end : min(refine(next, origin, d), t_end);
    if (is_inside) cells += t_next - t;
    t = max(t_next, t_start);
  }
  return cells;
}

// A clear body over what is behind it, which it darkens evenly: colours cannot be multiplied by blending.
vec4 shade_clear(vec3 normal, vec3 d, float cells) {
  vec3 passed = exp(-u_absorption * cells);
  vec3 mirrored = reflect(d, normal);
  float fresnel = 0.02 + 0.98 * pow(1.0 - clamp(dot(normal, -d), 0.0, 1.0), 5.0);
  float glint = pow(max(dot(mirrored, u_to_light), 0.0), 250.0);
  float alpha = 1.0 - (1.0 - fresnel) * dot(passed, vec3(0.45, 0.35, 0.2));
  vec3 light = mix(kGlow * (1.0 - passed), sky(mirrored), fresnel);
  vec3 color = pow(min(light / max(alpha, 1e-3), 1.0), vec3(1.0 / 2.2)) * alpha;
  return vec4(min(color + glint, 1.0), min(alpha + glint, 1.0));
}
#endif

#ifdef SLICES
// Of the cell that the point lies in.
float cell_value(uint entry, vec3 at_in_brick) {
  ivec3 slot = ivec3(entry & 255u, (entry >> 8) & 255u, (entry >> 16) & 255u);
  ivec3 cell = clamp(ivec3(floor(at_in_brick + 0.5)), ivec3(0), ivec3(8));
  return texelFetch(u_atlas, slot * 9 + cell.zyx, 0).r;
}

// The nearest of three planes that meets a brick.
Found nearest_slice(vec3 origin, vec3 d, float t_first, float t_end) {
  Found found = Found(vec4(0.0), -1.0, 0.0, 0.0, 0.0, vec3(0.0));
  float best = t_end;
  for (int axis = 0; axis < 3; ++axis) {
    float t = (u_slice[axis] - origin[axis]) / d[axis];
    if (u_has_slice[axis] == 0.0 || t < t_first || t >= best) continue;
    vec3 p = origin + t * d;
    p[axis] = u_slice[axis];
    if (any(lessThan(p, u_low)) || any(greaterThan(p, u_high))) continue;
    if (u_nearest != 0) p = mix(floor(p + 0.5), p, u_is_flat);
    ivec3 brick = brick_at(p);
    uint entry = texelFetch(u_all, brick.zyx, 0).r;
    if (entry < kFull) continue;
    if (u_hides_zero != 0 && cell_value(entry, p - vec3(brick) * 8.0) == 0.0) continue;
    float v = fetch(entry, p - vec3(brick) * 8.0);
    found.color = is_bad(v) ? kBad : vec4(color_of(v).rgb, 1.0);
    found.t = best = t;
  }
  return found;
}
#endif

// View z of the nearest opaque thing at the pixel.
float opaque_z(vec2 pixel) {
  float depth = texelFetch(u_opaque, ivec2(pixel * u_pixel_scale), 0).r;
  if (depth >= 1.0) return -3.0e38;
  float ndc = 2.0 * depth - 1.0;
  if (u_orthographic != 0) return (ndc - u_clip_from_view[3][2]) / u_clip_from_view[2][2];
  return -u_clip_from_view[3][2] / (ndc + u_clip_from_view[2][2]);
}

void main() {
  o_color = vec4(0.0);
#ifndef FOG
  gl_FragDepth = 1.0;
#endif
  Ray ray = view_ray(gl_FragCoord.xy);
  vec3 origin = (u_cell_from_view * vec4(ray.origin, 1.0)).xyz;
  vec3 d = (u_cell_from_view * vec4(ray.direction, 0.0)).xyz;
  float cells_per_m = length(d);
  d /= cells_per_m;
  d = mix(d, vec3(1e-9), lessThan(abs(d), vec3(1e-9)));  // nothing is divided by zero
  vec3 a = (u_low - origin) / d;
  vec3 b = (u_high - origin) / d;
  vec3 enter = min(a, b);
  vec3 leave = max(a, b);
  float t_enter = max(max(enter.x, enter.y), enter.z);
  float t = max(t_enter, 0.0);
  float t_end = min(min(leave.x, leave.y), leave.z);
  if (u_has_opaque != 0) {
    float z = opaque_z(gl_FragCoord.xy);
    float t_opaque = (z - ray.origin.z) / ray.direction.z * cells_per_m;
#ifdef SLICES
    // Of volumes that one plane cuts the one that was drawn first is before the others.
    t_opaque -= 2e-4 * abs(t_opaque);
#endif
    t_end = min(t_end, t_opaque);
  }
  if (!(t < t_end)) return;
#ifdef SLICES
  Found found = nearest_slice(origin, d, t, t_end);
  o_color = found.color;
#else
  Found found = Found(vec4(0.0), -1.0, 0.0, 0.0, 0.0, vec3(0.0));
#ifdef SURFACE
  vec3 cut = vec3(equal(enter, vec3(t_enter))) * mix(u_cut_high, u_cut_low, vec3(greaterThan(d, vec3(0.0))));
  if (t_enter > 0.0 && dot(cut, cut) > 0.0) {
    float v = value_at(clamp(origin + t * d, u_low, u_high));
    if (is_bad(v) || (v >= u_threshold) != (0.0 >= u_threshold)) {
      found.t = found.t_before = t;
      found.value = found.value_before = v;
      found.normal = normalize(-sign(d) * cut);
    }
  }
  if (found.t < 0.0)
#endif
    found = march(origin, d, t, t_end);
  o_color = found.color;
#endif
#ifdef SURFACE
  if (found.t >= 0.0) {
    if (is_bad(found.value)) {
      o_color = kBad;
    } else {
      found.t = refine(found, origin, d);
      vec3 g = gradient_at(origin + found.t * d);
      float size = length(g);
      vec3 normal = size > 0.0 && !is_bad(size) ? g / size : -d;
      if (dot(found.normal, found.normal) > 0.0) normal = found.normal;
      if (dot(normal, d) > 0.0) normal = -normal;
      o_color = u_is_clear != 0 ? shade_clear(normal, d, cells_inside(origin, d, found.t, t_end))
                                : shade(normal, d);
    }
  }
#endif
#ifndef FOG
  if (found.t >= 0.0)
    gl_FragDepth = clamp(depth_of(ray.origin.z + ray.direction.z * found.t / cells_per_m), 0.0, 1.0);
#endif
}
