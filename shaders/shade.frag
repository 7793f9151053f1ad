// Lights every visible sample, averages the samples of a pixel in linear light, and writes sRGB.
uniform usampler2D u_ids;            // per sample
uniform sampler2D u_depth;           // per sample
uniform usamplerBuffer u_particles;  // xyz as float bits, colour
uniform samplerBuffer u_surfaces;    // smooth normal, ambient visibility
uniform sampler2DShadow u_shadow;    // from the key light
uniform sampler2D u_floor_light;     // ambient visibility of the floor

uniform mat4 u_world_from_view;
uniform mat4 u_shadow_from_world;    // to [0, 1]
uniform float u_shadow_texel_m;
uniform int u_samples;               // along each side of a pixel
uniform int u_dim;
uniform vec2 u_frame_size;           // pixels
uniform vec3 u_to_light;             // world
uniform vec3 u_domain_min;
uniform vec3 u_domain_max;
uniform vec4 u_floor_bounds;         // min x, min z, max x, max z of u_floor_light; empty when it is not there
uniform float u_grid_m;              // spacing of the floor's lines
uniform vec4 u_edges[12];            // of the domain, behind everything: ends in pixels
uniform int u_n_edges;

out vec4 o_color;

const vec3 kSun = vec3(2.05, 1.95, 1.78);
const vec3 kSkyLight = vec3(0.50, 0.57, 0.68);
const vec3 kGroundLight = vec3(0.26, 0.24, 0.23);
const vec3 kColliderColor = vec3(0.34, 0.35, 0.37);
const vec3 kFloorColor = vec3(0.060, 0.068, 0.080);

// A cubic through the sRGB curve, within 0.002 of it, to save three powers per sample.
vec3 linear_from_srgb(vec3 c) { return c * (0.012 + c * (0.684 + 0.304 * c)); }

vec3 srgb_from_linear(vec3 c) {
  return mix(c * 12.92, 1.055 * pow(c, vec3(1.0 / 2.4)) - 0.055, greaterThan(c, vec3(0.0031308)));
}

vec3 background(vec2 pixel) {
  float y = pixel.y / u_frame_size.y;
  vec3 low = vec3(0.036, 0.042, 0.052);
  vec3 high = vec3(0.098, 0.118, 0.150);
  return mix(low, high, smoothstep(0.0, 1.0, y));
}

float distance_from_depth(float depth) {
  float ndc = 2.0 * depth - 1.0;
  float a = u_clip_from_view[2][2];
  float b = u_clip_from_view[3][2];
  return u_orthographic != 0 ? (b - ndc) / a : b / (ndc + a);
}

// Eye-dome lighting: a sample is darker where its neighbours are nearer, in units of the particle size.
float edge_light(ivec2 sample_pixel, float here_m, float unit_m) {
  const vec2 around[6] = vec2[6](vec2(1.0, 0.0), vec2(0.5, 0.866), vec2(-0.5, 0.866), vec2(-1.0, 0.0),
                                 vec2(-0.5, -0.866), vec2(0.5, -0.866));
  ivec2 last = ivec2(u_target_size) - 1;
  float occlusion = 0.0;
  for (int i = 0; i < 6; ++i) {
    ivec2 at = clamp(sample_pixel + ivec2(round(around[i] * 1.4 * float(u_samples))), ivec2(0), last);
    float there_m = distance_from_depth(texelFetch(u_depth, at, 0).r);
    occlusion += clamp((here_m - there_m) / unit_m - 0.15, 0.0, 1.0);
  }
  return exp(-0.22 * occlusion);
}

// Four taps at uneven distances, turned by `turn` (cosine, sine), so that the taps of a pixel's samples interleave.
float shadow_light(vec3 world, vec3 normal, vec2 turn) {
  vec3 lifted = world + normal * (1.5 * u_shadow_texel_m + 0.6 * u_radius_m);
  vec3 at = (u_shadow_from_world * vec4(lifted, 1.0)).xyz;
  if (any(lessThan(at, vec3(0.0))) || any(greaterThan(at, vec3(1.0)))) return 1.0;
  float texel = 1.0 / float(textureSize(u_shadow, 0).x);
  vec2 x = turn * texel;
  vec2 y = vec2(-turn.y, turn.x) * texel;
  float light = texture(u_shadow, vec3(at.xy + 0.5 * x, at.z));
  light += texture(u_shadow, vec3(at.xy + 1.1 * y, at.z));
  light += texture(u_shadow, vec3(at.xy - 1.6 * x, at.z));
  light += texture(u_shadow, vec3(at.xy - 2.1 * y, at.z));
  return 0.25 * light;
}

