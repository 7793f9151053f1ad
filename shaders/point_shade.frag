// Colour and depth of the particle that a pixel sees. The light is a lamp at the camera, dimmer for what is farther
// away, so that bodies of many particles have a shape.
uniform usampler2D u_ids;            // index of the particle + 1; 0: nothing
uniform sampler2D u_depth;
uniform int u_shrink_bits;           // 1: they have half of the frame's pixels along each side
uniform float u_recede_m;            // what is written lies so much farther away
uniform usamplerBuffer u_particles;  // xyz as float bits, index of colour
uniform samplerBuffer u_colors;      // sRGB
uniform int u_is_flat;               // spheres are too small for light on them
uniform float u_near_m;              // of nearly all particles
uniform float u_far_m;

out vec4 o_color;

const float kAmbient = 0.3;
const float kFlatFacing = 0.667;  // the mean over a sphere's disc
const float kFarLight = 0.25;

// The cosine between a sphere's normal and the ray; 0 where a particle is drawn slightly beyond the sphere's outline.
float facing(vec3 center, float radius) {
  Ray ray = view_ray(gl_FragCoord.xy);
  vec3 to_origin = ray.origin - center;
  vec3 across = (to_origin - dot(to_origin, ray.direction) * ray.direction) / radius;
  return sqrt(max(1.0 - dot(across, across), 0.0));
}

void main() {
  ivec2 pixel = ivec2(gl_FragCoord.xy) >> u_shrink_bits;
  uint id = texelFetch(u_ids, pixel, 0).r;
  if (id == 0u) discard;
  uvec4 particle = texelFetch(u_particles, int(id) - 1);
  vec3 center = view_from_world(uintBitsToFloat(particle.xyz));
  float cosine = u_is_flat != 0 ? kFlatFacing : facing(center, visible_radius(center));
  float distance = clamp((-center.z - u_near_m) / (u_far_m - u_near_m), 0.0, 1.0);
  float light = mix(kAmbient, 1.0, cosine) * mix(1.0, kFarLight, distance);
  // Light acts on linear colour; with a gamma of 2 in place of sRGB's curve its root acts on encoded colour.
  o_color = vec4(texelFetch(u_colors, int(particle.w)).rgb * sqrt(light), 1.0);
  // depth_of() changes by so much per metre.
  float slope = -0.5 * (u_orthographic != 0 ? u_clip_from_view[2][2] : u_clip_from_view[3][2] / (center.z * center.z));
  gl_FragDepth = texelFetch(u_depth, pixel, 0).r + u_recede_m * slope;
}
