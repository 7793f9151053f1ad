// How operations are run, who may refer to whose bytes, and how long bytes are needed.
#include "executor/planned/function_plan.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace coppice::executor {
namespace {

using Body = PlannedOperation::Body;

Body body_kind(const LoadedOperation& op) {
  if (!op.info->traits.runs_bodies) return Body::kNone;
  static constexpr std::pair<std::string_view, Body> kKinds[] = {{"call", Body::kCall},
                                                                 {"if", Body::kIf},
                                                                 {"case", Body::kCase},
                                                                 {"repeat", Body::kRepeat},
                                                                 {"while", Body::kWhile}};
  for (const auto& [name, body] : kKinds)
    if (name == op.info->name) return body;
  return Body::kNone;
}
// Deeper bodies run as the executor runs them, which has a limit of its own: plans and runs are recursive.
constexpr size_t kMostNested = 64;

bool is_loop(Body body) { return body == Body::kRepeat || body == Body::kWhile; }

class Planner {
 public:
  Planner(const PlanLimits& limits, PlannedSizes& sizes) : limits_(limits), sizes_(sizes) {}

  std::unique_ptr<const FunctionPlan> run(const LoadedFunction& function, bool is_top);

 private:
  friend class OneFunction;
  const PlanLimits& limits_;
  PlannedSizes& sizes_;
  uint32_t num_operations_ = 0;
  std::vector<const LoadedFunction*> under_way_;
};

// One function on its way to a plan. A root is a register whose value other registers' values may be or refer
// to: an argument, or bytes that can have a place.
class OneFunction {
 public:
  OneFunction(Planner& planner, const LoadedFunction& function, bool is_top)
      : planner_(planner),
        f_(function),
        is_top_(is_top),
        plan_(std::make_unique<FunctionPlan>()),
        roots_(function.registers.size()),
        kept_(function.registers.size()),
        is_root_(function.registers.size()),
        last_use_(function.registers.size()) {
    plan_->function = &function;
    plan_->registers.resize(function.registers.size());
    plan_->needs_values = function.without_waits.empty() && function.non_strict.empty();
    for (uint32_t r = 0; r < function.argument_types.size(); ++r) {
      plan_->registers[r].home = Home::kArgument;
      roots_[r] = {r};
    }
  }

  std::unique_ptr<const FunctionPlan> run() {
    order_operations();
    for (PlannedOperation& op : plan_->operations) choose_mode(op);
    for (const PlannedOperation& op : plan_->operations) follow(op);
    look_at_returns();
    find_last_uses();
    give_homes();
    find_deaths();
    return std::move(plan_);
  }

 private:
  const LoadedOperation& loaded(const PlannedOperation& op) const { return f_.operations[op.index]; }
  bool is_bytes(uint32_t r) const { return f_.register_types[r] == "bytes"; }
  bool is_returned(uint32_t r) const { return plan_->registers[r].last_return != kNoSize; }
  bool may_refer(uint32_t r) const { return f_.module->registry().may_refer(f_.register_types[r]); }

  void order_operations() {
    for (const uint32_t i : run_order(f_)) {
      const LoadedOperation& op = f_.operations[i];
      PlannedOperation planned;
      planned.index = i;
      planned.first_result = op.results.empty() ? 0 : op.results[0];
      planned.num_results = static_cast<uint32_t>(op.results.size());
      plan_->operations.push_back(std::move(planned));
    }
  }

  void choose_mode(PlannedOperation& planned) {
    const LoadedOperation& op = loaded(planned);
    if (plan_bodies(planned)) return;
    const std::vector<std::string> types = f_.argument_types_of(op);
    const OperationUse use{types, op.attributes, op.results.size()};
    planned.run = op.run, planned.function = op.function;
    if (op.where == Run::kBlocking || op.non_strict) return;
    const Implementation* chosen = first_match(op.info->out_variants, use);
    Mode mode = Mode::kOutVariant;
    if (chosen == nullptr) chosen = first_match(op.info->natives, use), mode = Mode::kNative;
    if (chosen == nullptr) return;
    planned.mode = mode, planned.run = chosen->run, planned.function = chosen->function.get();
    in_place_.emplace(planned.index, chosen->in_place);
  }

