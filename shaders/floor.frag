// A floor with lines at even distances.
in vec3 v_world;

uniform vec3 u_low;
uniform float u_grid_m;

out vec4 o_color;

const vec3 kFloor = vec3(0.19, 0.205, 0.23);
const vec3 kLine = vec3(0.27, 0.29, 0.32);

void main() {
  vec2 at = (v_world.xz - u_low.xz) / u_grid_m;
  vec2 pixel = fwidth(at);
  // How far from the next line, in pixels; far away, where lines would touch, they fade.
  vec2 distance = abs(fract(at + 0.5) - 0.5) / max(pixel, vec2(1e-6));
  vec2 line = clamp(1.0 - distance, 0.0, 1.0) * clamp(1.0 - 3.0 * pixel, 0.0, 1.0);
  o_color = vec4(mix(kFloor, kLine, max(line.x, line.y)), 1.0);
}
