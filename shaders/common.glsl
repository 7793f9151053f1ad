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

// Colliders: 6 texels each: centre and shape; the local axes in the world with the half sizes; a plane's normal and
// offset, or the place of a mesh's first distance and their spacing; and how many distances there are per axis, and where
// they begin, in units of 64. Distances follow, four to a texel.
uniform samplerBuffer u_colliders;

struct Collider {
  vec3 center;      // world
  mat3 axes;        // columns: world_from_local
  vec3 half_size;
  int shape;
  vec4 plane;       // or low and spacing
  ivec3 nodes;
  int first;        // of the distances
};
const int kSphere = 0;
const int kBox = 1;
const int kPlane = 2;
const int kCapsule = 3;
const int kMesh = 4;

Collider load_collider(int index) {
  vec4 a = texelFetch(u_colliders, 6 * index);
  vec4 x = texelFetch(u_colliders, 6 * index + 1);
  vec4 y = texelFetch(u_colliders, 6 * index + 2);
  vec4 z = texelFetch(u_colliders, 6 * index + 3);
  vec4 plane = texelFetch(u_colliders, 6 * index + 4);
  vec4 nodes = texelFetch(u_colliders, 6 * index + 5);
  return Collider(a.xyz, mat3(x.xyz, y.xyz, z.xyz), vec3(x.w, y.w, z.w), int(a.w + 0.5), plane, ivec3(nodes.xyz),
                  64 * int(nodes.w));
}

float distance_node(Collider c, ivec3 at) {
  int i = c.first + (at.x * c.nodes.y + at.y) * c.nodes.z + at.z;
  return texelFetch(u_colliders, i >> 2)[i & 3];
}
// Of a mesh's surface, from a local place; trilinear.
float mesh_distance(Collider c, vec3 local) {
  vec3 x = clamp((local - c.plane.xyz) / c.plane.w, vec3(0.0), vec3(c.nodes - 1));
  ivec3 cell = min(ivec3(x), c.nodes - 2);
  vec3 part = x - vec3(cell);
  vec4 low_z, high_z;  // xy: 00, 01, 10, 11
  for (int k = 0; k < 4; ++k) {
    ivec3 at = cell + ivec3(k >> 1, k & 1, 0);
    low_z[k] = distance_node(c, at);
    high_z[k] = distance_node(c, at + ivec3(0, 0, 1));
  }
  vec4 along_z = mix(low_z, high_z, part.z);
  vec2 along_y = mix(along_z.xz, along_z.yw, part.y);
  return mix(along_y.x, along_y.y, part.x);
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

// The part of a half space in a box. Who looks from behind the plane looks through; flat scenes are seen along it.
float hit_plane(vec3 origin, vec3 direction, Collider c) {
  float enter = hit_box(origin, direction, c.half_size);
  if (enter == -1.0) return -1.0;
  float before = dot(c.plane.xyz, origin) - c.plane.w;
  float toward = -dot(c.plane.xyz, direction);
  if (before < 0.0) return abs(toward) < 1e-6 ? enter : -1.0;
  if (toward <= 0.0) return -1.0;
  float t = max(enter, before / toward);
  vec3 beyond = abs(origin + t * direction) - c.half_size * 1.0001;
  return max(max(beyond.x, beyond.y), beyond.z) > 0.0 ? -1.0 : t;
}

// About y: between its ends a cylinder, beyond them a sphere.
float hit_capsule(vec3 origin, vec3 direction, Collider c) {
  float radius = c.half_size.x;
  float half_height = c.half_size.y - radius;
  vec2 o = origin.xz;
  vec2 d = direction.xz;
  float d2 = max(dot(d, d), 1e-12);
  float across = dot(o, d);
  float root2 = across * across - d2 * (dot(o, o) - radius * radius);
  if (root2 < 0.0) return -1.0;
  float t = (-across - sqrt(root2)) / d2;
  float y = origin.y + t * direction.y;
  if (abs(y) <= half_height && d2 > 1e-11) return t;
  float end = d2 > 1e-11 ? sign(y) : -sign(direction.y);
  return hit_sphere(Ray(origin, direction), vec3(0.0, end * half_height, 0.0), radius);
}

// Follows the ray by the distance that is free.
float hit_mesh(vec3 origin, vec3 direction, Collider c) {
  float enter = hit_box(origin, direction, c.half_size);
  if (enter == -1.0) return -1.0;
  float t = max(enter, 0.0);
  for (int i = 0; i < 128; ++i) {
    vec3 local = origin + t * direction;
    float free = mesh_distance(c, local);
    if (free < 0.02 * c.plane.w) return t;
    t += max(free, 0.05 * c.plane.w);
    vec3 beyond = abs(origin + t * direction) - c.half_size * 1.001;
    if (max(max(beyond.x, beyond.y), beyond.z) > 0.0) return -1.0;
  }
  return -1.0;
}

float hit_collider(Collider c, vec3 world_origin, vec3 world_direction) {
  if (c.shape == kSphere) return hit_sphere(Ray(world_origin, world_direction), c.center, c.half_size.x);
  vec3 origin = (world_origin - c.center) * c.axes;
  vec3 direction = world_direction * c.axes;
  if (c.shape == kPlane) return hit_plane(origin, direction, c);
  if (c.shape == kCapsule) return hit_capsule(origin, direction, c);
  if (c.shape == kMesh) return hit_mesh(origin, direction, c);
  return hit_box(origin, direction, c.half_size);
}

// In the collider's frame, of a point on its surface; 0 where that is on a face of a box.
vec3 round_normal(Collider c, vec3 local) {
  if (c.shape == kSphere) return normalize(local);
  if (c.shape == kPlane && abs(dot(c.plane.xyz, local) - c.plane.w) < 1e-3 * length(c.half_size)) return c.plane.xyz;
  if (c.shape == kCapsule) {
    float half_height = c.half_size.y - c.half_size.x;
    return normalize(vec3(local.x, local.y - clamp(local.y, -half_height, half_height), local.z));
  }
  if (c.shape == kMesh) {
    vec2 e = vec2(0.5 * c.plane.w, 0.0);
    vec3 along = vec3(mesh_distance(c, local + e.xyy) - mesh_distance(c, local - e.xyy),
                      mesh_distance(c, local + e.yxy) - mesh_distance(c, local - e.yxy),
                      mesh_distance(c, local + e.yyx) - mesh_distance(c, local - e.yyx));
    return normalize(along + vec3(0.0, 1e-12, 0.0));
  }
  return vec3(0.0);
}