  // False: the operation runs no functions, or they cannot be planned: one calls itself, a loop has
  // iterations that run ahead, or there are too many.
  bool plan_bodies(PlannedOperation& planned) {
    const LoadedOperation& op = loaded(planned);
    const Body body = body_kind(op);
    if (body == Body::kNone) return false;
    if (is_loop(body) && op.attributes.size() > 1 && std::get<int64_t>(*op.attributes[1].value) > 1)
      return false;
    std::vector<std::unique_ptr<const FunctionPlan>> bodies;
    for (const BoundAttribute& attribute : op.attributes) {
      if (attribute.function == nullptr) continue;
      bodies.push_back(planner_.run(*attribute.function, false));
      if (!bodies.back()) return false;
    }
    planned.mode = Mode::kBody, planned.body = body;
    planned.bodies = std::move(bodies);
    return true;
  }

  using Roots = std::set<uint32_t>;
  static void add(Roots& to, const Roots& from) { to.insert(from.begin(), from.end()); }
  void keep(const Roots& roots) {
    for (const uint32_t root : roots) kept_[root] = true;
  }

  void follow(const PlannedOperation& planned) {
    const LoadedOperation& op = loaded(planned);
    switch (planned.mode) {
      case Mode::kOutVariant:
        for (const uint32_t r : op.results) is_root_[r] = true, roots_[r] = {r};
        break;
      case Mode::kNative:
        // A thing that the module names may keep what the function sees.
        for (const BoundAttribute& attribute : op.attributes) {
          if (attribute.binding == nullptr) continue;
          for (const uint32_t a : op.arguments) keep(roots_[a]);
        }
        for (const uint32_t r : op.results) {
          if (!may_refer(r)) continue;
          for (const uint32_t a : op.arguments)
            if (may_refer(a)) add(roots_[r], roots_[a]);
        }
        break;
      case Mode::kFallback:
        for (const uint32_t a : op.arguments) keep(roots_[a]), is_handed_out_.insert(a);
        break;
      case Mode::kBody:
        follow_bodies(planned, op);
        break;
    }
  }

  void follow_bodies(const PlannedOperation& planned, const LoadedOperation& op) {
    const bool loops = is_loop(planned.body);
    const size_t first = planned.body == Body::kCall ? 0 : 1;  // the argument that the bodies' first one is
    std::set<uint32_t> is_kept_result;                         // of a loop
    bool is_mixed = false;  // what one round carries in one register, the next has in another
    for (const auto& body : planned.bodies) {
      const FunctionEffects& effects = body->effects;
      for (size_t i = 0; i < effects.keeps.size(); ++i) {
        if (!effects.keeps[i]) continue;
        keep(roots_[op.arguments[first + i]]), is_handed_out_.insert(op.arguments[first + i]);
        if (loops) is_kept_result.insert(op.results[i]);
      }
      for (size_t i = 0; i < op.results.size(); ++i) {
        const FunctionEffects::Return& value = effects.returns[i];
        const uint32_t r = op.results[i];
        if (value.is_fresh && is_bytes(r)) is_root_[r] = true, roots_[r].insert(r);
        for (const uint32_t a : value.aliases) {
          add(roots_[r], roots_[op.arguments[first + a]]);
          is_handed_out_.insert(op.arguments[first + a]);
          is_mixed |= loops && a != i;
        }
        if (loops && value.is_fresh && !value.aliases.empty()) is_mixed = true;
      }
    }
    if (!loops) return;
    // Without a round the results are what the loop began with.
    for (size_t i = 0; i < op.results.size(); ++i) {
      add(roots_[op.results[i]], roots_[op.arguments[first + i]]);
      is_handed_out_.insert(op.arguments[first + i]);
    }
    for (const uint32_t r : op.results) {
      if (is_mixed) keep(roots_[r]);
      if ((is_mixed || is_kept_result.contains(r)) && is_root_[r]) kept_[r] = true;
    }
  }

