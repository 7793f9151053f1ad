// Bricks of a volume and rays through them: FOG, SURFACE or SLICES is defined before; FOG needs color_of().
//
// Lengths are in cells. Points are in sample space: values stand at integers, 0 at the first one of the
// bounds' first brick, which has those from 0 to 8 on each axis, the next one those from 8 to 16. Textures
// have the axes in reverse.
uniform sampler3D u_atlas;
uniform usampler3D u_index;    // of the bricks that are drawn
uniform usampler3D u_all;      // of all bricks
uniform ivec3 u_bricks;        // of the bounds
uniform vec3 u_is_flat;        // 1 on axes that the tree does not have
uniform vec3 u_texel;          // 1 / size of the atlas, its axes
uniform float u_step;          // cells
uniform int u_samples_exits;   // else samples go on across the faces of bricks: fewer, for drafts of fog
uniform float u_threshold;

const vec4 kBad = vec4(1.0, 0.0, 1.0, 1.0);  // of values that are not finite
const uint kFull = 0x80000000u;

bool is_bad(float v) { return (floatBitsToUint(v) & 0x7f800000u) == 0x7f800000u; }

float fetch(uint entry, vec3 at_in_brick) {
  vec3 slot = vec3(entry & 255u, (entry >> 8) & 255u, (entry >> 16) & 255u);
  return textureLod(u_atlas, (slot * 9.0 + clamp(at_in_brick, 0.0, 8.0).zyx + 0.5) * u_texel, 0.0).r;
}

ivec3 brick_at(vec3 p) { return clamp(ivec3(floor(p * 0.125)), ivec3(0), u_bricks - 1); }

// Zero where there is no brick.
float value_at(vec3 p) {
  if (any(lessThan(p, vec3(0.0))) || any(greaterThan(p, vec3(u_bricks) * 8.0))) return 0.0;
  ivec3 brick = brick_at(p);
  uint entry = texelFetch(u_all, brick.zyx, 0).r;
  return entry < kFull ? 0.0 : fetch(entry, p - vec3(brick) * 8.0);
}

// What the ray has met.
struct Found {
  vec4 color;   // premultiplied
  float t;      // of a surface; below 0: there is none
  float t_before, value_before, value;  // the sample before it and the one at it
  vec3 normal;  // not zero: of a side of what is drawn
};

#ifdef FOG
// From one sample to the next, by the colour of their mean.
bool pass(inout Found found, float t, float v, float t_next, float v_next) {
  if (is_bad(v_next)) {
    found.color += (1.0 - found.color.a) * kBad;
    return true;
  }
  vec4 c = color_of(0.5 * (v + v_next));
  float alpha = 1.0 - exp2(-c.a * (t_next - t));
  found.color += (1.0 - found.color.a) * alpha * vec4(c.rgb, 1.0);
  return found.color.a > 0.995;
}
#else
bool pass(inout Found found, float t, float v, float t_next, float v_next) {
  bool hit = (v >= u_threshold) != (v_next >= u_threshold);
  if (!hit && !is_bad(v_next)) return false;
  found.t_before = t;
  found.value_before = v;
  found.t = t_next;
  found.value = v_next;
  return true;
}
#endif

#ifndef SLICES
// Bricks are stepped through in integers: a rounded coordinate never decides which brick comes next along the
// axis that the ray leaves by, and never leaves the box that was passed along the others.
Found march(vec3 origin, vec3 d, float t, float t_end) {
  Found found = Found(vec4(0.0), -1.0, 0.0, 0.0, 0.0, vec3(0.0));
  vec3 inverse = 1.0 / d;
  bvec3 forward = greaterThan(d, vec3(0.0));
  ivec3 brick = brick_at(origin + t * d);
  bool has_value = false;
  float v = 0.0;
  float t_v = t;  // where v is
  for (int guard = 0; guard < 8192; ++guard) {
    uint entry = texelFetch(u_index, brick.zyx, 0).r;
    int reach = entry < kFull ? max(int(entry), 1) - 1 : 0;
    ivec3 low = brick - reach;
    ivec3 high = brick + reach;
    vec3 exits = (mix(vec3(low), vec3(high + 1), forward) * 8.0 - origin) * inverse;
    float t_out = min(min(exits.x, exits.y), exits.z);
    if (entry >= kFull) {
      vec3 local = origin - vec3(brick) * 8.0;
      float t_last = min(t_out, t_end);
      if (!has_value) {
        v = fetch(entry, local + t * d);
        t_v = t;
        if (is_bad(v)) {
          found.t = found.t_before = t;
          found.value = v;
          found.color += (1.0 - found.color.a) * kBad;
          return found;
        }
      }
      float k = floor(t_v / u_step) + 1.0;
      for (int samples = 0; samples < 64 && t_v < t_last; ++samples) {
        float t_next = k * u_step;
        if (t_next >= t_last) {
          if (u_samples_exits == 0 && t_out < t_end) break;
          t_next = t_last;
        }
        k += 1.0;
        float v_next = fetch(entry, local + t_next * d);
        if (pass(found, t_v, v, t_next, v_next)) return found;
        t_v = t_next;
        v = v_next;
      }
    }
    has_value = entry >= kFull;
    if (t_out >= t_end) return found;
    t = max(t, t_out);
    ivec3 next = clamp(ivec3(floor((origin + t * d) * 0.125)), low, high);
    ivec3 beyond = ivec3(forward.x ? high.x + 1 : low.x - 1, forward.y ? high.y + 1 : low.y - 1,
                         forward.z ? high.z + 1 : low.z - 1);
    if (exits.x <= t_out) next.x = beyond.x;
    if (exits.y <= t_out) next.y = beyond.y;
    if (exits.z <= t_out) next.z = beyond.z;
    if (any(lessThan(next, ivec3(0))) || any(greaterThanEqual(next, u_bricks))) return found;
    brick = next;
  }
  return found;
}
#endif

#ifdef SURFACE
// Where the value is the threshold between two samples: one secant step, and the one after it within what is
// left.
float refine(Found found, vec3 origin, vec3 d) {
  float a = found.t_before, b = found.t;
  float fa = found.value_before - u_threshold, fb = found.value - u_threshold;
  if (a == b || fa == fb) return b;
  float t = mix(a, b, clamp(fa / (fa - fb), 0.0, 1.0));
  float f = value_at(origin + t * d) - u_threshold;
  if (is_bad(f)) return t;
  if ((f >= 0.0) == (fa >= 0.0)) a = t, fa = f;
  else b = t, fb = f;
  return fa == fb ? t : mix(a, b, clamp(fa / (fa - fb), 0.0, 1.0));
}
#endif
