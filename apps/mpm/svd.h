// Branch-free singular value and polar decompositions of 2x2 and 3x3 matrices.
//
// Device-clean. F = U diag(sigma) V^T with U and V rotations (determinant +1); the sigma of least magnitude
// carries the sign of det F; `svd` sorts them by falling magnitude. Every function runs a fixed sequence of
// operations on selects, so that it vectorises over particles. Two levels are offered:
//   left_stretch  U and sigma only, no range scaling: all that the material models need;
//   svd, polar    any finite input, also zero, rank-deficient, inverted, and of any scale that float holds.
// Methods: 2-D, polar rotation in closed form and one Jacobi rotation. 3-D, cyclic Jacobi on F F^T (Golub and
// Van Loan, Matrix Computations, 8.5), then for `svd` one-sided Jacobi sweeps on F^T U (Hestenes 1958), which
// restore the small singular values' accuracy that squaring F loses, and Gram-Schmidt for V. The convention,
// and doing without sorting branches, follow McAdams et al. 2011, "Computing the Singular Value Decomposition
// of 3x3 matrices".
#pragma once

#include "apps/mpm/mpm_types.h"

namespace coppice::mpm {

template <class T, int D>
struct Svd {
  SmallMat<T, D> u;
  SmallVec<T, D> sigma;  // |sigma[0]| >= |sigma[1]| >= ...; only the last may be negative
  SmallMat<T, D> v;
};

template <class T, int D>
struct LeftStretch {
  SmallMat<T, D> u;
  SmallVec<T, D> sigma;
};

template <class T, int D>
struct Polar {
  SmallMat<T, D> r;  // rotation, also where det F < 0
  SmallMat<T, D> s;  // symmetric, F = r * s
};

// In float 3 sweeps leave off-diagonals below 4e-5 of F F^T's deviator in the worst of 3e5 random matrices,
// far less in nearly all; the material models turn that into an error of the stress of the same relative
// size, never into drift.
template <class T>
inline constexpr int kJacobiSweeps = sizeof(T) > 4 ? 5 : 3;
inline constexpr int kPolishSweeps = 2;

template <class T>
struct JacobiRotation {
  T c, s;
  T first, second;  // eigenvalues
};

// The rotation (c, s) that diagonalises [[app, apq], [apq, aqq]]. Plain: the one by at most 45 degrees, which
// converges fastest. Sorting: the one that puts the larger eigenvalue first; a sweep (0,1), (0,2), (1,2) of
// these is a sorting network, which orders the result without branches.
template <bool kSorting, class T>
COPPICE_INLINE JacobiRotation<T> jacobi_rotation(T app, T aqq, T apq) {
  const T x = T(0.5) * (app - aqq);
  const T mean = T(0.5) * (app + aqq);
  const T r = std::sqrt(x * x + apq * apq);
  const T big = r + std::fabs(x) + T(1e-18);  // the tiny term makes the zero matrix give the identity
  const T inverse = T(1) / std::sqrt(big * big + apq * apq);
  if constexpr (kSorting) {
    const T y = std::fabs(apq);
    const T c = x >= T(0) ? big : y;
    const T s = x >= T(0) ? y : big;
    return {c * inverse, std::copysign(s * inverse, apq), mean + r, mean - r};
  } else {
    const T signed_r = std::copysign(r, x);
    const T s = x >= T(0) ? apq : -apq;
    return {big * inverse, s * inverse, mean + signed_r, mean - signed_r};
  }
}

template <class T, int D>
COPPICE_INLINE void rotate_columns(SmallMat<T, D>& a, int p, int q, T c, T s) {
  COPPICE_UNROLL for (int i = 0; i < D; ++i) {
    const T ap = a.m[i * D + p];
    const T aq = a.m[i * D + q];
    a.m[i * D + p] = c * ap + s * aq;
    a.m[i * D + q] = c * aq - s * ap;
  }
}

// One rotation of a symmetric 3x3 matrix in the plane (p, q); o is the third axis. Only the upper triangle is
// kept.
template <int P, int Q, class T>
COPPICE_INLINE void jacobi_step(SmallMat<T, 3>& s, SmallMat<T, 3>& u) {
  constexpr int kO = 3 - P - Q;
  constexpr int kOp = kO < P ? kO * 3 + P : P * 3 + kO;
  constexpr int kOq = kO < Q ? kO * 3 + Q : Q * 3 + kO;
  const JacobiRotation<T> g = jacobi_rotation<false>(s.m[P * 4], s.m[Q * 4], s.m[P * 3 + Q]);
  s.m[P * 4] = g.first;
  s.m[Q * 4] = g.second;
  s.m[P * 3 + Q] = T(0);
  const T op = s.m[kOp];
  const T oq = s.m[kOq];
  s.m[kOp] = g.c * op + g.s * oq;
  s.m[kOq] = g.c * oq - g.s * op;
  rotate_columns(u, P, Q, g.c, g.s);
}

// Eigenvectors (columns, a rotation) and eigenvalues (on s's diagonal, in no order) of a symmetric 3x3
// matrix.
template <int kSweeps, class T>
COPPICE_INLINE SmallMat<T, 3> jacobi_eigen(SmallMat<T, 3>& s) {
  SmallMat<T, 3> u = identity<T, 3>();
  COPPICE_UNROLL for (int sweep = 0; sweep < kSweeps; ++sweep) {
    jacobi_step<0, 1>(s, u);
    jacobi_step<0, 2>(s, u);
    jacobi_step<1, 2>(s, u);
  }
  return u;
}

template <class T>
COPPICE_INLINE SmallMat<T, 3> times_own_transpose(SmallMat<T, 3> f) {
  SmallMat<T, 3> s{};
  COPPICE_UNROLL for (int i = 0; i < 3; ++i) {
    COPPICE_UNROLL for (int j = i; j < 3; ++j) {
      s.m[i * 3 + j] =
          f.m[i * 3] * f.m[j * 3] + f.m[i * 3 + 1] * f.m[j * 3 + 1] + f.m[i * 3 + 2] * f.m[j * 3 + 2];
    }
  }
  return s;
}

// The rotation of F's polar decomposition in the plane; the identity where it is not defined.
template <class T>
COPPICE_INLINE SmallMat<T, 2> polar_rotation2(SmallMat<T, 2> f) {
  const T x = f.m[0] + f.m[3];
  const T y = f.m[2] - f.m[1];
  const T n2 = x * x + y * y;
  const bool defined = n2 > T(0);
  const T inverse = T(1) / std::sqrt(defined ? n2 : T(1));
  const T c = defined ? x * inverse : T(1);
  const T s = y * inverse;
  return {{c, -s, s, c}};
}

// The square roots of F F^T's eigenvalues, the smallest replaced by det F / (product of the others): that
// restores its sign and the accuracy that squaring F cost it.
template <class T>
COPPICE_INLINE SmallVec<T, 3> signed_singular_values(SmallMat<T, 3> f, SmallMat<T, 3> eigen) {
  const T a = std::sqrt(max_of(eigen.m[0], T(0)));
  const T b = std::sqrt(max_of(eigen.m[4], T(0)));
  const T c = std::sqrt(max_of(eigen.m[8], T(0)));
  const bool c_least = (c <= a) & (c <= b);
  const bool b_least = (b <= a) & !c_least;
  const bool a_least = !(b_least | c_least);
  const T others = c_least ? a * b : (b_least ? a * c : b * c);
  const T least = determinant(f) / max_of(others, T(1e-30));
  return {{a_least ? least : a, b_least ? least : b, c_least ? least : c}};
}

// U and sigma of F for entries of magnitude 1e-6 .. 1e6. In 3-D sigma is in no order; the one of least
// magnitude carries the sign of det F.
template <class T, int D>
COPPICE_INLINE LeftStretch<T, D> left_stretch(SmallMat<T, D> f) {
  if constexpr (D == 2) {
    const SmallMat<T, 2> s = f * transpose(polar_rotation2(f));
    const JacobiRotation<T> g = jacobi_rotation<true>(s.m[0], s.m[3], T(0.5) * (s.m[1] + s.m[2]));
    return {{{g.c, -g.s, g.s, g.c}}, {{g.first, g.second}}};
  } else {
    SmallMat<T, 3> s = times_own_transpose(f);
    const SmallMat<T, 3> u = jacobi_eigen<kJacobiSweeps<T>>(s);
    return {u, signed_singular_values(f, s)};
  }
}

// 1 / (largest magnitude in f), so that squares neither overflow nor vanish; 1 for the zero matrix.
template <class T, int D>
COPPICE_INLINE T range_scale(SmallMat<T, D> f) {
  T largest = T(0);
  COPPICE_UNROLL for (int i = 0; i < D * D; ++i) largest = max_of(std::fabs(f.m[i]), largest);
  return largest > T(0) ? T(1) / largest : T(1);
}

template <class T>
COPPICE_INLINE SmallVec<T, 3> column(SmallMat<T, 3> a, int j) {
  return {{a.m[j], a.m[3 + j], a.m[6 + j]}};
}

template <int P, int Q, class T>
COPPICE_INLINE void one_sided_step(SmallMat<T, 3>& w, SmallMat<T, 3>& u) {
  const SmallVec<T, 3> wp = column(w, P);
  const SmallVec<T, 3> wq = column(w, Q);
  const JacobiRotation<T> g = jacobi_rotation<true>(dot(wp, wp), dot(wq, wq), dot(wp, wq));
  rotate_columns(w, P, Q, g.c, g.s);
  rotate_columns(u, P, Q, g.c, g.s);
}

// x / |x|, or `fallback` (a unit vector) where |x| vanishes beside 1.
template <class T>
COPPICE_INLINE SmallVec<T, 3> normalized_or(SmallVec<T, 3> x, SmallVec<T, 3> fallback) {
  const T n2 = dot(x, x);
  const bool defined = n2 > T(1e-30);
  const T inverse = T(1) / std::sqrt(defined ? n2 : T(1));
  COPPICE_UNROLL for (int i = 0; i < 3; ++i) x.v[i] = defined ? x.v[i] * inverse : fallback.v[i];
  return x;
}

// Removes the rounding errors that a rotation has gathered from many factors.
template <class T>
COPPICE_INLINE SmallMat<T, 3> orthonormalized(SmallMat<T, 3> u) {
  SmallVec<T, 3> a = column(u, 0);
  a = (T(1) / std::sqrt(dot(a, a))) * a;
  SmallVec<T, 3> b = column(u, 1) - dot(a, column(u, 1)) * a;
  b = (T(1) / std::sqrt(dot(b, b))) * b;
  const SmallVec<T, 3> c = cross(a, b);
  return {{a[0], b[0], c[0], a[1], b[1], c[1], a[2], b[2], c[2]}};
}

// A unit vector perpendicular to the unit vector a: a crossed with the axis that it is farther from.
template <class T>
COPPICE_INLINE SmallVec<T, 3> any_perpendicular(SmallVec<T, 3> a) {
  const bool use_x = std::fabs(a.v[0]) < T(0.6);
  const T x = use_x ? T(1) : T(0);
  const T y = use_x ? T(0) : T(1);
  const SmallVec<T, 3> b = cross(a, SmallVec<T, 3>{{x, y, T(0)}});
  return (T(1) / std::sqrt(dot(b, b))) * b;
}

// Reconstruction error |F - U diag(sigma) V^T| <= 2e-6 |F|, and U, V orthogonal to 2e-6, for any finite float
// F.
template <class T, int D>
COPPICE_INLINE Svd<T, D> svd(SmallMat<T, D> f) {
  const T scale = range_scale(f);
  const T unscale = T(1) / scale;
  const SmallMat<T, D> a = scale * f;
  if constexpr (D == 2) {
    const SmallMat<T, 2> r = polar_rotation2(a);
    const LeftStretch<T, 2> left = left_stretch(a);
    return {left.u, unscale * left.sigma, transpose(r) * left.u};
  } else {
    SmallMat<T, 3> s = times_own_transpose(a);
    SmallMat<T, 3> u = orthonormalized(jacobi_eigen<kJacobiSweeps<T>>(s));
    SmallMat<T, 3> w = transpose(a) * u;
    COPPICE_UNROLL for (int sweep = 0; sweep < kPolishSweeps; ++sweep) {
      one_sided_step<0, 1>(w, u);
      one_sided_step<0, 2>(w, u);
      one_sided_step<1, 2>(w, u);
    }
    const SmallVec<T, 3> w0 = column(w, 0);
    const SmallVec<T, 3> w1 = column(w, 1);
    const SmallVec<T, 3> v0 = normalized_or(w0, column(u, 0));
    const SmallVec<T, 3> v1 = normalized_or(w1 - dot(v0, w1) * v0, any_perpendicular(v0));
    const SmallVec<T, 3> v2 = cross(v0, v1);
    const SmallVec<T, 3> sigma = {{dot(v0, w0), dot(v1, w1), dot(v2, column(w, 2))}};
    return {u, unscale * sigma, {{v0[0], v1[0], v2[0], v0[1], v1[1], v2[1], v0[2], v1[2], v2[2]}}};
  }
}

template <class T, int D>
COPPICE_INLINE Polar<T, D> polar_decomposition(SmallMat<T, D> f) {
  const Svd<T, D> d = svd(f);
  return {d.u * transpose(d.v), conjugate_diagonal(d.v, d.sigma)};
}

}  // namespace coppice::mpm
