// Making device work of operations (see device_operations.h).
#include "sparse/device_operations.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/error.h"
#include "gpu/buffer_ranges.h"
#include "gpu/stream_primitives.h"
#include "sparse/function.h"
#include "sparse/runtime_launch.h"
#include "sparse/tree_storage.h"

namespace coppice {
namespace {

using executor::BoundAttribute;
using executor::LoadedFunction;
using executor::LoadedOperation;

// ---- attributes, as what makes an operation takes them

template <class T>
T& attribute(const BoundAttribute& a, std::type_identity<T&>) {
  return a.binding->get<std::remove_const_t<T>>();
}
template <class T>
T attribute(const BoundAttribute& a, std::type_identity<T>) {
  return static_cast<T>(std::get<int64_t>(*a.value));
}
const LoadedFunction& attribute(const BoundAttribute& a, std::type_identity<const LoadedFunction&>) {
  return *a.function;
}

const Device& device_of(const BoundLaunch& launch) { return launch.device(); }
const Device& device_of(const Node& node) { return node.storage().device(); }
const Device& device_of(const CountSlot& slot) { return slot.storage().device(); }
const Device& device_of(const Function& function) { return function.device(); }

// These check that what an attribute names belongs to the device, which is null where it is not known yet.
void check_attribute(Device* device, const BoundAttribute& a, std::type_identity<const BufferRef&>) {
  const auto& buffer = a.binding->get<BufferRef>();
  const auto refuse = [&](std::string_view what) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("${} is {}", std::get<executor::BindingRef>(*a.value).name, what));
  };
  if (!buffer) refuse("a null buffer");
  if (device != nullptr && is_of_another_device(device->context(), buffer->data()))
    refuse("a buffer of another device");
}
template <class T>
void check_its_device(Device* device, const BoundAttribute& a, std::string_view kind) {
  const Device& its = device_of(a.binding->get<T>());
  if (device == nullptr || &its == device) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("${} is a {} of another device ({})", std::get<executor::BindingRef>(*a.value).name,
                          kind, its.name()));
}
void check_attribute(Device* device, const BoundAttribute& a, std::type_identity<const BoundLaunch&>) {
  check_its_device<BoundLaunch>(device, a, "launch");
}
void check_attribute(Device* device, const BoundAttribute& a, std::type_identity<const Node&>) {
  check_its_device<Node>(device, a, "node");
}
void check_attribute(Device* device, const BoundAttribute& a, std::type_identity<const CountSlot&>) {
  check_its_device<CountSlot>(device, a, "slot");
}
void check_attribute(Device* device, const BoundAttribute& a, std::type_identity<const Function&>) {
  check_its_device<Function>(device, a, "function");
}
template <class T>
void check_attribute(Device*, const BoundAttribute&, std::type_identity<T>) {}

using Make = std::function<DeviceWork(Device*, std::span<const BoundAttribute>)>;
template <class... P>
Make make_of_attributes(DeviceWork (*make)(P...)) {
  return [make](Device* device, std::span<const BoundAttribute> attributes) {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      (check_attribute(device, attributes[I], std::type_identity<P>()), ...);
      return make(attribute(attributes[I], std::type_identity<P>())...);
    }
    (std::index_sequence_for<P...>());
  };
}

using Makers = std::map<std::string_view, Make>;
const Makers& operations() {
  static const auto& table = *new Makers([] {  // never destroyed: threads may trace until the process ends
    Makers all;
    for_each_device_operation(
        [&](std::string_view name, auto make) { all[name] = make_of_attributes(make); });
    return all;
  }());
  return table;
}

// ---- buffers

void check_placed(std::string_view operation, const Buffer& buffer) {
  const TemporaryBuffer* const temporary = as_temporary(buffer);
  if (temporary == nullptr || temporary->is_placed()) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: a temporary of a function that was not traced to its end", operation));
}

void check_extent(std::string_view operation, const Buffer& buffer, int64_t offset, int64_t bytes) {
  const auto size = static_cast<int64_t>(buffer.size_bytes());
  if (offset >= 0 && bytes >= 0 && offset <= size && bytes <= size - offset) return;
  throw Error(ErrorCode::kOutOfRange, fmt::format("{}: {} bytes from byte {} on, of a buffer of {} bytes",
                                                  operation, bytes, offset, size));
}

// At an operation's turn.
void check_bytes(std::string_view operation, const Buffer& buffer, int64_t offset, int64_t bytes) {
  check_placed(operation, buffer);
  check_extent(operation, buffer, offset, bytes);
}

