// The operations of sparse/operations.h.
#include "sparse/operations.h"

#include <fmt/format.h>

#include <memory>

#include "core/error.h"
#include "executor/builtin_operations.h"
#include "gpu/stream_primitives.h"
#include "sparse/device_operations.h"
#include "sparse/function.h"
#include "sparse/tree_storage.h"

namespace coppice {
namespace {

using executor::After;
using executor::Constant;
using executor::LoadedFunction;
using executor::MoreEvents;
using executor::Named;
using executor::Registry;
using executor::Request;
using executor::StreamEvent;
template <class T>
using EventAnd = std::tuple<StreamEvent, AsyncValueRef<T>>;

Stream& stream_of(const Request& request) {
  if (request.stream() == nullptr) {
    throw Error(ErrorCode::kInvalidArgument,
                "the request was started without a stream; give one to start_request()");
  }
  return *request.stream();
}

// Trees and launches belong to their device's default stream.
void check_stream(const Request& request, const Device& device, const Stream& own, std::string_view what) {
  if (&stream_of(request) == &own) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{} belongs to the default stream of its device ({}), and the request has another",
                          what, device.name()));
}
Stream& stream_of(const Request& request, const TreeStorage& tree) {
  Stream& stream = tree.device().default_stream();
  check_stream(request, tree.device(), stream, fmt::format("tree '{}'", tree.options().name));
  return stream;
}

// Calls f(s), and lets its Error name the operation: the stream knows no place in the text.
template <class F>
auto run_named(std::string_view name, InStream& s, const F& f) {
  try {
    return f(s);
  } catch (const Error& error) {
    if (error.message().starts_with(name)) throw;
    throw Error(error.code(), fmt::format("{}: {}", name, error.message()), error.location());
  }
}

// Returns the value of f(s), computed when the stream has come there. `name` outlives the stream.
template <class F>
auto compute(Stream& stream, std::string_view name, F f) {
  using T = decltype(f(std::declval<InStream&>()));
  auto result = std::make_shared<T>();
  AsyncValueRef<Chain> done = stream.enqueue(
      name, [result, name, f = std::move(f)](InStream& s) { *result = run_named(name, s, f); });
  AsyncValueRef<T> value = done.map([result](Chain&) { return *result; });
  return EventAnd<T>{StreamEvent{std::move(done)}, std::move(value)};
}

// ---- device work

template <class P>
struct AttributeOf {
  using Type = Constant<P>;
};
template <class T>
struct AttributeOf<const T&> {
  using Type = Named<T>;
};
template <>
struct AttributeOf<const LoadedFunction&> {
  using Type = Constant<LoadedFunction>;
};

// Gives a part to the request's stream on its own.
StreamEvent give(Segment::Part part, std::string_view name, Request& request) {
  Stream& stream = stream_of(request);
  if (Device* const device = Segment::device_of(part);
      device != nullptr && &stream != &device->default_stream())
    check_stream(request, *device, device->default_stream(), name);
  if (auto* const launch = std::get_if<BoundLaunch>(&part)) return {launch->launch()};
  if (auto* const call = std::get_if<DeviceCall>(&part))
    return {stream.enqueue(call->name, [call = std::move(*call)](InStream& s) {
      run_named(call.name, s, [&](InStream& in) { call.run(in); });
    })};
  std::vector<Segment::Part> parts;
  parts.push_back(std::move(part));
  return {stream.issue(
      name, [segment = make_intrusive<Segment>(std::move(parts))](InStream& s) { segment->run(s); })};
}

// An operation of the table in sparse/device_operations.h, as the executor runs it.
template <class... P>
struct StreamOperation {
  std::string_view name;
  DeviceWork (*make)(P...);

  StreamEvent operator()(typename AttributeOf<P>::Type... attributes, After, MoreEvents,
                         Request& request) const {
    DeviceWork work = make(attributes.get()...);
    // A launch notes its own.
    if (!std::holds_alternative<BoundLaunch>(work.part)) note_temporary_fields(work.temporaries);
    return give(std::move(work.part), name, request);
  }
};

StreamEvent run_launch(Named<BoundLaunch> launch, After, MoreEvents, Request& request) {
  if (request.stream() != &launch->stream())
    check_stream(request, launch->device(), launch->stream(), fmt::format("launch {}", launch->name()));
  return {launch->launch()};
}

StreamEvent deactivate_all(Named<Node> node, After, MoreEvents, Request& request) {
  stream_of(request, node->storage());
  return {node->deactivate_all()};
}

void add_device_operations(Registry& registry) {
  // These need not be made ready for a segment first.
  registry.add("sparse.launch", &run_launch);
  registry.add("sparse.deactivate_all", &deactivate_all);
  for_each_device_operation([&]<class... P>(std::string_view name, DeviceWork (*make)(P...)) {
    if (registry.find(name) == nullptr) registry.add(name, StreamOperation<P...>{name, make});
  });
}

// ---- trees

StreamEvent collect(Named<Tree> tree, After, MoreEvents, Request& request) {
  TreeStorage& storage = tree->storage();
  Stream& stream = stream_of(request, storage);
  storage.freeze();
  return {stream.enqueue("sparse.collect",
                         [kept = share(&storage)](InStream& s) { kept->collector().commit_topology(s); })};
}

