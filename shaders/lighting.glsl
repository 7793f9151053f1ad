// Light on surfaces and on the floor of the still renderer. Colours are linear.
uniform sampler2D u_depth;           // per sample
uniform sampler2DShadow u_shadow;    // from the key light
uniform sampler2D u_floor_light;     // ambient visibility of the floor
uniform sampler2D u_floor_sun;       // key light that reaches the floor
uniform sampler3D u_density;         // of particles but for water
uniform vec3 u_density_origin;       // m
uniform vec3 u_density_size;         // m; 0: there is none
uniform float u_density_cell_m;

uniform mat4 u_shadow_from_world;    // to [0, 1]
uniform float u_shadow_texel_m;
uniform int u_samples;               // along each side of a pixel
uniform vec2 u_frame_size;           // pixels
uniform vec3 u_to_light;             // world
uniform vec3 u_domain_min;
uniform vec3 u_domain_max;
uniform vec4 u_floor_bounds;         // min x, min z, max x, max z of u_floor_light; empty when it is not there
uniform vec4 u_floor_sun_bounds;     // of u_floor_sun
uniform float u_grid_m;              // spacing of the floor's lines

const vec3 kSun = vec3(2.05, 1.95, 1.78);
const vec3 kSkyLight = vec3(0.50, 0.57, 0.68);
const vec3 kGroundLight = vec3(0.26, 0.24, 0.23);
const vec3 kFloorColor = vec3(0.262, 0.268, 0.276);
const vec3 kLineColor = vec3(0.62, 0.64, 0.67);

// What shiny things reflect: a bright sky, a lamp's large disc, the ground.
vec3 sky(vec3 d) {
  vec3 above = mix(vec3(0.80, 0.86, 0.92), vec3(0.26, 0.42, 0.68), smoothstep(0.0, 0.85, d.y));
  above += vec3(1.3, 1.25, 1.15) * smoothstep(0.93, 0.985, dot(d, u_to_light));
  return mix(vec3(0.38, 0.39, 0.41), above, smoothstep(-0.06, 0.04, d.y));
}

// Where nothing stands: the floor goes over into it far away, and it becomes lighter upwards.
vec3 background(vec2 pixel, vec3 direction) {
  vec3 color = mix(vec3(0.400, 0.412, 0.430), vec3(0.560, 0.600, 0.650), smoothstep(0.0, 0.45, direction.y));
  vec2 from_middle = pixel / u_frame_size - 0.5;
  return color * (1.06 - 0.55 * dot(from_middle, from_middle));
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

// Four taps at uneven distances, turned by `turn` (cosine, sine), so that the taps of a pixel's samples
// interleave.
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

// Ambient light that arrives at a point of a body that is not made of spheres, by the density around it.
float openness(vec3 world, vec3 normal) {
  if (u_density_size.x <= 0.0) return 1.0;
  float light = 1.0;
  for (int i = 1; i <= 3; ++i) {
    float away_m = u_density_cell_m * float(1 << i);
    vec3 at = (world + away_m * normal - u_density_origin) / u_density_size;
    if (any(lessThan(at, vec3(0.0))) || any(greaterThan(at, vec3(1.0)))) break;
    light *= 1.0 - (i == 1 ? 0.35 : 0.55) * texture(u_density, at).r;
  }
  float above_m = world.y - u_domain_min.y;
  // The floor hides half of the sky from what faces it, close by.
  float floor_near = max(-normal.y, 0.0) * exp(-above_m / (8.0 * u_density_cell_m));
  return light * (1.0 - 0.6 * floor_near);
}

struct Surface {
  vec3 albedo;
  vec3 position;  // world
  vec3 normal;    // for light
  vec3 facing;    // geometric, for the shadow's offset; longer: farther off
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
  vec3 rim = kSkyLight * (0.22 * grazing * s.visibility * min(1.0, 10.0 * s.gloss));
  return (s.albedo * (kSun * sun * 0.44 + ambient) + shine * kSun + rim * (0.25 + s.albedo)) * edge;
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

vec3 shade_floor(vec3 position, vec3 direction, float t, vec3 behind) {
  vec2 p = position.xz;
  vec2 low = u_domain_min.xz;
  vec2 high = u_domain_max.xz;
  float size = max(high.x - low.x, high.y - low.y);
  float reach = length(p - 0.5 * (low + high)) / size;
  float solid = 1.0 - smoothstep(0.75, 2.1, reach);
  vec2 sun_at = (p - u_floor_sun_bounds.xy) / (u_floor_sun_bounds.zw - u_floor_sun_bounds.xy);
  bool has_sun = all(greaterThan(sun_at, vec2(0.0))) && all(lessThan(sun_at, vec2(1.0)));
  vec3 sun = u_to_light.y * (has_sun ? texture(u_floor_sun, sun_at).rgb : vec3(1.0));
  // Shadows of what is high up fall where the floor has faded already.
  vec3 sky = kSkyLight * 0.9;
  behind *= (kSun * sun * 0.62 + sky) / (kSun * u_to_light.y * 0.62 + sky);
  if (solid <= 0.0) return behind;
  float footprint = 1.4 * (u_orthographic != 0 ? u_pixel_m : u_pixel_m * t) * float(u_samples) / max(-direction.y, 0.05);
  vec3 albedo = kFloorColor;
  vec2 to_line = abs(fract(p / u_grid_m + 0.5) - 0.5) * u_grid_m;
  bool inside = all(greaterThan(p, low)) && all(lessThan(p, high));
  if (inside) albedo *= 1.0 + 0.16 * line_cover(min(to_line.x, to_line.y), 0.0018 * size, footprint);
  float outline = line_cover(outline_distance(p, low, high), 0.0036 * size, footprint);
  albedo = mix(albedo, kLineColor, 0.5 * outline);
  float visibility = 1.0;
  vec2 at = (p - u_floor_bounds.xy) / (u_floor_bounds.zw - u_floor_bounds.xy);
  if (u_floor_bounds.z > u_floor_bounds.x) visibility = texture(u_floor_light, at).r;
  vec3 lit = albedo * (kSun * sun * 0.62 + sky * visibility * visibility);
  return mix(behind * mix(1.0, visibility, solid), lit, solid);
}
