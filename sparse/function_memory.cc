// Lifetimes of temporaries, and their places (see function_memory.h).
#include "sparse/function_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/extents.h"
#include "executor/plan/svg.h"
#include "executor/plan/verify.h"
#include "sparse/device_operations.h"
#include "sparse/ordering.h"
#include "sparse/temporary_buffer.h"
#include "sparse/temporary_places.h"

namespace coppice {
namespace {

using executor::BoundAttribute;
using executor::LoadedFunction;
using executor::LoadedOperation;

constexpr size_t kAlignment = 256;  // as buffers of a GPU have it
// Where greedy plans are not as small as can be a search takes some tenths of a second, once.
constexpr uint64_t kMostNodes = 50'000;

using Temporary = const TemporaryBuffer*;

struct Interval {
  int64_t begin = 0, end = 0;
};

// Says how a function, or an operation with all of its bodies, uses a temporary.
struct Usage {
  std::vector<uint32_t> operations;  // of the function, by their places in its order
  uint64_t uses = 0;                 // of operations that have no bodies, in bodies, too
};

struct FirstUse {
  const LoadedFunction* function = nullptr;
  const LoadedOperation* operation = nullptr;
  bool only_reads = false;
};

// Each temporary once, in the order of the attributes and arguments.
std::vector<Temporary> used_by(const LoadedOperation& op) {
  std::vector<Temporary> used;
  const auto add = [&](const Buffer& buffer) {
    const Temporary t = as_temporary(buffer);
    if (t != nullptr && std::find(used.begin(), used.end(), t) == used.end()) used.push_back(t);
  };
  for (const BoundAttribute& a : op.attributes) {
    if (a.binding == nullptr) continue;
    if (a.binding->is_type<BufferRef>()) add(*a.binding->get<BufferRef>());
    if (!a.binding->is_type<BoundLaunch>()) continue;
    const auto launch = a.binding->get<BoundLaunch>().shared();
    for (const TemporaryArgument& argument : launch->launch.temporaries) add(*argument.buffer);
  }
  return used;
}

// An operation that runs another function has these bytes for itself: that function's temporaries lie there,
// and are written anew each time. One that reads what it has not written cannot be loaded.
struct RunBytes {
  const Buffer* arena;
  size_t begin, end;
  std::string name;  // of what is run
  Interval time;
};

// Adds the temporaries of functions that an operation runs, and of those that these run.
void add_run_by(const LoadedOperation& op, std::vector<Temporary>& all, std::string& name) {
  for (const BoundAttribute& a : op.attributes) {
    if (a.binding == nullptr || !a.binding->is_type<Function>()) continue;
    if (name.empty()) name = std::get<executor::BindingRef>(*a.value).name;
    for (const auto& f : a.binding->get<Function>().loaded().functions()) {
      for (const LoadedOperation& inner : f->operations) {
        for (const Temporary t : used_by(inner)) all.push_back(t);
        add_run_by(inner, all, name);
      }
    }
  }
}
void add_run_by(const LoadedOperation& op, Interval time, std::vector<RunBytes>& all) {
  std::vector<Temporary> run;
  std::string name;
  add_run_by(op, run, name);
  std::vector<RunBytes> ranges;
  for (const Temporary t : run)
    ranges.push_back(
        {t->arena().get(), t->offset(), t->offset() + round_up(t->size_bytes(), kAlignment), name, time});
  std::sort(ranges.begin(), ranges.end(), [](const RunBytes& a, const RunBytes& b) {
    return std::tie(a.arena, a.begin) < std::tie(b.arena, b.begin);
  });
  const size_t first = all.size();
  for (RunBytes& r : ranges) {
    if (all.size() > first && all.back().arena == r.arena && r.begin <= all.back().end)
      all.back().end = std::max(all.back().end, r.end);
    else
      all.push_back(std::move(r));
  }
}

bool has_temporaries(const executor::LoadedModule& module) {
  for (const auto& function : module.functions()) {
    for (const LoadedOperation& op : function->operations)
      if (!used_by(op).empty()) return true;
  }
  return false;
}

// Says whether what may run beside an operation is taken for a part of its time.
enum class Beside { kCounts, kDoesNotCount };

class Lifetimes {
 public:
  Lifetimes(const LoadedFunction& function, Beside beside) : beside_(beside) {
    count_uses(function, true);
    walk(function);
    // Bodies that run more than once, by several names, are not followed.
    for (const auto& [body, runs] : runs_once_) {
      if (runs) continue;
      for (const LoadedOperation& op : body->operations) {
        for (const Temporary t : used_by(op)) intervals_[t] = {0, now_};
        add_run_by(op, {0, now_}, run_);
      }
    }
    std::set<const Buffer*> arenas;
    for (const Temporary t : found_)
      if (t->is_placed()) arenas.insert(t->arena().get());
    std::erase_if(run_, [&](const RunBytes& r) { return !arenas.contains(r.arena); });
  }

