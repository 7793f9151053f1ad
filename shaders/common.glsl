// Put before every shader: the camera, and rays against the two primitives. All geometry is in view space.
uniform mat4 u_view_from_world;
uniform mat4 u_clip_from_view;
uniform vec2 u_half_extent;      // of the frame: tangents (perspective) or metres (orthographic)
uniform int u_orthographic;
uniform vec2 u_target_size;      // pixels of what is drawn into
uniform float u_pixel_m;         // side of a pixel, in metres at distance 1 (perspective) or anywhere (orthographic)
uniform float u_radius_m;        // of particles

const uint kNothing = 0u;
const uint kFirstCollider = 0xffff0000u;
const uint kFirstSurface = 0xfffe0000u;  // of particles; below: index of the particle + 1

struct Ray {
  vec3 origin;
  vec3 direction;  // unit
};

Ray view_ray(vec2 target_pixel) {
  vec2 at = (target_pixel / u_target_size * 2.0 - 1.0) * u_half_extent;
  if (u_orthographic != 0) return Ray(vec3(at, 0.0), vec3(0.0, 0.0, -1.0));
  return Ray(vec3(0.0), normalize(vec3(at, -1.0)));
}

// Distance along the ray, or -1. The offset from the centre is made perpendicular first: no cancellation for small
// spheres far away.
float hit_sphere(Ray ray, vec3 center, float radius) {
  vec3 to_origin = ray.origin - center;
  float along = dot(to_origin, ray.direction);
  vec3 across = to_origin - along * ray.direction;
  float inside = radius * radius - dot(across, across);
  return inside < 0.0 ? -1.0 : -along - sqrt(inside);
}

// Particles never become smaller than about a pixel, where rasterization would lose them.
float visible_radius(vec3 center_view, float radius_m) {
  float pixel = u_orthographic != 0 ? u_pixel_m : u_pixel_m * -center_view.z;
  return max(radius_m, 0.6 * pixel);
}
float visible_radius(vec3 center_view) { return visible_radius(center_view, u_radius_m); }

// Of a particle of the still renderer, from its colour's highest byte: see PackedParticle.
float packed_radius(uint color) { return u_radius_m * float((color >> 27) + 1u) / 32.0; }
uint packed_look(uint color) { return (color >> 24) & 7u; }

float depth_of(float view_z) {
  float w = u_orthographic != 0 ? 1.0 : -view_z;
  return 0.5 * (u_clip_from_view[2][2] * view_z + u_clip_from_view[3][2]) / w + 0.5;
}

vec3 view_from_world(vec3 p) { return (u_view_from_world * vec4(p, 1.0)).xyz; }

// Colliders: 4 texels each: centre and shape (0 sphere, 1 box); then the local axes in the world with the half sizes.
uniform samplerBuffer u_colliders;

struct Collider {
  vec3 center;      // world
  mat3 axes;        // columns: world_from_local
  vec3 half_size;
  bool is_box;
};

Collider load_collider(int index) {
  vec4 a = texelFetch(u_colliders, 4 * index);
  vec4 x = texelFetch(u_colliders, 4 * index + 1);
  vec4 y = texelFetch(u_colliders, 4 * index + 2);
  vec4 z = texelFetch(u_colliders, 4 * index + 3);
  return Collider(a.xyz, mat3(x.xyz, y.xyz, z.xyz), vec3(x.w, y.w, z.w), a.w > 0.5);
}

// Distance along the ray (in the collider's local frame, from its centre), or -1; from inside, the far side.
float hit_box(vec3 origin, vec3 direction, vec3 half_size) {
  vec3 inverse = 1.0 / direction;
  vec3 a = (-half_size - origin) * inverse;
  vec3 b = (half_size - origin) * inverse;
  vec3 low = min(a, b);
  vec3 high = max(a, b);
  float enter = max(max(low.x, low.y), low.z);
  float leave = min(min(high.x, high.y), high.z);
  return enter > leave || leave < 0.0 ? -1.0 : enter;
}

float hit_collider(Collider c, vec3 world_origin, vec3 world_direction) {
  if (!c.is_box) return hit_sphere(Ray(world_origin, world_direction), c.center, c.half_size.x);
  return hit_box((world_origin - c.center) * c.axes, world_direction * c.axes, c.half_size);
}
