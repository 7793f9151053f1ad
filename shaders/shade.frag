// Lights every visible sample, averages the samples of a pixel in linear light, and writes sRGB. With WATER
// and JELLY there are surfaces of these; compiling their rays takes a software rasterizer a second.
#if defined(WATER) || defined(JELLY)
#define BODIES
#endif
uniform mat4 u_world_from_view;
uniform int u_dim;
uniform vec4 u_edges[12];            // of the domain, behind everything: ends in pixels
uniform int u_n_edges;
uniform usampler2D u_ids;            // per sample
#ifdef BODIES
#include "surface.glsl"
#endif
#include "lighting.glsl"
#include "bodies.glsl"
#ifdef WATER
#include "water.glsl"
#endif

out vec4 o_color;

vec3 srgb_from_linear(vec3 c) {
  return mix(c * 12.92, 1.055 * pow(c, vec3(1.0 / 2.4)) - 0.055, greaterThan(c, vec3(0.0031308)));
}

// A calm dark ground for flat scenes.
vec3 background_2d(vec2 pixel) {
  float y = pixel.y / u_frame_size.y;
  vec3 low = vec3(0.036, 0.042, 0.052);
  vec3 high = vec3(0.098, 0.118, 0.150);
  return mix(low, high, smoothstep(0.0, 1.0, y));
}

float edge_cover(vec2 pixel) {
  float nearest = 1e9;
  for (int i = 0; i < u_n_edges; ++i) {
    vec2 along = u_edges[i].zw - u_edges[i].xy;
    vec2 from = pixel - u_edges[i].xy;
    vec2 away = from - along * clamp(dot(from, along) / dot(along, along), 0.0, 1.0);
    nearest = min(nearest, dot(away, away));
  }
  return 1.0 - smoothstep(0.3, 1.3, sqrt(nearest));
}

vec3 trace_3d(vec2 sample_pixel, ivec2 at, uint id, vec2 turn) {
  Ray ray = view_ray(sample_pixel);
  vec3 origin = (u_world_from_view * vec4(ray.origin, 1.0)).xyz;
  vec3 direction = mat3(u_world_from_view) * ray.direction;
  vec3 behind = background(gl_FragCoord.xy, direction);
  float floor_t = direction.y < -1e-4 ? (u_domain_min.y - origin.y) / direction.y : -1.0;
  vec3 color;
  float t;
  // What stands in the floor is cut by it.
  bool has_body = body_at(sample_pixel, id, origin, direction, ray, turn, color, t);
  if (!has_body || (floor_t > 0.0 && floor_t < t)) {
    t = floor_t > 0.0 ? floor_t : 3.0e38;
    color = floor_t > 0.0 ? shade_floor(origin + floor_t * direction, direction, floor_t, behind) : behind;
    color = mix(color, kLineColor, 0.30 * edge_cover(sample_pixel / float(u_samples)));
  }
#ifdef WATER
  float water_depth = water_depth_at(at);
  if (water_depth < 1.0) {
    float t_water = distance_from_depth(water_depth) / -ray.direction.z;
    if (t_water < t) color = water_at(sample_pixel, origin, direction, t_water, turn, behind);
  }
#endif
  return color;
}

vec3 trace_2d(vec2 sample_pixel, uint id, vec3 behind) {
  Ray ray = view_ray(sample_pixel);
  vec3 origin = (u_world_from_view * vec4(ray.origin, 1.0)).xyz;
  vec3 direction = mat3(u_world_from_view) * ray.direction;
  vec3 to_light = normalize(vec3(-0.45, 0.75, 0.6));
  if (id >= kFirstCollider) {
    Surface s = collider_surface(id, origin, direction);
    return s.albedo * (0.55 + 0.30 * max(dot(s.normal, to_light), 0.0));
  }
  if (id != kNothing) {
    Surface s = particle_surface(id, ray, origin, direction);
    vec3 body = normalize(vec3(2.2 * ((texelFetch(u_surfaces, int(id) - 1).xyz * 255.0 - 128.0) / 127.0).xy, 1.0));
    vec3 normal = normalize(body + vec3(0.35 * s.facing.xy, 0.0));
    return s.albedo * (0.42 + 0.72 * max(dot(normal, to_light), 0.0));
  }
  vec2 p = origin.xy;
  float footprint = u_pixel_m * float(u_samples);
  float frame = line_cover(outline_distance(p, u_domain_min.xy, u_domain_max.xy), 2.0 * footprint, footprint);
  bool inside = all(greaterThan(p, u_domain_min.xy)) && all(lessThan(p, u_domain_max.xy));
  vec3 color = inside ? behind * 0.62 : behind;
  if (inside) {
    vec2 to_line = abs(fract((p - u_domain_min.xy) / u_grid_m + 0.5) - 0.5) * u_grid_m;
    color += 0.012 * line_cover(min(to_line.x, to_line.y), footprint, footprint);
  }
  return mix(color, vec3(0.30, 0.34, 0.39), frame);
}

