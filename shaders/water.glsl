// Water as a clear body: what is seen through it, bent, tinted by how far light went, and what it mirrors.
uniform sampler2D u_water_depth;     // of its surface, per sample; 1: there is none
uniform vec3 u_absorption;           // 1/m

float water_depth_at(ivec2 at) { return texelFetch(u_water_depth, at, 0).r; }

const vec3 kWaterGlow = vec3(0.012, 0.110, 0.185);  // scattered light of deep water

vec3 tinted(vec3 color, float length_m) {
  vec3 passed = exp(-u_absorption * length_m);
  return color * passed + kWaterGlow * (1.0 - passed);
}

vec3 water_at(vec2 sample_pixel, vec3 origin, vec3 direction, float t, vec2 turn, vec3 behind) {
  vec3 p = origin + t * direction;
  vec3 normal = body_normal(kWater, p, direction);
  vec3 inward = refract(direction, normal, 1.0 / 1.33);
  float length_m = leave_body(kWater, p - 0.05 * u_cell_m * normal, inward);
  vec3 exit = p + length_m * inward;
  // The way on behind it: out into the air, or mirrored once at a wall or under the surface.
  float all_m = length_m;
  vec3 end = exit;
  vec3 onward = inward;
  if (exit.y > u_domain_min.y + 0.02 * u_cell_m) {
    vec3 side = body_normal(kWater, exit, -inward);
    onward = refract(inward, -side, 1.33);
    if (dot(onward, onward) == 0.0) {
      onward = reflect(inward, side);
      float more_m = leave_body(kWater, exit - 0.05 * u_cell_m * side, onward);
      end = exit + more_m * onward;
      all_m += more_m;
    }
  }
  vec3 color = behind;
  // Bodies are looked up where the bent ray comes out, in the picture.
  vec4 clip = u_clip_from_view * vec4(view_from_world(exit), 1.0);
  vec2 at = (clip.xy / clip.w * 0.5 + 0.5) * u_target_size;
  bool found = false;
  if (clip.w > 0.0 && all(greaterThanEqual(at, vec2(0.0))) && all(lessThan(at, u_target_size))) {
    at = floor(at) + 0.5;
    Ray ray = view_ray(at);
    vec3 from = (u_world_from_view * vec4(ray.origin, 1.0)).xyz;
    vec3 along = mat3(u_world_from_view) * ray.direction;
    vec3 body;
    float t_body;
    if (body_at(at, texelFetch(u_ids, ivec2(at), 0).r, from, along, ray, turn, body, t_body)) {
      vec3 q = from + t_body * along;
      if (dot(q - p, direction) > 0.0 && q.y > u_domain_min.y) {
        color = tinted(body, min(length_m, length(q - p)));
        found = true;
      }
    }
  }
  if (!found) {
    float t_floor = onward.y < -1e-4 ? (u_domain_min.y - end.y) / onward.y : -1.0;
    if (end.y < u_domain_min.y + 0.02 * u_cell_m) t_floor = 0.0;
    if (t_floor >= 0.0) color = shade_floor(end + t_floor * onward, onward, t + all_m + t_floor, behind);
    color = tinted(color, all_m);
  }
  vec3 mirrored = reflect(direction, normal);
  float fresnel = 0.02 + 0.98 * pow(1.0 - max(dot(normal, -direction), 0.0), 5.0);
  float glint = pow(max(dot(mirrored, u_to_light), 0.0), 250.0) * shadow_light(p, normal, turn);
  return mix(color, sky(mirrored), fresnel) + kSun * 1.2 * glint;
}
