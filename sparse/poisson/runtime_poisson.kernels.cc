// Kernels of the Poisson solver (sparse/poisson/poisson_solver.h): leaves of 8^3 cells.
//
// All of them work on h^2 times the equation: what a cell has is `weight` times its value minus its
// neighbours', where cells that are not active count as 0. The weight is 6, and on coarse levels more beside
// the boundary; it is 0 where a cell is not of the domain, and what is of the level stays 0 there.
//
// Levels are trees of their own, so a leaf has no address of its parent's. What goes from level to level lies
// in packed arrays between: the values of all leaves in the order of their numbers, and tables say which
// number a leaf's children and parent have.
#include "coppice/kernel.h"
#include "sparse/poisson/poisson_state.h"

using namespace coppice;

namespace {

constexpr int kSide = 8, kCells = kSide * kSide * kSide;
constexpr int kHalf = kSide / 2, kHalfCells = kHalf * kHalf * kHalf;
constexpr uint32_t kLanes = 128;      // of a thread block, at most
constexpr int kTogether = 4;          // values that a thread takes at a time: a CPU's register has as many
constexpr float kDamping = 6.0f / 7;  // of Jacobi's method, for the highest half of frequencies
constexpr double kLeastSquare = 2.2250738585072014e-308;  // the least normal double
constexpr int kTile = kSide + 2;                          // a leaf and the cells around it

using SumTeam = BlockTeam<3, kLanes * 2 * sizeof(double)>;
using TileTeam = BlockTeam<3, kTile * kTile * kTile * sizeof(float)>;

COPPICE_INLINE int cell_at(int x, int y, int z) { return (x * kSide + y) * kSide + z; }

template <class Values>
COPPICE_INLINE auto around(const Values& u, const Cell3& c) {
  return u(c, -1, 0, 0) + u(c, 1, 0, 0) + u(c, 0, -1, 0) + u(c, 0, 1, 0) + u(c, 0, 0, -1) + u(c, 0, 0, 1);
}

// Sums `term(i)`, a pair of numbers, over a leaf's cells; the first thread gets the result. The order is the
// same on every device with as many threads.
template <class Term>
COPPICE_INLINE void sum_cells(const SumTeam& team, double (&total)[2], Term&& term) {
  double sums[2][kTogether] = {};
  for (uint32_t i = team.lane() * kTogether; i < kCells; i += team.lanes() * kTogether) {
    for (uint32_t k = 0; k < kTogether; ++k) term(i + k, sums[0][k], sums[1][k]);
  }
  for (int s = 0; s < 2; ++s) total[s] = (sums[s][0] + sums[s][1]) + (sums[s][2] + sums[s][3]);
  if (team.lanes() == 1) return;
  auto* const shared = reinterpret_cast<double*>(team.fast);
  for (int s = 0; s < 2; ++s) shared[2 * team.lane() + s] = total[s];
  team.barrier();
  for (uint32_t lane = 1; team.lane() == 0 && lane < team.lanes(); ++lane) {
    for (int s = 0; s < 2; ++s) total[s] += shared[2 * lane + s];
  }
}

// It is 0 of 0 alone: where the squares of all numbers were lost, the residual would seem to be 0.
COPPICE_INLINE double square(double v) {
  const double s = v * v;
  return s < kLeastSquare && v != 0 ? kLeastSquare : s;
}

}  // namespace

// ---- the equation, in double precision

COPPICE_KERNEL(subtract_applied, Read<double, Star<1>> u, Read<double> f, Write<double> r, Cell3 c, double h2)
{ r[c] = h2 * f[c] - (6 * u[c] - around(u, c)); }
COPPICE_KERNEL(apply_to, Read<double, Star<1>> p, Write<double> q, Cell3 c)
{ q[c] = 6 * p[c] - around(p, c); }