struct Surface {
  vec3 albedo;
  vec3 position;  // world
  vec3 normal;    // for light
  vec3 facing;    // geometric, for the shadow's offset
  float visibility;
  float gloss;
};

vec3 light_surface(Surface s, vec3 direction, float edge, vec2 turn) {
  float wrapped = (dot(s.normal, u_to_light) + 0.12) / 1.12;
  float sun = max(wrapped, 0.0);
  if (sun > 0.0) sun *= shadow_light(s.position, s.facing, turn);
  vec3 ambient = mix(kGroundLight, kSkyLight, 0.5 + 0.5 * s.normal.y) * s.visibility;
  // Light that bounced inside a coloured body keeps its colour.
  ambient *= mix(vec3(1.0), 0.55 + 0.45 * normalize(s.albedo + 0.02) * 1.732, 1.0 - s.visibility);
  vec3 halfway = normalize(u_to_light - direction);
  float aligned = max(dot(s.normal, halfway), 0.0);
  for (int i = 0; i < 5; ++i) aligned *= aligned;
  float shine = s.gloss * aligned * sun;
  float grazing = 1.0 - max(dot(s.normal, -direction), 0.0);
  grazing *= grazing;
  grazing *= grazing;
  vec3 rim = kSkyLight * (0.22 * grazing * s.visibility);
  return (s.albedo * (kSun * sun * 0.44 + ambient) + shine * kSun + rim * (0.25 + s.albedo)) * edge;
}

Surface particle_surface(uint id, Ray ray, vec3 origin, vec3 direction) {
  uvec4 texel = texelFetch(u_particles, int(id) - 1);
  vec4 surface = texelFetch(u_surfaces, int(id) - 1);
  vec3 center = uintBitsToFloat(texel.xyz);
  vec3 center_view = view_from_world(center);
  float radius = visible_radius(center_view);
  float t = hit_sphere(ray, center_view, radius);
  vec3 normal = mat3(u_world_from_view) * ((ray.origin + t * ray.direction - center_view) / radius);
  // Spheres of a few pixels are noise: there the heap's own surface takes over.
  vec3 smooth_normal = (surface.xyz * 255.0 - 128.0) / 127.0;
  float pixel = u_orthographic != 0 ? u_pixel_m : u_pixel_m * -center_view.z;
  float radius_px = radius / (pixel * float(u_samples));
  float own = mix(0.35, 0.62, smoothstep(1.5, 6.0, radius_px));
  vec3 blended = mix(normal, normal * own + smooth_normal * (1.0 - own), min(1.0, length(smooth_normal)));
  uvec3 channels = uvec3(texel.w, texel.w >> 8, texel.w >> 16) & 255u;
  vec3 albedo = linear_from_srgb(vec3(channels) / 255.0);
  return Surface(albedo, origin + t * direction, normalize(blended), normal, surface.w, 0.10);
}

Surface collider_surface(uint id, vec3 origin, vec3 direction) {
  Collider c = load_collider(int(id - kFirstCollider));
  vec3 position = origin + hit_collider(c, origin, direction) * direction;
  vec3 local = (position - c.center) * c.axes;
  vec3 normal = normalize(local);
  if (c.is_box) {
    vec3 nearness = abs(local) / c.half_size;
    float most = max(max(nearness.x, nearness.y), nearness.z);
    normal = sign(local) * step(most, nearness);
  }
  normal = normalize(c.axes * normal);
  return Surface(kColliderColor, position, normal, normal, 1.0, 0.12);
}

float line_cover(float distance_m, float width_m, float footprint_m) {
  float half_width = max(0.5 * width_m, 0.5 * footprint_m);
  float fade = min(1.0, width_m / footprint_m);
  return fade * (1.0 - smoothstep(half_width - 0.5 * footprint_m, half_width + 0.5 * footprint_m, distance_m));
}

float outline_distance(vec2 p, vec2 low, vec2 high) {
  vec2 q = abs(p - 0.5 * (low + high)) - 0.5 * (high - low);
  return abs(length(max(q, 0.0)) + min(max(q.x, q.y), 0.0));
}