ResourceUse reads(const BufferRef& buffer) { return use_of_buffer(existing(buffer), true, false); }
ResourceUse writes(const BufferRef& buffer) { return use_of_buffer(existing(buffer), false, true); }
ResourceUse changes(const BufferRef& buffer) { return use_of_buffer(existing(buffer), true, true); }

DeviceWork call_work(std::string_view name, const ResourceUses& uses, std::function<void()> check,
                     std::function<void(InStream&)> give) {
  return {DeviceCall{name, std::move(check), std::move(give), uses}, uses, {}};
}

template <class Key>
DeviceWork sort_work(std::string_view name, const BufferRef& keys, const BufferRef& values, int64_t n) {
  return call_work(
      name, {changes(keys), changes(values)},
      [=] { check_items(name, *keys, n, sizeof(Key)), check_items(name, *values, n, 4); },
      [=](InStream& s) {
        primitives::sort_by_key(s, place_as<Key>(*keys), place_as<uint32_t>(*values), static_cast<size_t>(n));
      });
}

// ---- functions

[[noreturn]] void fail(const LoadedFunction& f, const executor::Position& at, const std::string& why,
                       ErrorCode code = ErrorCode::kInvalidArgument) {
  const std::string& file = f.module->source().file;
  throw Error(code, fmt::format("@{}: {}", f.name, why),
              {file.empty() ? "module" : file, static_cast<int>(at.line), static_cast<int>(at.column)});
}

