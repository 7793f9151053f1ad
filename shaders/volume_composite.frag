// Puts what the rays have found into the frame. DRAFT: from a picture that is u_scale times as coarse.
uniform sampler2D u_color;  // premultiplied
uniform sampler2D u_depth;
uniform float u_scale;
uniform int u_is_solid;

out vec4 o_color;

void main() {
#ifdef DRAFT
  vec2 at = gl_FragCoord.xy / u_scale;
  o_color = textureLod(u_color, at / vec2(textureSize(u_color, 0)), 0.0);
  float depth = texelFetch(u_depth, ivec2(at), 0).r;
#else
  o_color = texelFetch(u_color, ivec2(gl_FragCoord.xy), 0);
  float depth = texelFetch(u_depth, ivec2(gl_FragCoord.xy), 0).r;
#endif
  if (o_color.a == 0.0 || (u_is_solid != 0 && depth == 1.0)) discard;
  gl_FragDepth = depth;
}
