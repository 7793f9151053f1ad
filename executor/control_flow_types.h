// What control_flow.cc and loops.cc share: checks of the functions that an operation is given, and values that outlive
// its call.
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

// References of one's own to arguments, for work that outlives the call.
std::vector<RCReference<AsyncValue>> references_to(const RemainingArguments& arguments);
// Fills the results with indirect values, and returns a reference to each for whoever forwards them.
std::vector<RCReference<AsyncValue>> make_pending(RemainingResults results);

void add_loop_operations(Registry& registry);

}  // namespace coppice::executor
