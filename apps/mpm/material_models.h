// The solver's constitutive models: elastic jelly, snow, weakly compressible water, dry sand, and clay and
// mud, in 2-D (plane strain) and 3-D.
//
// Device-clean and branch-free. All models have the same functions, so that a kernel is written once and
// picks the model per emitter:
// - advance(F, scalar, grad_v, dt): one particle's step; trial state, return mapping, stress after it;
// - project(F_trial, scalar): the return mapping alone;
// - kirchhoff_stress(F, scalar): tau = J (Cauchy stress), Pa; the grid force is -V0 tau grad(w);
// - energy(F, scalar): elastic energy per undeformed volume, Pa;
// - sound_speed(density, scalar): P-wave speed at rest, m/s; density is the undeformed one, kg/m^3;
// - sound_speed_bound(density): the same over every value the scalar can take.
//
// F is the elastic deformation gradient; `scalar` is one number per particle whose meaning kScalarName states
// and that starts at kInitialScalar. A model without F (kUsesDeformationGradient false) hands F back
// untouched.
//
// Plastic models return F + U diag(r - 1) U^T F with r = sigma_new / sigma: a state inside the yield surface
// comes back bit for bit, so that elastic motion gathers no error from decompositions.
#pragma once

#include "apps/mpm/clay_model.h"
#include "apps/mpm/jelly_model.h"
#include "apps/mpm/sand_model.h"
#include "apps/mpm/snow_model.h"
#include "apps/mpm/water_model.h"
