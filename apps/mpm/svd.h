// Branch-free left half of the singular value decomposition of 2x2 and 3x3 matrices: U and sigma, all that
// the material models need.
//
// Device-clean. F = U diag(sigma) V^T with U and V rotations (determinant +1); the sigma of least magnitude
// carries the sign of det F. Every function runs a fixed sequence of operations on selects, so that it
// vectorises over particles. Methods: 2-D, polar rotation in closed form and one Jacobi rotation. 3-D,
// cyclic Jacobi on F F^T (Golub and Van Loan, Matrix Computations, 8.5). The convention, and doing without
// sorting branches, follow McAdams et al. 2011, "Computing the Singular Value Decomposition of 3x3
// matrices".
#pragma once

#include "apps/mpm/mpm_types.h"

namespace coppice::mpm {

template <class T, int D>
struct LeftStretch {
  SmallMat<T, D> u;
  SmallVec<T, D> sigma;
};

// In float 3 sweeps leave off-diagonals below 4e-5 of F F^T's deviator in the worst of 3e5 random matrices,
// far less in nearly all; the material models turn that into an error of the stress of the same relative
// size, never into drift.
template <class T>
inline constexpr int kJacobiSweeps = sizeof(T) > 4 ? 5 : 3;

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

}  // namespace coppice::mpm