COPPICE_KERNEL(square_residual, Read<double> f, Read<double> r, SumTeam team, double h2, double* squares,
               double* given)
{
  const double* const from = r.data(team);
  const double* const right = f.data(team);
  double total[2];
  sum_cells(team, total, [&](uint32_t i, double& rr, double& ff) {
    const double given_here = h2 * right[i];
    const bool is_lost = given_here == 0 && right[i] != 0;  // then it is in no residual
    rr += is_lost ? kLeastSquare : square(from[i]);
    ff += is_lost ? kLeastSquare : square(given_here);
  });
  if (team.lane() == 0) squares[team.number] = total[0], given[team.number] = total[1];
}
// The residual for the levels, which have single precision.
COPPICE_KERNEL(hand_down, Read<double> r, Write<float> b, Cell3 c, const CoppicePoissonState* state)
{ b[c] = static_cast<float>(state->scale * r[c]); }
COPPICE_KERNEL(set_zero, Write<double> u, Cell3 c)
{ u[c] = 0; }
COPPICE_KERNEL(multiply, Read<double> p, Read<double> q, SumTeam team, double* products)
{
  const double* const a = p.data(team);
  const double* const b = q.data(team);
  double total[2];
  sum_cells(team, total, [&](uint32_t i, double& ab, double&) { ab += a[i] * b[i]; });
  if (team.lane() == 0) products[team.number] = total[0];
}
COPPICE_KERNEL(multiply_preconditioned, Read<float> z, Read<double> r, Read<double> q, SumTeam team,
               double* with_r, double* with_q)
{
  const float* const a = z.data(team);
  const double* const residual = r.data(team);
  const double* const applied = q.data(team);
  double total[2];
  sum_cells(team, total,
            [&](uint32_t i, double& zr, double& zq) { zr += a[i] * residual[i], zq += a[i] * applied[i]; });
  if (team.lane() == 0) with_r[team.number] = total[0], with_q[team.number] = total[1];
}
COPPICE_KERNEL(go_on, Update<double> u, Read<double> p, Update<double> r, Read<double> q, Write<float> b,
               SumTeam team, const CoppicePoissonState* state, double* squares)
{
  double* const solution = u.data(team);
  const double* const direction = p.data(team);
  double* const residual = r.data(team);
  const double* const applied = q.data(team);
  float* const to = b.data(team);
  const double alpha = state->alpha, scale = state->scale;
  double total[2];
  sum_cells(team, total, [&](uint32_t i, double& rr, double&) {
    solution[i] += alpha * direction[i];
    const double left = residual[i] - alpha * applied[i];
    residual[i] = left, to[i] = static_cast<float>(scale * left);
    rr += left * left;
  });
  if (team.lane() == 0) squares[team.number] = total[0];
}
COPPICE_KERNEL(turn, Read<float> z, Update<double> p, Cell3 c, const CoppicePoissonState* state)
{ p[c] = z[c] + state->beta * p[c]; }

// ---- scalars

namespace {

// The next step is decided where the residual's square has been summed.
COPPICE_INLINE void look_at_residual(CoppicePoissonState* s) {
  s->scale = s->rr > 0 ? 1 / __builtin_sqrt(s->rr) : 0;
  s->goes_on = s->rr > s->limit && s->iterations < s->most_iterations ? 1 : 0;
}
COPPICE_INLINE void forget_direction(CoppicePoissonState* s) { s->zr = 0, s->alpha = 0; }

}  // namespace

// A start that is worse than 0, or no number, is not taken: what is left of a much larger solution would cost
// more than it gives.
COPPICE_KERNEL(look_at_start, Item, CoppicePoissonState* s)
{ s->drops_start = s->rr <= s->ff ? 0 : 1; }
COPPICE_KERNEL(begin_solve, Item, CoppicePoissonState* s, double tolerance, uint32_t most_iterations)
{
  s->limit = tolerance * tolerance * s->ff;
  s->iterations = 0, s->most_iterations = most_iterations, s->restarts = 0;
  forget_direction(s);
  look_at_residual(s);
  s->begins_again = s->goes_on;
}
// The residual that was followed drifts away from that of the solution. Here it is the latter again.
COPPICE_KERNEL(look_again, Item, CoppicePoissonState* s, uint32_t most_restarts)
{
  forget_direction(s);
  look_at_residual(s);
  ++s->restarts;
  if (s->restarts > most_restarts) s->goes_on = 0;
  s->begins_again = s->goes_on;
}
// The direction's share of the last one is Polak and Ribiere's, which lets the preconditioner be another
// one from step to step, or not symmetric.
COPPICE_KERNEL(find_beta, Item, CoppicePoissonState* s)
{
  s->beta = s->zr != 0 ? -s->alpha * s->new_zq / s->zr : 0;
  s->zr = s->new_zr;
}
COPPICE_KERNEL(find_alpha, Item, CoppicePoissonState* s)
{ s->alpha = s->pq != 0 ? s->zr / s->pq : 0; }
COPPICE_KERNEL(end_iteration, Item, CoppicePoissonState* s)
{
  ++s->iterations;
  look_at_residual(s);  // one that is no number ends it, too
  if (s->pq == 0) s->goes_on = 0;
}

