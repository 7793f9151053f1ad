// Use counts and the structural checks of modules.
#include "executor/module.h"

namespace coppice::executor {

void count_uses(Function& function) {
  for (Register& r : function.registers) r.use_count = 1, r.used_by.clear();
  for (uint32_t op = 0; op < function.operations.size(); ++op) {
    for (const uint32_t argument : function.operations[op].arguments) {
      Register& r = function.registers[argument];
      ++r.use_count;
      if (r.used_by.empty() || r.used_by.back() != op) r.used_by.push_back(op);
    }
  }
  for (const uint32_t returned : function.returns) ++function.registers[returned].use_count;
}

}  // namespace coppice::executor