  // In the order in which they are first used.
  const std::vector<Temporary>& temporaries() const { return found_; }
  Interval of(Temporary t) const { return intervals_.at(t); }
  const FirstUse& first_use(Temporary t) const { return first_.at(t); }
  // Returns where in the arenas of these the temporaries of functions lie that are run.
  const std::vector<RunBytes>& run() const { return run_; }

 private:
  template <class Visit>
  static void each_body(const LoadedOperation& op, Visit&& visit) {
    for (const BoundAttribute& a : op.attributes)
      if (a.function != nullptr) visit(*a.function);
  }
  // Each function counts once. Those that several operations name, or bodies of such, run more than once.
  void count_uses(const LoadedFunction& f, bool runs_once) {
    const auto [known, is_new] = runs_once_.try_emplace(&f, runs_once);
    if (!is_new) {
      if (!known->second) return;
      known->second = runs_once = false;
    }
    for (const LoadedOperation& op : f.operations) {
      if (is_new)
        for (const Temporary t : used_by(op)) ++all_uses_[t];
      each_body(op, [&](const LoadedFunction& body) { count_uses(body, runs_once); });
    }
  }

  // Returns what the function uses that others use, too.
  std::map<Temporary, Usage> walk(const LoadedFunction& f) {
    const std::vector<uint32_t> order = run_order(f);
    const std::vector<ResourceUses> uses = uses_of_operations(f);
    std::map<Temporary, Usage> used;
    std::vector<Interval> times;
    for (uint32_t place = 0; place < order.size(); ++place) {
      const LoadedOperation& op = f.operations[order[place]];
      const int64_t begin = now_;
      for (const Temporary t : used_by(op)) {
        note_first(f, op, uses[order[place]], t);
        add(used[t], place, 1);
      }
      each_body(op, [&](const LoadedFunction& body) {
        for (const auto& [t, usage] : walk_once(body)) add(used[t], place, usage.uses);
      });
      now_ = std::max(now_, begin + 1);
      times.push_back({begin, now_});
      if (runs_once_.at(&f)) add_run_by(op, times.back(), run_);
    }
    settle(f, order, times, used);
    return used;
  }
  const std::map<Temporary, Usage>& walk_once(const LoadedFunction& body) {
    const auto [entry, is_new] = walked_.try_emplace(&body);
    if (is_new) {
      auto used = walk(body);
      walked_[&body] = std::move(used);
    }
    return walked_[&body];
  }
  static void add(Usage& usage, uint32_t place, uint64_t uses) {
    if (usage.operations.empty() || usage.operations.back() != place) usage.operations.push_back(place);
    usage.uses += uses;
  }

