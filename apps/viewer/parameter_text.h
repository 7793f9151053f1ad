// Writes parameters as TOML values, and those that were changed as text that scene files and command
// lines accept.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "apps/viewer/simulation.h"

namespace coppice::viewer {

// Returns the value of a number, an integer or a vector, in the fewest digits that give the same number
// again: "0.3", "7", "[0.0, -9.81]".
std::string toml_value(Parameter::Kind kind, std::span<const double> numbers);
// Returns a text or a choice in quotes, with escapes where they are needed.
std::string toml_text(const std::string& text);

// Writes one line per changed parameter: "gravity = [0.0, -3.0]". A parameter in an array of tables
// cannot be given by a key of its own, and comes as a comment that says where it belongs.
std::string changed_as_toml(std::span<const Parameter> parameters);
// Returns "--set 'gravity=[0.0, -3.0]' --set ...", quoted for a shell.
std::string changed_as_arguments(std::span<const Parameter> parameters);

}  // namespace coppice::viewer
