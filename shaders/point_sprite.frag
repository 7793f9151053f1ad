// A particle of a few pixels: the disc within the GL point, at the sphere's depth.
flat in vec2 v_depth;
flat in uint v_id;

out uint o_id;

void main() {
  vec2 across = 2.0 * gl_PointCoord - 1.0;
  float inside = 1.0 - dot(across, across);
  if (inside < 0.0) discard;
  // Linear in depth: within a sphere that is small beside its distance, depth is.
  gl_FragDepth = v_depth.x - v_depth.y * sqrt(inside);
  o_id = v_id;
}
