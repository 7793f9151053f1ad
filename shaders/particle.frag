// Which particle a pixel sees, and the sphere's own depth. Shading comes later, once per visible pixel.
flat in vec4 v_sphere;
flat in uint v_id;

out uint o_id;

void main() {
  Ray ray = view_ray(gl_FragCoord.xy);
  float t = hit_sphere(ray, v_sphere.xyz, v_sphere.w);
  if (t < 0.0) discard;
  gl_FragDepth = depth_of(ray.origin.z + t * ray.direction.z);
  o_id = v_id;
}
