// Planned functions: the plan, what is learned of sizes, and what is said of it.
#include "executor/planned/planned_function.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "executor/plan/svg.h"
#include "executor/planned/instance.h"

namespace coppice::executor {

PlannedFunction::PlannedFunction(const LoadedFunction& function, PlanOptions options)
    : module_(share(function.module)), function_(function), options_(options) {
  PlanLimits limits;
  limits.manages_outputs = options.manages_outputs;
  plan_ = plan_function(function, limits, numbers_);
  sizes_.resize(numbers_.count);
  layout_ = std::make_shared<const Layout>(lay_out(*plan_, sizes_, numbers_.outputs, options_.placement));
}

PlannedFunction::~PlannedFunction() = default;

IntrusivePtr<const PlannedFunction> PlannedFunction::create(const LoadedFunction& function,
                                                            PlanOptions options) {
  return make_intrusive<PlannedFunction>(function, options);
}

IntrusivePtr<Instance> PlannedFunction::instance() const { return make_intrusive<Instance>(share(this)); }

std::shared_ptr<const Layout> PlannedFunction::layout() const {
  const std::lock_guard lock(mutex_);
  return layout_;
}

void PlannedFunction::learn(const std::vector<LearnedSize>& sizes) const {
  std::unique_lock lock(mutex_);
  bool has_grown = false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i].most_bytes <= sizes_[i]) continue;
    sizes_[i] = sizes[i].most_bytes;
    has_grown = true;
  }
  if (has_grown) is_laid_out_ = false, ++num_changes_;
  if (is_laid_out_) return;
  // A round may write into the one place what an earlier one wrote into the other. A loop that never had a
  // second round keeps one place.
  for (const auto& [first, second] : numbers_.by_turns) {
    const size_t most = std::max(sizes_[first], sizes_[second]);
    if (sizes_[first] > 0 && sizes_[second] > 0) sizes_[first] = sizes_[second] = most;
  }
  // The plan is made without the lock, and published if no sizes have changed meanwhile. Where there was no
  // memory for it the next run that outgrows its places tries again.
  const uint64_t change = num_changes_;
  const std::vector<size_t> now = sizes_;
  lock.unlock();
  auto layout = std::make_shared<const Layout>(lay_out(*plan_, now, numbers_.outputs, options_.placement));
  lock.lock();
  if (change != num_changes_) return;
  layout_ = std::move(layout);
  is_laid_out_ = true;
  // Release: an instance that sees the number finds the layout, which it takes under the lock anyway.
  version_.fetch_add(1, std::memory_order_release);
}

PlannedMemory PlannedFunction::memory() const {
  const std::shared_ptr<const Layout> now = layout();
  return {now->num_values, now->naive_bytes, now->arena_bytes, now->least_bytes, now->output_bytes};
}

std::string PlannedFunction::memory_picture() const {
  const std::shared_ptr<const Layout> now = layout();
  return plan::svg_of(now->problem, now->plan);
}

namespace {

class Explanation {
 public:
  explicit Explanation(const Layout& layout) : layout_(layout) {}
  void add(const FunctionPlan& plan, size_t indent) {
    const LoadedFunction& f = *plan.function;
    for (const PlannedOperation& op : plan.operations) {
      const LoadedOperation& l = f.operations[op.index];
      std::vector<std::string> results;
      for (const uint32_t r : l.results)
        results.push_back(fmt::format("%{}{}", f.register_names[r], where(plan.registers[r])));
      text += fmt::format("{:{}}{}{}{}: {}{}\n", "", indent, fmt::join(results, ", "),
                          results.empty() ? "" : " = ", l.info->name, name_of(op.mode),
                          op.is_in_place ? ", in an argument's place" : "");
      for (const auto& body : op.bodies) {
        text += fmt::format("{:{}}@{}:\n", "", indent + 2, body->function->name);
        add(*body, indent + 4);
      }
    }
  }
  std::string text;

 private:
  static const char* name_of(Mode mode) {
    switch (mode) {
      case Mode::kOutVariant:
        return "out variant";
      case Mode::kNative:
        return "native";
      case Mode::kBody:
        return "planned bodies";
      case Mode::kFallback:
        break;
    }
    return "fallback";
  }
  std::string where(const PlannedRegister& r) const {
    switch (r.home) {
      case Home::kArena:
      case Home::kOutput: {
        const Layout::Place& place = layout_.places[r.size];
        const char* const in = r.home == Home::kArena ? "" : "outputs ";
        if (place.room == 0) return fmt::format(" [{}not known yet]", in);
        return fmt::format(" [{}{}, {})", in, place.offset, place.offset + place.room);
      }
      case Home::kCaller:
        return " [the caller's]";
      case Home::kSlot:
        return " [slot]";
      default:
        return "";
    }
  }
  const Layout& layout_;
};

}  // namespace

std::string PlannedFunction::explain() const {
  const std::shared_ptr<const Layout> now = layout();
  Explanation explanation(*now);
  explanation.add(*plan_, 2);
  const std::string rest =
      plan::bound_text(now->arena_bytes == now->least_bytes, std::to_string(now->least_bytes));
  std::string memory = "nothing is known of sizes yet";
  if (now->num_values > 0) {
    memory = fmt::format("{} value{} of {} bytes together in {}; {}", now->num_values,
                         now->num_values == 1 ? "" : "s", now->naive_bytes, now->arena_bytes, rest);
  } else if (now->output_bytes > 0) {
    memory = "no values but outputs";
  }
  if (now->output_bytes > 0) memory += fmt::format("; outputs of {} bytes", now->output_bytes);
  return fmt::format("@{}: {}\n{}", function_.name, memory, explanation.text);
}

}  // namespace coppice::executor