// ---- levels, in single precision

COPPICE_KERNEL(set_weight, Write<float> weight, Cell3 c, float to)
{ weight[c] = to; }
COPPICE_KERNEL(smooth_zero, Read<float> b, Read<float> weight, Write<float> x, Cell3 c)
{ x[c] = weight[c] > 0 ? kDamping * b[c] / weight[c] : 0.0f; }
COPPICE_KERNEL(smooth, Read<float, Star<1>> x, Read<float> b, Read<float> weight, Write<float> y, Cell3 c)
{
  const float w = weight[c];
  y[c] = w > 0 ? x[c] + kDamping * (b[c] - (w * x[c] - around(x, c))) / w : 0.0f;
}
COPPICE_KERNEL(subtract_on_level, Read<float, Star<1>> x, Read<float> b, Read<float> weight, Write<float> r,
               Cell3 c)
{ r[c] = weight[c] > 0 ? b[c] - (weight[c] * x[c] - around(x, c)) : 0.0f; }

// ---- between levels

// Half of the sum of eight cells: their mean, by the four times larger square of the coarse cell's side.
COPPICE_KERNEL(pack_coarse, Read<float> r, Block3 block, float* packed)
{
  const float* const from = r.data(block);
  float* const to = packed + block.number * kHalfCells;
  for (int x = 0; x < kHalf; ++x) {
    for (int y = 0; y < kHalf; ++y) {
      for (int z = 0; z < kHalf; ++z) {
        float sum = 0;
        for (int k = 0; k < 8; ++k)
          sum += from[cell_at(2 * x + (k >> 2), 2 * y + (k >> 1 & 1), 2 * z + (k & 1))];
        to[(x * kHalf + y) * kHalf + z] = 0.5f * sum;
      }
    }
  }
}
// children[8 * leaf + octant] is the number of a finer leaf, or -1.
COPPICE_KERNEL(unpack_coarse, Write<float> b, Block3 block, const float* packed, const int32_t* children)
{
  float* const to = b.data(block);
  for (int octant = 0; octant < 8; ++octant) {
    const int32_t child = children[8 * block.number + octant];
    const int x0 = (octant >> 2) * kHalf, y0 = (octant >> 1 & 1) * kHalf, z0 = (octant & 1) * kHalf;
    for (int x = 0; x < kHalf; ++x) {
      for (int y = 0; y < kHalf; ++y) {
        for (int z = 0; z < kHalf; ++z) {
          to[cell_at(x0 + x, y0 + y, z0 + z)] =
              child < 0 ? 0.0f : packed[child * kHalfCells + (x * kHalf + y) * kHalf + z];
        }
      }
    }
  }
}
// Interpolates linearly on each axis between the centres of coarse cells.
COPPICE_KERNEL(pack_fine, Read<float> x, TileTeam team, float* packed)
{
  auto* const tile = reinterpret_cast<float*>(team.fast);
  for (int dx = -1; dx <= 1; ++dx) {
    for (int dy = -1; dy <= 1; ++dy) {
      for (int dz = -1; dz <= 1; ++dz) {
        const float* const from = x.neighbour_data(team, {dx, dy, dz});
        const int nx = dx == 0 ? kSide : 1, ny = dy == 0 ? kSide : 1, nz = dz == 0 ? kSide : 1;
        for (int i = static_cast<int>(team.lane()); i < nx * ny * nz; i += static_cast<int>(team.lanes())) {
          const int a = i / (ny * nz), b = i / nz % ny, c = i % nz;
          const int tx = dx < 0   ? 0
                         : dx > 0 ? kSide + 1
                                  : a + 1,
                    ty = dy < 0   ? 0
                         : dy > 0 ? kSide + 1
                                  : b + 1,
                    tz = dz < 0   ? 0
                         : dz > 0 ? kSide + 1
                                  : c + 1;
          const int fx = dx < 0   ? kSide - 1
                         : dx > 0 ? 0
                                  : a,
                    fy = dy < 0   ? kSide - 1
                         : dy > 0 ? 0
                                  : b,
                    fz = dz < 0   ? kSide - 1
                         : dz > 0 ? 0
                                  : c;
          tile[(tx * kTile + ty) * kTile + tz] = from[cell_at(fx, fy, fz)];
        }
      }
    }
  }
  team.barrier();
  for (int i = static_cast<int>(team.lane()); i < 8 * kCells; i += static_cast<int>(team.lanes())) {
    const int octant = i / kCells, cell = i % kCells;
    const int fx = (octant >> 2) * kSide + cell / (kSide * kSide),
              fy = (octant >> 1 & 1) * kSide + cell / kSide % kSide, fz = (octant & 1) * kSide + cell % kSide;
    const int sx = fx % 2 == 0 ? -1 : 1, sy = fy % 2 == 0 ? -1 : 1, sz = fz % 2 == 0 ? -1 : 1;
    const float* const at = tile + ((fx / 2 + 1) * kTile + fy / 2 + 1) * kTile + fz / 2 + 1;
    const int ox = sx * kTile * kTile, oy = sy * kTile;
    const auto along_z = [&](const float* p) { return 0.75f * p[0] + 0.25f * p[sz]; };
    const auto along_y = [&](const float* p) { return 0.75f * along_z(p) + 0.25f * along_z(p + oy); };
    packed[(static_cast<int64_t>(team.number) * 8 + octant) * kCells + cell] =
        0.75f * along_y(at) + 0.25f * along_y(at + ox);
  }
  team.barrier();
}
// parents[leaf] is 8 times the number of the coarser leaf, and the octant.
COPPICE_KERNEL(add_fine, Update<float> x, Read<float> weight, Block3 block, const float* packed,
               const int32_t* parents)
{
  float* const to = x.data(block);
  const float* const w = weight.data(block);
  const float* const from = packed + static_cast<int64_t>(parents[block.number]) * kCells;
  for (int i = 0; i < kCells; ++i) to[i] += w[i] > 0 ? from[i] : 0.0f;
}