// Leaves dark and middle tones alone and bends highlights below 1.
vec3 soft_limit(vec3 c) {
  vec3 over = max(c - 0.7, 0.0);
  return min(c, 0.7) + 0.3 * over / (over + 0.3);
}

// What the pixel around `sample_pixel` shows; `at` is the sample that stands for it, `turn` is
// shadow_light's.
vec3 trace(vec2 sample_pixel, ivec2 at, uint id, vec2 turn) {
  if (u_dim == 3) return soft_limit(trace_3d(sample_pixel, at, id, turn));
  return soft_limit(trace_2d(sample_pixel, id, background_2d(gl_FragCoord.xy)));
}

// Whether one ray in the middle of these samples sees what they see: they see the same particle, which is
// convex, or the floor. Boxes have edges.
bool are_alike(ivec2 first, uint id) {
  bool same = id < kFirstCollider;
  for (int i = 1; i < u_samples * u_samples; ++i)
    same = same && texelFetch(u_ids, first + ivec2(i % u_samples, i / u_samples), 0).r == id;
  return same;
}

#ifdef BODIES
// Depth of the foremost surface of a body at a sample; 1: there is none.
float body_depth_at(ivec2 at, uint id) {
  float depth = 1.0;
#ifdef WATER
  depth = water_depth_at(at);
#endif
  return depth < 1.0 || id < kFirstSurface ? depth : texelFetch(u_depth, at, 0).r;
}

// Whether these samples see a smooth part of one surface.
bool is_smooth(ivec2 first, uint id) {
  float near = 3.0e38;
  float far = 0.0;
  for (int i = 0; i < u_samples * u_samples; ++i) {
    float depth = body_depth_at(first + ivec2(i % u_samples, i / u_samples), id);
    float here_m = depth < 1.0 ? distance_from_depth(depth) : 1.0e30;
    near = min(near, here_m);
    far = max(far, here_m);
  }
  return far - near < 0.006 * far;
}
#endif

void main() {
  vec2 pixel = gl_FragCoord.xy;
  ivec2 first = ivec2(pixel) * u_samples;
  uint id = texelFetch(u_ids, first, 0).r;
  bool same = are_alike(first, id);
  bool has_depth = false;
#ifdef BODIES
  // Surfaces are where a sample's own ray meets them.
  has_depth = body_depth_at(first, id) < 1.0;
  same = same && is_smooth(first, id);
#endif
  int n_samples = same ? 1 : u_samples * u_samples;
  vec3 color = vec3(0.0);
  for (int i = 0; i < n_samples; ++i) {
    ivec2 at = first + ivec2(i % u_samples, i / u_samples);
    vec2 sample_pixel = same && !has_depth ? pixel * float(u_samples) : vec2(at) + 0.5;
    float angle = 0.49 + 0.3927 * float(i);
    color += trace(sample_pixel, at, texelFetch(u_ids, at, 0).r, vec2(cos(angle), sin(angle)));
  }
  color /= float(n_samples);
  // Half a step of fixed noise, so that the gradients show no bands.
  float noise = fract(52.9829189 * fract(dot(floor(pixel), vec2(0.06711056, 0.00583715)))) - 0.5;
  o_color = vec4(srgb_from_linear(color) + noise / 255.0, 1.0);
}
