// Writes values, ranges and conditions for the reference and for error messages: the same in both.
#pragma once

#include <string>

#include "apps/scene/field_types.h"

namespace coppice::scene {

std::string number_text(double value);
std::string value_text(const FieldValue& value);         // as TOML
std::string bounds_text(const Bounds& bounds);           // "0 to 1"; empty when unbounded
std::string condition_text(const Condition& condition);  // only with shape = "sphere"

}  // namespace coppice::scene
