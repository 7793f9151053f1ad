// Reductions (see reductions.h; the kernels are in runtime/runtime_reductions.kernels.cc).
#include "sparse/reductions.h"

#include <fmt/format.h>

#include <memory>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/work_refusal.h"
#include "gpu/buffer_ranges.h"
#include "gpu/host_access.h"
#include "runtime_reductions.kernels.h"
#include "sparse/bound_launches.h"
#include "sparse/runtime/reduced_values.h"
#include "sparse/runtime_launch.h"
#include "sparse/temporary_buffer.h"
#include "sparse/temporary_fields.h"
#include "sparse/traced_calls.h"
#include "sparse/tree_storage.h"

namespace coppice::detail {
namespace {

constexpr std::string_view kNames[] = {"sum", "dot", "min", "max", "count"};
std::string_view name_of(Reduction what) { return kNames[static_cast<size_t>(what)]; }

[[noreturn]] void refuse(Reduction what, const std::string& why,
                         ErrorCode code = ErrorCode::kInvalidArgument) {
  throw Error(code, fmt::format("{}: {}", name_of(what), why));
}

uint32_t bytes_of(Number number) {
  const bool is_short = number == Number::kF32 || number == Number::kI32 || number == Number::kU32;
  return is_short ? 4 : 8;
}
bool is_extreme(Reduction what) { return what == Reduction::kMin || what == Reduction::kMax; }
uint32_t result_bytes(Reduction what, Number number) { return is_extreme(what) ? bytes_of(number) : 8; }
uint32_t num_results(Reduction what, const ReducedValues& v) {
  return what == Reduction::kDot ? 1 : v.components;
}

// ---- checks

void check_buffer(Reduction what, const ReducedValues& v) {
  if (!v.device) refuse(what, "values of a buffer without a device");
  if (!v.buffer) refuse(what, "there is no buffer");
  if (is_of_another_device(v.device->context(), v.buffer->data())) refuse(what, "a buffer of another device");
  const int64_t bytes = int64_t{bytes_of(v.number)} * v.components, alignment = bytes_of(v.number);
  const auto size = static_cast<int64_t>(v.buffer->size_bytes());
  if (v.stride_bytes <= 0)
    refuse(what, fmt::format("values every {} bytes: the stride must be above 0", v.stride_bytes));
  if (v.stride_bytes > INT32_MAX || v.stride_bytes % alignment != 0 || v.offset_bytes % alignment != 0)
    refuse(what, fmt::format("values from byte {} on, every {} bytes, of {} bytes each: {} must divide these",
                             v.offset_bytes, v.stride_bytes, bytes, alignment));
  const bool fits = v.n >= 0 && v.offset_bytes >= 0 &&
                    (v.n == 0 || (v.offset_bytes <= size - bytes &&
                                  v.n - 1 <= (size - bytes - v.offset_bytes) / v.stride_bytes));
  if (!fits)
    refuse(what,
           fmt::format("{} values from byte {} on, every {} bytes, of a buffer of {} bytes", v.n,
                       v.offset_bytes, v.stride_bytes, size),
           ErrorCode::kOutOfRange);
}

void check_field(Reduction what, const ReducedValues& v) {
  TreeStorage& tree = *v.tree;
  if (v.field.tree != &tree) refuse(what, "the field is of another tree than its handle names");
  tree.freeze();
  tree.refuse_above_cut(v.field.node, std::string(name_of(what)));
  if (TracedCalls::current() == nullptr)
    tree.wait_sync_over_ranks();
  else
    tree.refuse_over_ranks(fmt::format("a traced {}", name_of(what)));
  if (v.field.node == 0) refuse(what, fmt::format("the root {} has no cells", tree.layout().path(0)));
  if (what == Reduction::kCount) return;
  if (v.field.field == kNoField)
    refuse(what, fmt::format("{}: a node's topology has no values", tree.layout().path(v.field.node)));
  // A traced writer has not run; a run of the function looks for itself.
  if (TracedCalls::current() == nullptr)
    check_has_values(tree, v.field.field, fmt::format("a {}", name_of(what)));
}

void check_values(Reduction what, const ReducedValues& v) {
  if (v.tree || v.field.tree != nullptr) {
    if (!v.tree) refuse(what, "a field that is none: Node::place() makes one");
    return check_field(what, v);
  }
  if (!v.device && !v.buffer) refuse(what, "a field that is none: Node::place() makes one");
  check_buffer(what, v);
}

void check_other(const ReducedValues& a, const ReducedValues& b) {
  if (!a.tree && (a.device.get() != b.device.get() || a.n != b.n))
    refuse(Reduction::kDot, fmt::format("{} and {} values, of one device", a.n, b.n));
  if (a.tree.get() == b.tree.get() && a.field.node == b.field.node) return;
  if (&a.tree->device() != &b.tree->device())
    refuse(Reduction::kDot, fmt::format("{} and {} are on two devices", a.tree->layout().path(a.field.node),
                                        b.tree->layout().path(b.field.node)));
  refuse(Reduction::kDot, fmt::format("{} and {} are two nodes", a.tree->layout().path(a.field.node),
                                      b.tree->layout().path(b.field.node)));
}

void check_out(Reduction what, const ReducedValues& v, Device& device, const BufferRef& out, int64_t offset) {
  if (!out) refuse(what, "there is no buffer for the result");
  if (is_of_another_device(device.context(), out->data()))
    refuse(what, "the result would be in a buffer of another device");
  const int64_t bytes = result_bytes(what, v.number), all = bytes * num_results(what, v);
  if (offset % bytes != 0)
    refuse(what, fmt::format("a result at byte {}, and {} must divide that", offset, bytes));
  const auto size = static_cast<int64_t>(out->size_bytes());
  if (offset < 0 || all > size || offset > size - all)
    refuse(what, fmt::format("{} bytes from byte {} on, of a buffer of {} bytes", all, offset, size),
           ErrorCode::kOutOfRange);
}

// ---- launches

Device& device_of(const ReducedValues& v) { return v.tree ? v.tree->device() : *v.device; }

// Calls f(program) with one whose kernels have no checks: these reach all of a tree by pointers.
template <class F>
auto with_program(const ReducedValues& v, F&& f) {
  const WorkRefusal::Scope lifted(nullptr);  // while a launch is made ready
  if (v.tree) return v.tree->programs().with_host(f);
  CodegenOptions options = codegen_options();
  options.checks = false;
  Program program(v.device, options);
  return f(program);
}

struct Values {
  CoppiceReduced reduced{};
  const unsigned char *a = nullptr, *b = nullptr;
};

// Returns where one component of the values is.
Values values_of(const ReducedValues& a, const ReducedValues* b, uint32_t component) {
  Values v;
  const ReducedValues* const sides[] = {&a, b != nullptr ? b : &a};
  for (int i = 0; i < 2; ++i) {
    v.reduced.offset[i] = uint64_t{component} * bytes_of(a.number);
    if (!a.tree) {
      v.reduced.offset[i] += static_cast<uint64_t>(sides[i]->offset_bytes);
      v.reduced.stride[i] = static_cast<uint32_t>(sides[i]->stride_bytes);
    } else if (sides[i]->field.field != kNoField) {
      const TreeField& field = a.tree->layout().field(sides[i]->field.field);
      v.reduced.offset[i] += field.offset, v.reduced.stride[i] = field.stride;
    }
  }
  if (!a.tree) {
    v.reduced.n = static_cast<uint64_t>(a.n);
    v.a = a.buffer->as<unsigned char>(), v.b = sides[1]->buffer->as<unsigned char>();
    return v;
  }
  v.reduced.tree = a.tree->memory().state();
  v.reduced.node = a.tree->memory().device_layout(a.field.node);
  v.reduced.containers = &a.tree->memory().list_state(a.field.node)->count;
  return v;
}

// Returns what a launch over a tree touches: the fields, which cells are active, and of the memory behind its
// arguments that of the sums. That it reaches the tree's memory by pointers is nothing besides.
IntrusivePtr<const LaunchUses> uses_of_tree(const LaunchUses& found, const ReducedValues& a,
                                            const ReducedValues* b, const void* partials,
                                            const LaunchBlock& block) {
  std::vector<LaunchUse> uses;
  const TreeLayout& layout = a.tree->layout();
  for (const ReducedValues* v : {&a, b}) {
    if (v == nullptr || v->field.field == kNoField) continue;
    LaunchUse field;
    field.tree = v->tree.get(), field.node = v->field.node, field.field = v->field.field;
    field.effects = effect::kReads, field.role = "Read", field.radius = LaunchUse::kAnywhere;
    field.name = layout.field_name(v->field.field);
    uses.push_back(std::move(field));
  }
  LaunchUse loop;
  loop.kind = LaunchUse::Kind::kTopology;
  loop.tree = a.tree.get(), loop.node = a.field.node, loop.field = kNoField, loop.effects = effect::kReads;
  loop.name = layout.path(a.field.node);
  uses.push_back(std::move(loop));
  for (const LaunchUse& use : found.all) {
    const void* address = nullptr;
    if (use.argument != 0) std::memcpy(&address, block.arguments + use.argument_offset, sizeof address);
    if (use.argument != 0 && address == partials) uses.push_back(use);
  }
  auto made = make_intrusive<LaunchUses>(std::move(uses));
  made->has_temporary_fields = found.has_temporary_fields;
  for (const LaunchUse& use : made->all)
    made->has_temporary_fields |=
        use.kind == LaunchUse::Kind::kField && layout.field(use.field).is_temporary();
  return made;
}

// A reduction of one component, as its two launches.
class ComponentReduction {
 public:
  ComponentReduction(Reduction what, const ReducedValues& a, const ReducedValues* b, uint32_t component)
      : what_(what), a_(a), b_(b), values_(values_of(a, b, component)) {
    const WorkRefusal::Scope lifted(nullptr);
    const size_t bytes = size_t{kReductionSlices} * sizeof(uint64_t);
    partials_ = device_of(a).reserve(bytes, bytes);
  }
  void give_first(Program& program);
  AsyncValueRef<Chain> give_last(Program& program, const BufferRef& out, int64_t offset);

