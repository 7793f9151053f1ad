// Exact depth of a collider's surface, by ray.
flat in int v_index;

uniform mat4 u_world_from_view;

out uint o_id;

void main() {
  Ray ray = view_ray(gl_FragCoord.xy);
  vec3 origin = (u_world_from_view * vec4(ray.origin, 1.0)).xyz;
  vec3 direction = mat3(u_world_from_view) * ray.direction;
  float t = hit_collider(load_collider(v_index), origin, direction);
  if (t < 0.0) discard;
  gl_FragDepth = depth_of(ray.origin.z + t * ray.direction.z);
  o_id = kFirstCollider + uint(v_index);
}
