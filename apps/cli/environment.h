// The environment variables that the program honours, for `coppice --help`, `coppice info
// --json` and the documentation.
#pragma once

#include <span>
#include <string_view>

namespace coppice::cli {

struct EnvironmentVariable {
  std::string_view name;
  std::string_view value;  // what it may hold
  std::string_view what;
};

// Returns the variables in the order of docs/environment.md, which says more.
std::span<const EnvironmentVariable> environment_variables();

// Looks at the value of each, whether what runs needs it or not, and sets the log's level. Makes the
// folder of COPPICE_PTX_FOLDER. Errors: kUsage, for the first value that is bad; folders that cost
// no more than a warning are none.
void check_environment();

}  // namespace coppice::cli
