// Checks what a launch's handles are for, against its loop, its trees and each other. Errors of all of it:
// kInvalidArgument, which names the field.
#pragma once
#include "sparse/launch_request.h"

namespace coppice {

struct Binding;

// Refuses a loop that is not what the kernel's loop argument stands for, and roles that do not go with it.
void check_roles(const detail::LaunchRequest& request);
// Refuses two handles of one field that do not go together. A field that its own cells change is marked, so
// that reading others of it is an error.
void check_pairs(const detail::LaunchRequest& request, Binding& binding);

}  // namespace coppice
