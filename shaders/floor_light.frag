// How much of the key light reaches each point of the floor, and in which colour: a disc of light, so that
// shadows are the softer the higher stands what casts them.
uniform sampler2D u_solid;           // depths from the light
uniform sampler2D u_water;
uniform mat4 u_shadow_from_world;    // to [0, 1]
uniform vec4 u_floor_bounds;         // min x, min z, max x, max z, m
uniform float u_floor_y;
uniform float u_map_side_m;          // of what the shadow maps cover
uniform float u_map_depth_m;
uniform vec3 u_absorption;           // of water, 1/m

out vec4 o_color;

const float kSoftness = 0.11;        // radius of the light's disc at distance 1
const int kBlockerTaps = 32;
const int kTaps = 64;

// Evenly spread over the unit disc.
vec2 disc_point(int i, int n) {
  float angle = 2.3999632 * float(i);
  return sqrt((float(i) + 0.5) / float(n)) * vec2(cos(angle), sin(angle));
}

void main() {
  vec2 p = mix(u_floor_bounds.xy, u_floor_bounds.zw, gl_FragCoord.xy / u_target_size);
  vec3 at = (u_shadow_from_world * vec4(p.x, u_floor_y, p.y, 1.0)).xyz;
  o_color = vec4(1.0);
  if (any(lessThan(at, vec3(0.0))) || any(greaterThan(at, vec3(1.0)))) return;
  float texel = 1.0 / float(textureSize(u_solid, 0).x);
  float limit = at.z - (2.0 * texel * u_map_side_m + 0.5 * u_radius_m) / u_map_depth_m;
  // How high above the floor, along the light, is what may be in the way.
  float widest = min(kSoftness * 0.35 * u_map_depth_m / u_map_side_m, 0.06);
  float gap = 0.0;
  float blockers = 0.0;
  for (int i = 0; i < kBlockerTaps; ++i) {
    float depth = texture(u_solid, at.xy + widest * disc_point(i, kBlockerTaps)).r;
    float blocks = step(depth, limit);
    gap += blocks * (at.z - depth);
    blockers += blocks;
  }
  float light = 1.0;
  if (blockers > 0.0) {
    float radius = clamp(kSoftness * gap / blockers * u_map_depth_m / u_map_side_m, 1.5 * texel, widest);
    light = 0.0;
    for (int i = 0; i < kTaps; ++i)
      light += step(limit, texture(u_solid, at.xy + radius * disc_point(i, kTaps)).r);
    light /= float(kTaps);
  }
  vec3 passed = vec3(0.0);
  for (int i = 0; i < 16; ++i) {
    float depth = texture(u_water, at.xy + 5.0 * texel * disc_point(i, 16)).r;
    float through_m = max(at.z - depth, 0.0) * u_map_depth_m;
    passed += through_m > 0.0 ? 0.9 * exp(-0.7 * u_absorption * through_m) : vec3(1.0);
  }
  o_color = vec4(light * passed / 16.0, 1.0);
}