  void note_first(const LoadedFunction& f, const LoadedOperation& op, const ResourceUses& uses, Temporary t) {
    const auto [entry, is_new] = first_.try_emplace(t);
    if (!is_new) return;
    found_.push_back(t);
    const ResourceUse own = use_of_buffer(*t, true, true);
    bool reads = false, writes = false;
    for (const ResourceUse& use : uses) {
      if (use.kind != ResourceUse::Kind::kAnyMemory && (use.object != own.object || use.begin != own.begin))
        continue;
      reads |= use.reads, writes |= use.writes || use.adds;
    }
    bool has_bodies = false;
    each_body(op, [&](const LoadedFunction&) { has_bodies = true; });
    entry->second = {&f, &op, reads && (!writes || has_bodies)};  // a flag is read in front of the bodies
  }

  // Sets the times of what is used nowhere else, and drops it from `used`.
  void settle(const LoadedFunction& f, const std::vector<uint32_t>& order, const std::vector<Interval>& times,
              std::map<Temporary, Usage>& used) {
    if (used.empty()) return;
    const Predecessors before = events_before(f, order);
    const Ancestors ancestors = ancestors_of(before);
    for (auto entry = used.begin(); entry != used.end();) {
      const auto& [t, usage] = *entry;
      if (usage.uses < all_uses_[t]) {
        ++entry;
        continue;
      }
      Interval needed{times[usage.operations.front()].begin, times[usage.operations.back()].end};
      for (const uint32_t user : usage.operations) {
        for (uint32_t other = 0; beside_ == Beside::kCounts && other < order.size(); ++other) {
          if (other == user || ancestors.has(user, other) || ancestors.has(other, user)) continue;
          needed.begin = std::min(needed.begin, times[other].begin);
          needed.end = std::max(needed.end, times[other].end);
        }
      }
      intervals_[t] = needed;
      entry = used.erase(entry);
    }
  }

  const Beside beside_;
  int64_t now_ = 0;
  std::vector<Temporary> found_;
  std::vector<RunBytes> run_;
  std::map<Temporary, uint64_t> all_uses_;
  std::map<Temporary, Interval> intervals_;
  std::map<Temporary, FirstUse> first_;
  std::map<const LoadedFunction*, bool> runs_once_;
  std::map<const LoadedFunction*, std::map<Temporary, Usage>> walked_;
};

plan::Problem problem_of(const Lifetimes& lifetimes) {
  plan::Problem problem;
  const auto add = [&](std::string id, Interval needed, size_t bytes) {
    plan::Buffer& b = problem.buffers.emplace_back();
    b.id = std::move(id), b.begin = needed.begin, b.end = needed.end;
    b.bytes = static_cast<int64_t>(round_up(bytes, kAlignment));
    b.alignment = kAlignment;
  };
  for (const Temporary t : lifetimes.temporaries())
    add(fmt::format("temporary.{}", problem.buffers.size() + 1), lifetimes.of(t), t->size_bytes());
  for (const RunBytes& r : lifetimes.run()) add("those of $" + r.name, r.time, r.end - r.begin);
  return problem;
}

void check_written_first(const Lifetimes& lifetimes, const std::string& file) {
  for (const Temporary t : lifetimes.temporaries()) {
    const FirstUse& first = lifetimes.first_use(t);
    if (!first.only_reads || t->size_bytes() <= 1) continue;  // one of nothing has a byte
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("%{} in @{} reads a temporary of {} bytes to which nothing has been written before",
                    first.function->register_names[first.operation->results[0]], first.function->name,
                    t->size_bytes()),
        {file});
  }
}

}  // namespace

void place_temporaries(Device& device, const executor::LoadedModule& module) {
  const Lifetimes lifetimes(*module.functions().front(), Beside::kCounts);
  if (lifetimes.temporaries().empty()) return;
  check_written_first(lifetimes, module.source().file);
  const plan::Plan plan = plan_temporaries(problem_of(lifetimes), kMostNodes);
  const auto bytes = static_cast<size_t>(plan.bytes);
  const IntrusivePtr<Buffer> arena = device.reserve(bytes, bytes);
  for (size_t i = 0; i < lifetimes.temporaries().size(); ++i) {
    // The tracer made it, and nobody else has seen where it lies.
    auto* const t = const_cast<TemporaryBuffer*>(lifetimes.temporaries()[i]);
    t->place(arena, static_cast<size_t>(plan.offsets[i]));
  }
}