 private:
  template <class S>
  void give_first(
      Program& program,
      const Kernel<void(Team, CoppiceReduced, const unsigned char*, const unsigned char*, S*)>& kernel);
  template <class S>
  AsyncValueRef<Chain> give_last(Program& program,
                                 const Kernel<void(Team, S*, unsigned char*, uint32_t)>& kernel,
                                 const BufferRef& out, int64_t offset);
  AsyncValueRef<Chain> give_keeping(Program& program, detail::LaunchRequest request,
                                    std::initializer_list<BufferRef> buffers) const {
    for (const BufferRef& buffer : buffers)
      if (buffer) request.keep_alive.push_back(buffer);
    return BoundLaunches::give(program, request);
  }

  const Reduction what_;
  const ReducedValues& a_;
  const ReducedValues* const b_;
  const Values values_;
  BufferRef partials_;
};

bool is_temporary(const BufferRef& buffer) { return buffer && as_temporary(*buffer) != nullptr; }

template <class S>
void ComponentReduction::give_first(
    Program& program,
    const Kernel<void(Team, CoppiceReduced, const unsigned char*, const unsigned char*, S*)>& kernel) {
  const Loop loop = range(kReductionSlices / kSlicesOfTeam);
  S* const partials = partials_->as<S>();
  // A temporary's address is found among the arguments when it is known, which needs the launch as it was
  // given.
  if (is_temporary(a_.buffer) || (b_ != nullptr && is_temporary(b_->buffer))) {
    give_keeping(program, detail::make_request(kernel, loop, values_.reduced, values_.a, values_.b, partials),
                 {partials_, a_.buffer, b_ == nullptr ? BufferRef() : b_->buffer});
    return;
  }
  Launch launch = program.make_launch(kernel, loop, values_.reduced, values_.a, values_.b, partials);
  launch.grain = 1;
  launch.keep_alive.push_back(partials_);
  if (a_.tree) {
    launch.uses = uses_of_tree(*launch.uses, a_, b_, partials, launch.block);
    launch.keep_alive.push_back(a_.tree.counted());
    launch.before_loop = [tree = a_.tree.get(), node = a_.field.node](InStream& s, LaunchBlock& block) {
      block.elements = tree->lists().update(s, node, false).elements->data();
    };
  } else {
    launch.keep_alive.push_back(a_.buffer);
    if (b_ != nullptr) launch.keep_alive.push_back(b_->buffer);
  }
  BoundLaunch(share(&device_of(a_)), std::move(launch)).launch();
}

template <class S>
AsyncValueRef<Chain> ComponentReduction::give_last(
    Program& program, const Kernel<void(Team, S*, unsigned char*, uint32_t)>& kernel, const BufferRef& out,
    int64_t offset) {
  S* const partials = partials_->as<S>();
  unsigned char* const to = out->as<unsigned char>() + offset;
  const uint32_t bytes = result_bytes(what_, a_.number);
  if (is_temporary(out))
    return give_keeping(program, detail::make_request(kernel, range(1), partials, to, bytes),
                        {partials_, out});
  Launch launch = program.make_launch(kernel, range(1), partials, to, bytes);
  launch.keep_alive.push_back(partials_), launch.keep_alive.push_back(out);
  return BoundLaunch(share(&device_of(a_)), std::move(launch)).launch();
}

// Calls f(kernel) with that of the number's type; signed and unsigned integers of 64 bits are summed alike.
#define COPPICE_BY_SUM(prefix) \
  switch (a_.number) {         \
    case Number::kF32:         \
      return f(prefix##_f32);  \
    case Number::kF64:         \
      return f(prefix##_f64);  \
    case Number::kI32:         \
      return f(prefix##_i32);  \
    case Number::kU32:         \
      return f(prefix##_u32);  \
    case Number::kI64:         \
    case Number::kU64:         \
      return f(prefix##_u64);  \
  }
#define COPPICE_BY_NUMBER(prefix)  \
  if (a_.number == Number::kI64) { \
    return f(prefix##_i64);        \
  }                                \
  COPPICE_BY_SUM(prefix)

void ComponentReduction::give_first(Program& program) {
  const auto f = [&](const auto& kernel) { give_first(program, kernel); };
  switch (what_) {
    case Reduction::kCount:
      return f(reduce_count);
    case Reduction::kSum:
      COPPICE_BY_SUM(reduce_sum)
      break;
    case Reduction::kDot:
      COPPICE_BY_SUM(reduce_dot)
      break;
    case Reduction::kMin:
      COPPICE_BY_NUMBER(reduce_min)
      break;
    case Reduction::kMax:
      COPPICE_BY_NUMBER(reduce_max)
      break;
  }
}
#undef COPPICE_BY_NUMBER
#undef COPPICE_BY_SUM

AsyncValueRef<Chain> ComponentReduction::give_last(Program& program, const BufferRef& out, int64_t offset) {
  const auto f = [&](const auto& kernel) { return give_last(program, kernel, out, offset); };
  const bool is_real = what_ != Reduction::kCount && (a_.number == Number::kF32 || a_.number == Number::kF64);
  if (!is_extreme(what_)) return is_real ? f(finish_sum_f64) : f(finish_sum_u64);
  const bool is_least = what_ == Reduction::kMin;
  if (is_real) return is_least ? f(finish_min_f64) : f(finish_max_f64);
  const bool is_signed = a_.number == Number::kI32 || a_.number == Number::kI64;
  if (is_signed) return is_least ? f(finish_min_i64) : f(finish_max_i64);
  return is_least ? f(finish_min_u64) : f(finish_max_u64);
}

}  // namespace

ReducedValues cells_of(const Node& node) {
  return {.tree = node.tree(), .field = {&node.storage(), node.id(), kNoField}, .number = Number::kU64};
}

AsyncValueRef<Chain> reduce_to(Reduction what, const ReducedValues& a, const ReducedValues* b,
                               const BufferRef& out, int64_t out_offset) {
  check_values(what, a);
  if (b != nullptr) {
    check_values(what, *b);
    check_other(a, *b);
    if (a.components != 1) refuse(what, "of vectors there is none: use one of a field with their product");
  }
  check_out(what, a, device_of(a), out, out_offset);
  std::vector<ComponentReduction> components;
  const uint32_t n = num_results(what, a);
  components.reserve(n);
  return with_program(a, [&](Program& program) {
    // All are read before one is written: results may lie among the values.
    for (uint32_t c = 0; c < n; ++c) components.emplace_back(what, a, b, c).give_first(program);
    AsyncValueRef<Chain> done;
    for (size_t c = 0; c < components.size(); ++c)
      done = components[c].give_last(program, out,
                                     out_offset + static_cast<int64_t>(c) * result_bytes(what, a.number));
    return done;
  });
}

AsyncValueRef<ReducedBytes> reduce(Reduction what, const ReducedValues& a, const ReducedValues* b) {
  WorkRefusal::check(fmt::format("{}() of values for the host ({}_to() leaves them on the device)",
                                 name_of(what), name_of(what)));
  check_values(what, a);
  Device& device = device_of(a);
  const BufferRef out = device.reserve(sizeof(ReducedBytes), sizeof(ReducedBytes));
  reduce_to(what, a, b, out, 0);
  auto bytes = std::make_shared<ReducedBytes>();
  const AsyncValueRef<Chain> done = device.default_stream().enqueue(
      "sparse.reduce",
      [out, bytes](InStream& s) { s.wait_copy(bytes->data(), out->data(), sizeof(ReducedBytes)); });
  return done.map([bytes](Chain&) { return *bytes; });
}

}  // namespace coppice::detail
