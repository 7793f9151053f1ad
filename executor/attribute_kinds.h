// This compares the attributes that a module has with those that its operations take.
#pragma once
#include <string>

#include "executor/module.h"
#include "executor/registry.h"

namespace coppice::executor {

// Returns nothing where the value is of that kind and within its range, otherwise words that follow
// "attribute 1 of constant.f32": " must be a 32-bit integer", ": 1e+300 is too large for a real of 32
// bits".
std::string why_unfit(const Attribute& value, AttributeKind kind);

}  // namespace coppice::executor