// Functions that are being made: one that runs itself would never end. The outermost keeps what is made of
// each, for a body may be named in many places, and the device that all are made for.
struct Nesting {
  Nesting(const LoadedFunction& f, Device* made_for)
      : function(&f),
        outer(current),
        outermost(outer != nullptr ? outer->outermost : this),
        device(made_for) {
    for (const Nesting* n = outer; n != nullptr; n = n->outer) {
      if (n->function == function) fail(f, {}, "it runs itself");
    }
    current = this;
  }
  ~Nesting() { current = outer; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

  const LoadedFunction* function;
  Nesting* outer;
  Nesting* outermost;
  Device* device;
  std::map<const LoadedFunction*, DeviceFunction> made;
  static inline thread_local Nesting* current = nullptr;
};

constexpr std::string_view kJoin = "stream.join";

// An Error of an operation in a body has that one's place.
DeviceWork work_of(const LoadedFunction& f, const LoadedOperation& op) {
  const std::string_view name = op.info->name;
  const auto found = operations().find(name);
  if (found == operations().end())
    fail(f, op.position(),
         fmt::format("{} is no work of the device that a function can be made of: it may "
                     "wait, or give the host a value",
                     name));
  Device* const device = Nesting::current != nullptr ? Nesting::current->outermost->device : nullptr;
  try {
    return found->second(device, op.attributes);
  } catch (const Error& error) {
    if (!error.location().file.empty()) throw;
    const std::string& why = error.message();
    const bool is_named = why.starts_with(name) || name.starts_with(why.substr(0, why.find(':')));
    fail(f, op.position(), is_named ? why : fmt::format("{}: {}", name, why), error.code());
  }
}

void check_signature(const LoadedFunction& f) {
  const std::vector<std::string> event{"event"};
  if (f.argument_types == event && f.result_types == event) return;
  fail(f, {}, "device work is a function that takes one event and returns one");
}

// Returns what gives the events that registers are, by their places in the order in which operations run.
std::vector<uint32_t> producers_of(const LoadedFunction& f, const std::vector<uint32_t>& place,
                                   std::span<const uint32_t> registers) {
  std::vector<uint32_t> found;
  for (const uint32_t r : registers) {
    const uint32_t producer = f.registers[r].producer;
    if (producer != executor::kNoOperation) found.push_back(place[producer]);
  }
  return found;
}

std::vector<uint32_t> places_of(const std::vector<uint32_t>& order) {
  std::vector<uint32_t> place(order.size());
  for (uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  return place;
}

// Returns the same for parts alone: what joins events is no part, and stands for what it joins. `part_at` has
// the number of the part at each place.
Predecessors parts_before(const Predecessors& before, const std::vector<std::optional<uint32_t>>& part_at) {
  Predecessors reached(before.size()), of_parts;
  for (uint32_t i = 0; i < before.size(); ++i) {
    for (const uint32_t earlier : before[i]) {
      if (part_at[earlier])
        reached[i].push_back(*part_at[earlier]);
      else
        reached[i].insert(reached[i].end(), reached[earlier].begin(), reached[earlier].end());
    }
    std::sort(reached[i].begin(), reached[i].end());
    reached[i].erase(std::unique(reached[i].begin(), reached[i].end()), reached[i].end());
    if (part_at[i]) of_parts.push_back(reached[i]);
  }
  return of_parts;
}

// Checks that events order what must be ordered, and that whoever goes on behind the function's own event
// goes on behind all of it. `order` is that in which the operations run, `uses` and `before` are in it.
void check_order(const LoadedFunction& f, const std::vector<uint32_t>& order,
                 const std::vector<ResourceUses>& uses, const Predecessors& before) {
  const auto name_of = [&](uint32_t i) { return '%' + f.register_names[f.operations[order[i]].results[0]]; };
  if (const auto found = find_unordered(uses, before)) {
    const auto [first, second] = *found;
    fail(f, f.operations[order[second]].position(),
         fmt::format("no event orders {} and {}, which both use {}", name_of(first), name_of(second),
                     conflict(uses[first], uses[second])->name));
  }
  std::vector<bool> is_followed(order.size(), false);
  for (const uint32_t last : producers_of(f, places_of(order), f.returns)) is_followed[last] = true;
  for (auto i = static_cast<uint32_t>(order.size()); i-- > 0;) {
    if (!is_followed[i])
      fail(f, f.operations[order[i]].position(),
           fmt::format("the event that the function returns does not follow {}", name_of(i)));
    for (const uint32_t earlier : before[i]) is_followed[earlier] = true;
  }
}

// Returns make(), whose error gets the place of the operation.
template <class Make>
auto in_function(const LoadedFunction& f, const LoadedOperation& op, Make make) {
  try {
    return make();
  } catch (const Error& error) {
    fail(f, op.position(), error.what());
  }
}

void add_device(const LoadedFunction& f, const LoadedOperation& op, Device*& device, Device* of_part) {
  if (device == nullptr) device = of_part;
  if (of_part == nullptr || of_part == device) return;
  fail(f, op.position(),
       fmt::format("{} belongs to another device ({}) than what is before it ({})", op.info->name,
                   of_part->name(), device->name()));
}

// Adds the reading of a flag in device memory to what a loop or branch does.
void add_flag(DeviceWork& work, std::string_view name, const BufferRef& flag, int64_t offset) {
  check_extent(name, existing(flag), offset, sizeof(uint32_t));
  if (offset % 4 != 0)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: a flag at byte {}, and 4 must divide that", name, offset));
  work.uses.push_back(reads(flag));
}

TemporaryFieldUses repeated(const TemporaryFieldUses& body, uint64_t times) {
  if (times == 0) return {};
  return times == 1 ? body : one_repeated(body);
}
// It is told only on the device how often the body runs.
TemporaryFieldUses repeated_or_not(const TemporaryFieldUses& body) {
  return one_or_other(one_repeated(body), {});
}

DeviceFlag flag_at(const BufferRef& flag, int64_t offset) { return {flag, static_cast<uint64_t>(offset)}; }

}  // namespace

const Buffer& existing(const BufferRef& buffer) {
  if (buffer) return *buffer;
  throw Error(ErrorCode::kInvalidArgument, "an operation is given no buffer");
}

void check_items(std::string_view operation, const Buffer& buffer, int64_t n, size_t item_bytes) {
  check_placed(operation, buffer);
  const auto room = static_cast<int64_t>(buffer.size_bytes() / item_bytes);
  if (n >= 0 && n <= room) return;
  throw Error(ErrorCode::kOutOfRange, fmt::format("{}: {} items of {} bytes, of a buffer of {} bytes",
                                                  operation, n, item_bytes, buffer.size_bytes()));
}

bool is_device_operation(std::string_view name) { return operations().contains(name); }

DeviceWork launch_work(const BoundLaunch& launch) {
  const auto shared = launch.shared();
  const Launch& given = shared->launch;
  return {launch, resources_of(given),
          given.uses ? temporary_fields_of(*given.uses, given.name) : TemporaryFieldUses()};
}
DeviceWork deactivate_all_work(const Node& node) { return launch_work(bind_deactivate_all(node)); }

DeviceWork copy_work(const BufferRef& to, int64_t to_offset, const BufferRef& from, int64_t from_offset,
                     int64_t bytes) {
  constexpr std::string_view kName = "buffer.copy";
  return call_work(
      kName, {writes(to), reads(from)},
      [=] { check_bytes(kName, *to, to_offset, bytes), check_bytes(kName, *from, from_offset, bytes); },
      [=](InStream& s) {
        s.copy(place_of(*to) + to_offset, place_of(*from) + from_offset, static_cast<size_t>(bytes));
      });
}

DeviceWork fill_work(int32_t byte, const BufferRef& buffer, int64_t offset, int64_t bytes) {
  constexpr std::string_view kName = "buffer.fill";
  if (byte < 0 || byte > 255)
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{} with {}, which is no byte", kName, byte));
  return call_work(
      kName, {writes(buffer)}, [=] { check_bytes(kName, *buffer, offset, bytes); },
      [=](InStream& s) { s.fill(place_of(*buffer) + offset, byte, static_cast<size_t>(bytes)); });
}

DeviceWork sort_u32_work(const BufferRef& keys, const BufferRef& values, int64_t n) {
  return sort_work<uint32_t>("primitives.sort_by_key.u32", keys, values, n);
}
DeviceWork sort_u64_work(const BufferRef& keys, const BufferRef& values, int64_t n) {
  return sort_work<uint64_t>("primitives.sort_by_key.u64", keys, values, n);
}

DeviceWork scan_work(const BufferRef& in, const BufferRef& out, int64_t n) {
  constexpr std::string_view kName = "primitives.exclusive_scan";
  return call_work(
      kName, {reads(in), writes(out)}, [=] { check_items(kName, *in, n, 4), check_items(kName, *out, n, 4); },
      [=](InStream& s) {
        primitives::exclusive_scan(s, place_as<uint32_t>(*in), place_as<uint32_t>(*out),
                                   static_cast<size_t>(n), nullptr);
      });
}

template <class T>
DeviceWork sum_work(const BufferRef& in, int64_t n, const BufferRef& out, int64_t out_offset) {
  constexpr std::string_view kName = "primitives.sum_to";
  using Sum = primitives::SumOf<T>;
  if (out_offset % static_cast<int64_t>(sizeof(Sum)) != 0)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: a sum at byte {}, and {} must divide that", kName, out_offset, sizeof(Sum)));
  return call_work(
      kName, {reads(in), writes(out)},
      [=] { check_items(kName, *in, n, sizeof(T)), check_bytes(kName, *out, out_offset, sizeof(Sum)); },
      [=](InStream& s) {
        primitives::sum(s, place_as<T>(*in), static_cast<size_t>(n),
                        reinterpret_cast<Sum*>(place_of(*out) + out_offset));
      });
}
template DeviceWork sum_work<float>(const BufferRef&, int64_t, const BufferRef&, int64_t);
template DeviceWork sum_work<double>(const BufferRef&, int64_t, const BufferRef&, int64_t);
template DeviceWork sum_work<uint32_t>(const BufferRef&, int64_t, const BufferRef&, int64_t);
template DeviceWork sum_work<uint64_t>(const BufferRef&, int64_t, const BufferRef&, int64_t);

DeviceWork histogram_work(const BufferRef& keys, int64_t n, const BufferRef& counts, int64_t n_bins) {
  constexpr std::string_view kName = "primitives.histogram";
  return call_work(
      kName, {reads(keys), writes(counts)},
      [=] { check_items(kName, *keys, n, 4), check_items(kName, *counts, n_bins, 4); },
      [=](InStream& s) {
        primitives::histogram(s, place_as<uint32_t>(*keys), static_cast<size_t>(n),
                              place_as<uint32_t>(*counts), static_cast<size_t>(n_bins));
      });
}

DeviceWork bin_starts_work(const BufferRef& keys, int64_t n, const BufferRef& starts, int64_t n_bins) {
  constexpr std::string_view kName = "primitives.bin_starts";
  return call_work(
      kName, {reads(keys), writes(starts)},
      [=] {
        check_items(kName, *starts, n_bins, 4);  // negative: not even a number of items
        check_items(kName, *keys, n, 4), check_items(kName, *starts, n_bins + 1, 4);
      },
      [=](InStream& s) {
        primitives::bin_starts(s, place_as<uint32_t>(*keys), static_cast<size_t>(n),
                               place_as<uint32_t>(*starts), static_cast<size_t>(n_bins));
      });
}

DeviceWork repeat_work(int64_t times, const LoadedFunction& body) {
  DeviceFunction made = device_function(body);
  const uint64_t n = times > 0 ? static_cast<uint64_t>(times) : 0;
  return {Segment::Repeat{n, {}, std::move(made.segment)}, std::move(made.uses),
          repeated(made.temporaries, n)};
}

DeviceWork repeat_by_work(const CountSlot& times, const LoadedFunction& body) {
  DeviceFunction made = device_function(body);
  const Device& its = times.storage().device();
  const Device* const device = made.segment->device();
  if (device != nullptr && device != &its)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("sparse.repeat_by: its slot belongs to another device ({}) than its body ({})",
                            its.name(), device->name()));
  return {Segment::Repeat{0, times.shared(), std::move(made.segment)}, std::move(made.uses),
          repeated_or_not(made.temporaries)};
}

