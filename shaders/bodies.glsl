// Particles, colliders and jelly at a sample, lit.
uniform usamplerBuffer u_particles;  // xyz as float bits, colour and look
uniform samplerBuffer u_surfaces;    // smooth normal, ambient visibility
const vec3 kColliderColor = vec3(0.34, 0.35, 0.37);
const uint kLookWater = 1u;
const uint kLookSnow = 3u;
const uint kLookSand = 4u;

// A cubic through the sRGB curve, within 0.002 of it, to save three powers per sample.
vec3 linear_from_srgb(vec3 c) { return c * (0.012 + c * (0.684 + 0.304 * c)); }

Surface particle_surface(uint id, Ray ray, vec3 origin, vec3 direction) {
  uvec4 texel = texelFetch(u_particles, int(id) - 1);
  vec4 surface = texelFetch(u_surfaces, int(id) - 1);
  vec3 center = uintBitsToFloat(texel.xyz);
  vec3 center_view = view_from_world(center);
  float radius = visible_radius(center_view, packed_radius(texel.w));
  float t = hit_sphere(ray, center_view, radius);
  vec3 normal = mat3(u_world_from_view) * ((ray.origin + t * ray.direction - center_view) / radius);
  // Spheres of a few pixels are noise: there the heap's own surface takes over.
  vec3 smooth_normal = (surface.xyz * 255.0 - 128.0) / 127.0;
  float pixel = u_orthographic != 0 ? u_pixel_m : u_pixel_m * -center_view.z;
  float radius_px = radius / (pixel * float(u_samples));
  float own = mix(0.35, 0.62, smoothstep(1.5, 6.0, radius_px));
  uint look = packed_look(texel.w);
  bool is_grain = look == kLookSnow || look == kLookSand;
  if (is_grain) own *= look == kLookSnow ? 0.45 : 0.6;
  vec3 blended = mix(normal, normal * own + smooth_normal * (1.0 - own), min(1.0, length(smooth_normal)));
  uvec3 channels = uvec3(texel.w, texel.w >> 8, texel.w >> 16) & 255u;
  vec3 albedo = linear_from_srgb(vec3(channels) / 255.0);
  // Grains are rough, drops are not.
  float gloss = look == kLookWater ? 0.9 : is_grain ? 0.03 : 0.10;
  if (look == kLookWater) albedo = mix(albedo, vec3(0.75, 0.85, 0.92), 0.65);
  // Light goes through snow, so that its hollows are not dark.
  float visibility = look == kLookSnow ? mix(surface.w, 1.0, 0.4) : surface.w;
  // Grains throw shadows on the heap, but hardly on their neighbours.
  vec3 facing = normal;
  if (look == kLookSnow) facing = mix(normal, 2.5 * smooth_normal, min(1.0, length(smooth_normal)));
  return Surface(albedo, origin + t * direction, normalize(blended), facing, visibility, gloss);
}

Surface collider_surface(uint id, vec3 origin, vec3 direction) {
  Collider c = load_collider(int(id - kFirstCollider));
  vec3 position = origin + hit_collider(c, origin, direction) * direction;
  vec3 local = (position - c.center) * c.axes;
  vec3 normal = round_normal(c, local);
  if (normal == vec3(0.0)) {
    vec3 nearness = abs(local) / c.half_size;
    float most = max(max(nearness.x, nearness.y), nearness.z);
    normal = sign(local) * step(most, nearness);
  }
  normal = normalize(c.axes * normal);
  return Surface(kColliderColor, position, normal, normal, openness(position, normal), 0.12);
}

#ifdef JELLY
uniform sampler3D u_body_colors;     // of jelly, alpha 0 where there is none
uniform vec3 u_colors_origin;        // m
uniform vec3 u_colors_size;

vec3 jelly_color(vec3 world) {
  vec3 at = (world - u_colors_origin) / u_colors_size;
  vec4 c = texture(u_body_colors, at);
  return linear_from_srgb(c.rgb / max(c.a, 1e-3));
}

// Light goes some way into jelly and comes out coloured; the surface is smooth and reflects.
vec3 light_jelly(vec3 world, vec3 direction, float edge, vec2 turn) {
  vec3 normal = body_normal(kJelly, world, direction);
  vec3 albedo = jelly_color(world);
  float shadow = shadow_light(world, normal, turn);
  float wrapped = max((dot(normal, u_to_light) + 0.45) / 1.45, 0.0);
  // The way that light comes through the body to here, in particles' spacings.
  float through = leave_body(kJelly, world - 1.5 * u_cell_m * normal, u_to_light) / (1.25 * u_cell_m);
  vec3 deep = pow(albedo, vec3(0.4 + 0.1 * through)) * exp(-through / 16.0);
  float open = openness(world, normal);
  vec3 ambient = mix(kGroundLight, kSkyLight, 0.5 + 0.5 * normal.y) * open;
  vec3 color = albedo * (kSun * 0.30 * wrapped * wrapped * shadow + ambient * 0.75) + kSun * 0.30 * deep;
  vec3 mirrored = reflect(direction, normal);
  float fresnel = 0.04 + 0.96 * pow(1.0 - max(dot(normal, -direction), 0.0), 5.0);
  float glint = pow(max(dot(mirrored, u_to_light), 0.0), 90.0);
  return color * edge + sky(mirrored) * fresnel * open * 0.6 + kSun * (0.35 * glint * shadow);
}

#endif

// What a sample sees but for floor, water and background: false when it is none of these.
bool body_at(vec2 sample_pixel, uint id, vec3 origin, vec3 direction, Ray ray, vec2 turn, out vec3 color,
             out float t) {
  color = vec3(0.0);
  t = -1.0;
  if (id == kNothing) return false;
  float unit_m = 5.0 * u_radius_m;
#ifdef JELLY
  if (id >= kFirstSurface && id < kFirstCollider) {
    float here_m = distance_from_depth(texelFetch(u_depth, ivec2(sample_pixel), 0).r);
    t = here_m / -ray.direction.z;
    float edge = edge_light(ivec2(sample_pixel), here_m, unit_m);
    color = light_jelly(origin + t * direction, direction, edge, turn);
    return true;
  }
#endif
  Surface s;
  if (id >= kFirstCollider) {
    s = collider_surface(id, origin, direction);
  } else {
    s = particle_surface(id, ray, origin, direction);
  }
  t = dot(s.position - origin, direction);
  color = light_surface(s, direction, edge_light(ivec2(sample_pixel), t * -ray.direction.z, unit_m), turn);
  return true;
}