  void look_at_returns() {
    std::vector<int> times(f_.registers.size());
    for (uint32_t i = 0; i < f_.returns.size(); ++i) {
      const uint32_t r = f_.returns[i];
      is_handed_out_.insert(r);
      plan_->registers[r].last_return = i;
      ++times[r];
      for (const uint32_t root : roots_[r])
        if (is_root_[root] && root != r) kept_[root] = true;
    }
    for (uint32_t r = 0; r < times.size(); ++r)
      if (times[r] > 1 && is_root_[r]) kept_[r] = true;
    FunctionEffects& effects = plan_->effects;
    for (const uint32_t r : f_.returns) {
      FunctionEffects::Return value;
      // A loop in a body writes into two places by turns, and the caller has one.
      value.is_fresh = is_root_[r] && !kept_[r] && !is_of_loop(r);
      for (const uint32_t root : roots_[r])
        if (root < f_.argument_types.size()) value.aliases.push_back(root);
      effects.returns.push_back(std::move(value));
    }
    for (uint32_t r = 0; r < f_.argument_types.size(); ++r) effects.keeps.push_back(kept_[r]);
  }
  bool is_of_loop(uint32_t r) const {
    const uint32_t producer = f_.registers[r].producer;
    return producer != kNoOperation && is_loop(body_kind(f_.operations[producer]));
  }

  // Until when its own value is used, and that of each root by all that may refer to it.
  void find_last_uses() {
    root_use_.resize(f_.registers.size());
    for (uint32_t t = 0; t < plan_->operations.size(); ++t) {
      const LoadedOperation& op = loaded(plan_->operations[t]);
      for (const uint32_t r : op.results) last_use_[r] = t;
      for (const uint32_t r : op.arguments) last_use_[r] = t;
    }
    for (uint32_t r = 0; r < f_.registers.size(); ++r) {
      for (const uint32_t root : roots_[r]) root_use_[root] = std::max(root_use_[root], last_use_[r]);
    }
  }