DeviceWork while_work(const BufferRef& flag, int64_t offset, const LoadedFunction& body) {
  DeviceFunction made = device_function(body);
  DeviceWork work{Segment::While{flag_at(flag, offset), std::move(made.segment)}, std::move(made.uses),
                  repeated_or_not(made.temporaries)};
  add_flag(work, "sparse.while", flag, offset);
  return work;
}

DeviceWork branch_work(const BufferRef& flag, int64_t offset, const LoadedFunction& then,
                       const LoadedFunction& otherwise) {
  DeviceFunction made = device_function(then), other = device_function(otherwise);
  DeviceWork work{Segment::Branch{flag_at(flag, offset), std::move(made.segment), std::move(other.segment)},
                  std::move(made.uses), one_or_other(made.temporaries, other.temporaries)};
  add_uses(work.uses, other.uses);
  add_flag(work, "sparse.branch", flag, offset);
  return work;
}

DeviceWork run_work(const Function& function) {
  const DeviceFunction& work = function.work();
  return {Segment::Call{work.segment}, work.uses, work.temporaries};
}

Predecessors events_before(const LoadedFunction& f, const std::vector<uint32_t>& order) {
  const std::vector<uint32_t> place = places_of(order);
  Predecessors before;
  for (const uint32_t i : order) before.push_back(producers_of(f, place, f.operations[i].arguments));
  return before;
}