// ---- making levels

COPPICE_KERNEL(write_origins, Topology leaf, Block3 block, int32_t* origins)
{
  (void)leaf;
  for (int k = 0; k < 3; ++k) origins[3 * block.number + k] = block.coord(k);
}
// Values of cells that were deactivated may have stayed, and whole leaves are read below.
COPPICE_KERNEL(clear_weights, Write<float> weight, Block3 block)
{
  float* const w = weight.data(block);
  for (int i = 0; i < kCells; ++i) w[i] = 0;
}
COPPICE_KERNEL(clear_outside, Read<float> weight, Update<double> u, Update<double> r, Update<double> p,
               Update<double> q, Update<double> f, Block3 block)
{
  const float* const w = weight.data(block);
  for (double* const values :
       {u.data(block) + 0, r.data(block) + 0, p.data(block) + 0, q.data(block) + 0, f.data(block) + 0}) {
    for (int i = 0; i < kCells; ++i) values[i] = w[i] > 0 ? values[i] : 0;
  }
}
COPPICE_KERNEL(clear_outside_of_level, Read<float> weight, Update<float> b, Update<float> x, Update<float> y,
               Block3 block)
{
  const float* const w = weight.data(block);
  for (float* const values : {b.data(block) + 0, x.data(block) + 0, y.data(block) + 0}) {
    for (int i = 0; i < kCells; ++i) values[i] = w[i] > 0 ? values[i] : 0;
  }
}
COPPICE_KERNEL(mark_domain, Read<float> weight, Write<float> inside, Cell3 c)
{ inside[c] = weight[c] > 0 ? 1.0f : 0.0f; }
// `beyond`: what a neighbour that is missing adds, for the boundary is nearer than a cell's side.
COPPICE_KERNEL(weigh_cells, Read<float, Star<1>> inside, Write<float> weight, Cell3 c, float beyond)
{
  const float missing = 6.0f - around(inside, c);
  weight[c] = inside[c] > 0 ? 6.0f + beyond * missing : 0.0f;
}