  void give_homes() {
    std::unordered_map<uint32_t, size_t> buffer_of;  // of a register in the arena
    for (uint32_t t = 0; t < plan_->operations.size(); ++t) {
      PlannedOperation& planned = plan_->operations[t];
      const LoadedOperation& op = loaded(planned);
      for (const uint32_t r : op.results) {
        PlannedRegister& to = plan_->registers[r];
        to.is_out = planned.mode == Mode::kOutVariant;
        if (is_root_[r]) {
          give_bytes_a_home(t, r, buffer_of);
        } else if (planned.mode == Mode::kNative && !may_refer(r) && !is_handed_out_.contains(r)) {
          to.home = Home::kSlot;
        }
        planned.makes_values |= !to.is_persistent();
      }
      if (planned.mode == Mode::kBody) {
        ArenaBuffer scratch{.begin = t, .end = t + 1, .body_of = t, .name = op.info->name};
        plan_->buffers.push_back(std::move(scratch));
      }
    }
  }
  void give_bytes_a_home(uint32_t t, uint32_t r, std::unordered_map<uint32_t, size_t>& buffer_of) {
    PlannedOperation& planned = plan_->operations[t];
    PlannedRegister& to = plan_->registers[r];
    const bool needs_two = is_loop(planned.body);
    if (is_returned(r)) {
      // Outputs have memory that counts, so whoever keeps one is welcome.
      if (is_top_ && planner_.limits_.manages_outputs && !is_of_kept_body(planned, r)) {
        to.home = Home::kOutput;
        take_size(to, needs_two);
        planner_.sizes_.outputs.push_back(to.size);
        if (needs_two) planner_.sizes_.outputs.push_back(to.second);
      } else if (!is_top_ && !kept_[r] && !needs_two) {
        to.home = Home::kCaller;
      }
      return;
    }
    if (kept_[r]) return;
    to.home = Home::kArena;
    take_size(to, needs_two);
    if (place_in_argument(t, r, buffer_of)) return;
    ArenaBuffer buffer{.begin = t, .end = root_use_[r] + 1, .sizes = {to.size}, .name = f_.register_names[r]};
    buffer_of.emplace(r, plan_->buffers.size());
    plan_->buffers.push_back(buffer);
    if (!needs_two) return;
    buffer.sizes = {to.second};
    plan_->buffers.push_back(std::move(buffer));
  }
  void take_size(PlannedRegister& to, bool needs_two) {
    PlannedSizes& sizes = planner_.sizes_;
    to.size = sizes.count++;
    if (!needs_two) return;
    to.second = sizes.count++;
    sizes.by_turns.emplace_back(to.size, to.second);
  }
  // A loop whose values change places writes where an older one may still be read.
  bool is_of_kept_body(const PlannedOperation& planned, uint32_t r) const {
    return is_loop(planned.body) && kept_[r];
  }
  // Gives a result the bytes of an argument that ends with this operation, where the operation allows it.
  bool place_in_argument(uint32_t t, uint32_t r, std::unordered_map<uint32_t, size_t>& buffer_of) {
    PlannedOperation& planned = plan_->operations[t];
    const auto found = in_place_.find(planned.index);
    if (found == in_place_.end() || found->second < 0 || r != planned.first_result) return false;
    const LoadedOperation& op = loaded(planned);
    const uint32_t a = op.arguments[static_cast<size_t>(found->second)];
    const auto buffer = buffer_of.find(a);
    const bool is_once = std::count(op.arguments.begin(), op.arguments.end(), a) == 1;
    if (buffer == buffer_of.end() || plan_->registers[a].second != kNoSize || !is_once) return false;
    // Another argument that refers to these bytes would be read while they are written.
    for (const uint32_t other : op.arguments)
      if (other != a && roots_[other].contains(a)) return false;
    if (root_use_[a] != t) return false;
    ArenaBuffer& shared = plan_->buffers[buffer->second];
    shared.end = std::max(shared.end, root_use_[r] + 1);
    shared.sizes.push_back(plan_->registers[r].size);
    buffer_of.emplace(r, buffer->second);
    planned.is_in_place = true;
    return true;
  }

  void find_deaths() {
    for (uint32_t r = static_cast<uint32_t>(f_.argument_types.size()); r < f_.registers.size(); ++r) {
      if (plan_->registers[r].is_persistent() || is_returned(r)) continue;
      plan_->operations[last_use_[r]].dies.push_back(r);
    }
  }

  Planner& planner_;
  const LoadedFunction& f_;
  const bool is_top_;
  std::unique_ptr<FunctionPlan> plan_;
  std::vector<Roots> roots_;
  std::vector<bool> kept_, is_root_;  // of registers
  std::set<uint32_t> is_handed_out_;  // registers whose async value others may have behind their last use
  std::vector<uint32_t> last_use_, root_use_;
  std::unordered_map<uint32_t, int> in_place_;  // by operation
};

std::unique_ptr<const FunctionPlan> Planner::run(const LoadedFunction& function, bool is_top) {
  if (under_way_.size() == kMostNested) return nullptr;
  if (std::find(under_way_.begin(), under_way_.end(), &function) != under_way_.end()) return nullptr;
  num_operations_ += static_cast<uint32_t>(function.operations.size()) + 1;
  if (!is_top && num_operations_ > limits_.most_operations) return nullptr;
  under_way_.push_back(&function);
  std::unique_ptr<const FunctionPlan> plan = OneFunction(*this, function, is_top).run();
  under_way_.pop_back();
  return plan;
}

}  // namespace

std::unique_ptr<const FunctionPlan> plan_function(const LoadedFunction& function, const PlanLimits& limits,
                                                  PlannedSizes& sizes) {
  return Planner(limits, sizes).run(function, true);
}

}  // namespace coppice::executor