std::vector<Segment::Range> replayed_as_one(const LoadedFunction& f) {
  std::vector<Segment::Part> parts;
  std::vector<size_t> places;  // of the parts, in the order in which all run: what joins events is no part
  const std::vector<uint32_t> order = run_order(f);
  for (size_t i = 0; i < order.size(); ++i) {
    const LoadedOperation& op = f.operations[order[i]];
    if (op.info->name == kJoin) continue;
    parts.push_back(work_of(f, op).part);
    places.push_back(i);
  }
  std::vector<Segment::Range> runs = Segment::replayed_as_one(parts);
  for (Segment::Range& run : runs) run = {places[run.begin], places[run.end - 1] + 1};
  return runs;
}

std::vector<ResourceUses> uses_of_operations(const LoadedFunction& f) {
  std::vector<ResourceUses> uses;
  for (const LoadedOperation& op : f.operations)
    uses.push_back(op.info->name == kJoin ? ResourceUses() : work_of(f, op).uses);
  return uses;
}

DeviceFunction device_function(const LoadedFunction& f, Device* made_for) {
  const Nesting nesting(f, made_for);
  const auto& known = nesting.outermost->made;
  if (const auto found = known.find(&f); found != known.end()) return found->second;
  check_signature(f);
  const std::vector<uint32_t> order = run_order(f);
  std::vector<Segment::Part> parts;
  std::vector<std::optional<uint32_t>> part_at;
  std::vector<ResourceUses> uses;
  DeviceFunction made;
  Device* device = nullptr;
  for (const uint32_t i : order) {
    const LoadedOperation& op = f.operations[i];
    part_at.emplace_back();
    if (op.info->name == kJoin) {
      uses.emplace_back();
      continue;
    }
    part_at.back() = static_cast<uint32_t>(parts.size());
    DeviceWork work = work_of(f, op);
    add_device(f, op, device, Segment::device_of(work.part));
    add_uses(made.uses, work.uses);
    made.temporaries = in_function(f, op, [&] { return one_then_other(made.temporaries, work.temporaries); });
    uses.push_back(std::move(work.uses));
    parts.push_back(std::move(work.part));
  }
  const Predecessors before = events_before(f, order);
  check_order(f, order, uses, before);
  made.segment = make_intrusive<Segment>(std::move(parts), parts_before(before, part_at));
  nesting.outermost->made.emplace(&f, made);
  return made;
}

}  // namespace coppice