vec3 shade_floor(vec3 position, vec3 direction, float t, vec3 behind, vec2 turn) {
  vec2 p = position.xz;
  vec2 low = u_domain_min.xz;
  vec2 high = u_domain_max.xz;
  float size = max(high.x - low.x, high.y - low.y);
  float reach = length(p - 0.5 * (low + high)) / size;
  float solid = 1.0 - smoothstep(0.75, 2.1, reach);
  if (solid <= 0.0) return behind;
  float footprint = 1.4 * (u_orthographic != 0 ? u_pixel_m : u_pixel_m * t) * float(u_samples) / max(-direction.y, 0.05);
  vec3 albedo = kFloorColor;
  vec2 to_line = abs(fract(p / u_grid_m + 0.5) - 0.5) * u_grid_m;
  bool inside = all(greaterThan(p, low)) && all(lessThan(p, high));
  if (inside) albedo += 0.040 * line_cover(min(to_line.x, to_line.y), 0.0022 * size, footprint);
  float outline = line_cover(outline_distance(p, low, high), 0.0045 * size, footprint);
  albedo = mix(albedo, vec3(0.27, 0.30, 0.34), 0.8 * outline);
  float visibility = 1.0;
  vec2 at = (p - u_floor_bounds.xy) / (u_floor_bounds.zw - u_floor_bounds.xy);
  if (u_floor_bounds.z > u_floor_bounds.x) visibility = texture(u_floor_light, at).r;
  vec3 up = vec3(0.0, 1.0, 0.0);
  float sun = u_to_light.y * shadow_light(position, up, turn);
  vec3 lit = albedo * (kSun * sun * 0.75 + kSkyLight * visibility * visibility * 0.9);
  return mix(behind * mix(1.0, visibility, solid), lit, solid);
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

vec3 trace_3d(vec2 sample_pixel, uint id, vec2 turn, vec3 behind) {
  Ray ray = view_ray(sample_pixel);
  vec3 origin = (u_world_from_view * vec4(ray.origin, 1.0)).xyz;
  vec3 direction = mat3(u_world_from_view) * ray.direction;
  float floor_t = direction.y < -1e-4 ? (u_domain_min.y - origin.y) / direction.y : -1.0;
  Surface s;
  if (id != kNothing) {
    if (id >= kFirstCollider) {
      s = collider_surface(id, origin, direction);
    } else {
      s = particle_surface(id, ray, origin, direction);
    }
    // What stands in the floor is cut by it.
    if (floor_t <= 0.0 || dot(s.position - origin, direction) < floor_t) {
      float here_m = dot(s.position - origin, direction) * -ray.direction.z;
      float edge = edge_light(ivec2(sample_pixel), here_m, 5.0 * u_radius_m);
      return light_surface(s, direction, edge, turn);
    }
  }
  vec3 color = behind;
  if (floor_t > 0.0) color = shade_floor(origin + floor_t * direction, direction, floor_t, behind, turn);
  return mix(color, vec3(0.27, 0.30, 0.34), 0.45 * edge_cover(sample_pixel / float(u_samples)));
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

// What the pixel around `sample_pixel` shows; `turn` is shadow_light's.
vec3 trace(vec2 sample_pixel, uint id, vec2 turn, vec3 behind) {
  if (u_dim == 3) return soft_limit(trace_3d(sample_pixel, id, turn, behind));
  return soft_limit(trace_2d(sample_pixel, id, behind));
}

void main() {
  vec2 pixel = gl_FragCoord.xy;
  vec3 behind = background(pixel);
  ivec2 first = ivec2(pixel) * u_samples;
  uint id = texelFetch(u_ids, first, 0).r;
  bool same = id < kFirstCollider;
  for (int i = 1; i < u_samples * u_samples; ++i) {
    same = same && texelFetch(u_ids, first + ivec2(i % u_samples, i / u_samples), 0).r == id;
  }
  // Where all samples see the same particle, which is convex, or the floor, one in their middle does. Boxes have edges.
  int n_samples = same ? 1 : u_samples * u_samples;
  vec3 color = vec3(0.0);
  for (int i = 0; i < n_samples; ++i) {
    ivec2 at = first + ivec2(i % u_samples, i / u_samples);
    vec2 sample_pixel = same ? pixel * float(u_samples) : vec2(at) + 0.5;
    float angle = 0.49 + 0.3927 * float(i);
    color += trace(sample_pixel, texelFetch(u_ids, at, 0).r, vec2(cos(angle), sin(angle)), behind);
  }
  color /= float(n_samples);
  // Half a step of fixed noise, so that the gradients show no bands.
  float noise = fract(52.9829189 * fract(dot(floor(pixel), vec2(0.06711056, 0.00583715)))) - 0.5;
  o_color = vec4(srgb_from_linear(color) + noise / 255.0, 1.0);
}