namespace {

// Returns where temporaries lie. A module that was put together may have those of several arenas: one lies
// behind the other here.
plan::Plan places_of(const plan::Problem& problem, const Lifetimes& lifetimes) {
  std::map<const Buffer*, int64_t> begins;
  int64_t end = 0;
  std::vector<int64_t> offsets;
  const auto add = [&](const Buffer* arena, size_t bytes, size_t offset) {
    const auto [known, is_new] = begins.try_emplace(arena, end);
    if (is_new) end += static_cast<int64_t>(round_up(bytes, kAlignment));
    offsets.push_back(known->second + static_cast<int64_t>(offset));
  };
  for (const Temporary t : lifetimes.temporaries())
    add(t->arena().get(), t->arena() ? t->arena()->size_bytes() : 0, t->offset());
  for (const RunBytes& r : lifetimes.run()) add(r.arena, 0, r.begin);  // there is one in that arena
  return plan::plan_of(problem, std::move(offsets));
}

}  // namespace

FunctionMemory memory_of(const executor::LoadedModule& module) {
  FunctionMemory memory;
  // A function that was edited may have operations beside others that were not there when it was planned.
  for (const Beside beside : {Beside::kCounts, Beside::kDoesNotCount}) {
    const Lifetimes lifetimes(*module.functions().front(), beside);
    memory = {.problem = problem_of(lifetimes)};
    memory.plan = places_of(memory.problem, lifetimes);
    if (!plan::find_fault(memory.problem, memory.plan)) break;
  }
  memory.least_bytes = plan::lower_bound(memory.problem);
  return memory;
}

void check_places(const executor::LoadedModule& module) {
  if (!has_temporaries(module)) return;
  const std::string& file = module.source().file;
  for (const auto& function : module.functions()) {
    for (const LoadedOperation& op : function->operations) {
      for (const Temporary t : used_by(op)) {
        if (!t->is_placed())
          throw Error(
              ErrorCode::kInvalidArgument,
              fmt::format("@{}: a temporary of a function that was not traced to its end", function->name),
              {file});
      }
      if (op.info->name == "sparse.launch")
        check_placed(op.attributes[0].binding->get<BoundLaunch>().shared()->launch);
    }
  }
  const FunctionMemory memory = memory_of(module);
  if (const auto fault = plan::find_fault(memory.problem, memory.plan))
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("@{}: its temporaries were placed for another order of its operations: {}",
                            module.functions().front()->name, *fault),
                {file});
  check_written_first(Lifetimes(*module.functions().front(), Beside::kDoesNotCount), file);
}

std::string text_of(const FunctionMemory& memory) {
  const size_t n = memory.problem.buffers.size();
  if (n == 0) return "";
  const std::string rest =
      plan::bound_text(memory.plan.bytes == memory.least_bytes, std::to_string(memory.least_bytes));
  return fmt::format("{} temporar{} of {} bytes together in {}; {}", n, n == 1 ? "y" : "ies",
                     memory.naive_bytes(), memory.plan.bytes, rest);
}

std::string memory_picture(const Function& function) {
  const FunctionMemory memory = memory_of(function.loaded());
  return plan::svg_of(memory.problem, memory.plan);
}

std::string memory_picture(std::span<const Function> functions) {
  std::vector<plan::TitledPlan> parts;
  for (const Function& function : functions) {
    FunctionMemory memory = memory_of(function.loaded());
    if (memory.problem.buffers.empty()) continue;
    parts.push_back({fmt::format("@{}: {}", function.name(), text_of(memory)), std::move(memory.problem),
                     std::move(memory.plan)});
  }
  return plan::svg_of(parts);
}

}  // namespace coppice
