// What control_flow.cc and loops.cc share: checks of the functions that an operation is given.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "executor/loader.h"

namespace coppice::executor {

// Errors: kInvalidArgument, without a place: the loader adds it.
const LoadedFunction& function_attribute(const OperationUse& use, size_t i);
void check_types(const char* what, const LoadedFunction& f, const std::vector<std::string>& declared,
                 const std::vector<std::string>& used);
void check_selector(const OperationUse& use, std::string_view type);

void add_loop_operations(Registry& registry);

}  // namespace coppice::executor