StreamEvent update_list(Constant<bool> with_neighbours, Named<Node> node, After, MoreEvents,
                        Request& request) {
  Stream& stream = stream_of(request, node->storage());
  node->storage().freeze();
  return {stream.enqueue("sparse.update_list",
                         [tree = node->tree(), id = node->id(), neighbours = with_neighbours.get()](
                             InStream& s) { tree->lists().update(s, id, neighbours); })};
}

EventAnd<int64_t> count_blocks(Named<Node> node, After, MoreEvents, Request& request) {
  Stream& stream = stream_of(request, node->storage());
  node->storage().freeze();
  return compute(stream, "sparse.count_blocks", [tree = node->tree(), id = node->id()](InStream& s) {
    return static_cast<int64_t>(tree->lists().update(s, id, false).items);
  });
}

// ---- primitives whose results are the host's

// Returns f(in, n) as a T.
template <class T, class In, class F>
void add_reduction(Registry& registry, const char* name, F f) {
  registry.add(
      name, [name, f](Named<BufferRef> in, Constant<int64_t> n, After, MoreEvents, Request& request) {
        return compute(stream_of(request), name, [name, f, in = *in, n = n.get()](InStream& s) {
          return static_cast<T>(f(s, static_cast<const In*>(items<In>(name, in, n)), static_cast<size_t>(n)));
        });
      });
}
void add_reductions(Registry& registry) {
  constexpr auto sum = [](InStream& s, const auto* in, size_t n) { return primitives::wait_sum(s, in, n); };
  constexpr auto max = [](InStream& s, const auto* in, size_t n) { return primitives::wait_max(s, in, n); };
  add_reduction<double, float>(registry, "primitives.sum.f32", sum);
  add_reduction<double, double>(registry, "primitives.sum.f64", sum);
  add_reduction<int64_t, uint32_t>(registry, "primitives.sum.u32", sum);
  add_reduction<int64_t, uint64_t>(registry, "primitives.sum.u64", sum);
  add_reduction<float, float>(registry, "primitives.max.f32", max);
  add_reduction<double, double>(registry, "primitives.max.f64", max);
  add_reduction<int64_t, uint32_t>(registry, "primitives.max.u32", max);
  add_reduction<int64_t, uint64_t>(registry, "primitives.max.u64", max);
}

EventAnd<int64_t> scan_and_sum(Named<BufferRef> in, Named<BufferRef> out, Constant<int64_t> n, After,
                               MoreEvents, Request& request) {
  constexpr const char* kName = "primitives.scan_and_sum";
  return compute(stream_of(request), kName, [in = *in, out = *out, n = n.get()](InStream& s) {
    return static_cast<int64_t>(primitives::wait_exclusive_scan(
        s, items<uint32_t>(kName, in, n), items<uint32_t>(kName, out, n), static_cast<size_t>(n)));
  });
}

EventAnd<int64_t> select_if_flag(Named<BufferRef> flags, Named<BufferRef> indices, Constant<int64_t> n, After,
                                 MoreEvents, Request& request) {
  constexpr const char* kName = "primitives.select_if_flag";
  return compute(stream_of(request), kName, [flags = *flags, indices = *indices, n = n.get()](InStream& s) {
    return static_cast<int64_t>(primitives::wait_select_if_flag(
        s, items<uint32_t>(kName, flags, n), items<uint32_t>(kName, indices, n), static_cast<size_t>(n)));
  });
}

EventAnd<int64_t> run_length_encode(Named<BufferRef> keys, Named<BufferRef> unique, Named<BufferRef> counts,
                                    Constant<int64_t> n, After, MoreEvents, Request& request) {
  constexpr const char* kName = "primitives.run_length_encode";
  return compute(stream_of(request), kName,
                 [keys = *keys, unique = *unique, counts = *counts, n = n.get()](InStream& s) {
                   return static_cast<int64_t>(primitives::wait_run_length_encode(
                       s, items<uint32_t>(kName, keys, n), items<uint32_t>(kName, unique, n),
                       items<uint32_t>(kName, counts, n), static_cast<size_t>(n)));
                 });
}

}  // namespace

void add_sparse_operations(Registry& registry) {
  registry.add_type<BoundLaunch>("launch");
  registry.add_type<Tree>("tree");
  registry.add_type<Node>("node");
  registry.add_type<BufferRef>("buffer");
  registry.add_type<CountSlot>("slot");
  registry.add_type<Function>("function");
  add_device_operations(registry);
  registry.add("sparse.collect", &collect);
  registry.add("sparse.update_list", &update_list);
  registry.add("sparse.count_blocks", &count_blocks);
  add_reductions(registry);
  registry.add("primitives.scan_and_sum", &scan_and_sum);
  registry.add("primitives.select_if_flag", &select_if_flag);
  registry.add("primitives.run_length_encode", &run_length_encode);
}

const Registry& function_registry() {
  static const auto& registry =
      *new Registry([] {  // never destroyed: threads may load until the process ends
        Registry made;
        executor::add_builtin_operations(made);
        add_sparse_operations(made);
        return made;
      }());
  return registry;
}

}  // namespace coppice
