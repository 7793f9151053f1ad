// The operations of sparse/operations.h.
#include "sparse/operations.h"

#include <fmt/format.h>

#include <memory>

#include "core/error.h"
#include "gpu/stream_primitives.h"
#include "sparse/tree_storage.h"

namespace coppice {
namespace {

using executor::After;
using executor::Constant;
using executor::Registry;
using executor::Request;
using executor::StreamEvent;
using BufferRef = IntrusivePtr<Buffer>;
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

// Returns the value of f(s), computed when the stream has come there. `name` outlives the stream.
template <class F>
auto compute(Stream& stream, std::string_view name, F f) {
  using T = decltype(f(std::declval<InStream&>()));
  auto result = std::make_shared<T>();
  AsyncValueRef<Chain> done =
      stream.enqueue(name, [result, f = std::move(f)](InStream& s) { *result = f(s); });
  AsyncValueRef<T> value = done.map([result](Chain&) { return *result; });
  return EventAnd<T>{StreamEvent{std::move(done)}, std::move(value)};
}

// ---- trees

StreamEvent run_launch(After, const BoundLaunch& launch, Request& request) {
  if (request.stream() != &launch.stream())
    check_stream(request, launch.device(), launch.stream(), fmt::format("launch {}", launch.name()));
  return {launch.launch()};
}

StreamEvent deactivate_all(After, const Node& node, Request& request) {
  stream_of(request, node.storage());
  return {node.deactivate_all()};
}

StreamEvent collect(After, const Tree& tree, Request& request) {
  TreeStorage& storage = tree.storage();
  Stream& stream = stream_of(request, storage);
  storage.freeze();
  return {stream.enqueue("sparse.collect",
                         [tree = share(&storage)](InStream& s) { tree->collector().commit_topology(s); })};
}

StreamEvent update_list(After, const Node& node, Constant<bool> with_neighbours, Request& request) {
  Stream& stream = stream_of(request, node.storage());
  node.storage().freeze();
  return {stream.enqueue("sparse.update_list",
                         [tree = node.tree(), id = node.id(), neighbours = with_neighbours.get()](
                             InStream& s) { tree->lists().update(s, id, neighbours); })};
}

EventAnd<int64_t> count_blocks(After, const Node& node, Request& request) {
  Stream& stream = stream_of(request, node.storage());
  node.storage().freeze();
  return compute(stream, "sparse.count_blocks", [tree = node.tree(), id = node.id()](InStream& s) {
    return static_cast<int64_t>(tree->lists().update(s, id, false).items);
  });
}

// ---- buffers: their sizes are known at the operation's turn only, since operations before it may let them
// grow

void check_bytes(const char* operation, const Buffer& buffer, int64_t offset, int64_t bytes) {
  const auto size = static_cast<int64_t>(buffer.size_bytes());
  if (offset >= 0 && bytes >= 0 && offset <= size && bytes <= size - offset) return;
  throw Error(ErrorCode::kOutOfRange, fmt::format("{}: {} bytes from byte {} on, of a buffer of {} bytes",
                                                  operation, bytes, offset, size));
}

StreamEvent copy(After, const BufferRef& to, int64_t to_offset, const BufferRef& from, int64_t from_offset,
                 int64_t bytes, Request& request) {
  Stream& stream = stream_of(request);
  stream.enqueue("buffer.copy", [=](InStream&) {
    check_bytes("buffer.copy", *to, to_offset, bytes);
    check_bytes("buffer.copy", *from, from_offset, bytes);
  });
  // The copy is skipped with the check's error when that fails.
  AsyncValueRef<Chain> done =
      stream.copy(to->data() + to_offset, from->data() + from_offset, static_cast<size_t>(bytes));
  done.and_then([to, from] {});  // keeps them until then
  return {std::move(done)};
}

StreamEvent fill(After, const BufferRef& buffer, Constant<int32_t> byte, int64_t offset, int64_t bytes,
                 Request& request) {
  if (byte < 0 || byte > 255)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("buffer.fill with {}, which is no byte", byte.get()));
  Stream& stream = stream_of(request);
  stream.enqueue("buffer.fill", [=](InStream&) { check_bytes("buffer.fill", *buffer, offset, bytes); });
  AsyncValueRef<Chain> done = stream.fill(buffer->data() + offset, byte, static_cast<size_t>(bytes));
  done.and_then([buffer] {});
  return {std::move(done)};
}

// ---- primitives

// Returns the buffer's first n items.
template <class T>
T* items(const char* operation, const BufferRef& buffer, int64_t n) {
  const auto room = static_cast<int64_t>(buffer->size_bytes() / sizeof(T));
  if (n >= 0 && n <= room) return buffer->as<T>();
  throw Error(ErrorCode::kOutOfRange, fmt::format("{}: {} items of {} bytes, of a buffer of {} bytes",
                                                  operation, n, sizeof(T), buffer->size_bytes()));
}

template <class Key>
void add_sort(Registry& registry, const char* name) {
  registry.add(name,
               [name](After, const BufferRef& keys, const BufferRef& values, int64_t n, Request& request) {
                 Stream& stream = stream_of(request);
                 return StreamEvent{stream.enqueue(name, [name, keys, values, n](InStream& s) {
                   primitives::sort_by_key(s, items<Key>(name, keys, n), items<uint32_t>(name, values, n),
                                           static_cast<size_t>(n));
                 })};
               });
}

// Returns f(in, n) as a T.
template <class T, class In, class F>
void add_reduction(Registry& registry, const char* name, F f) {
  registry.add(name, [name, f](After, const BufferRef& in, int64_t n, Request& request) {
    Stream& stream = stream_of(request);
    return compute(stream, name, [=](InStream& s) {
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

EventAnd<int64_t> exclusive_scan(After, const BufferRef& in, const BufferRef& out, int64_t n,
                                 Request& request) {
  constexpr const char* kName = "primitives.exclusive_scan";
  Stream& stream = stream_of(request);
  return compute(stream, kName, [=](InStream& s) {
    return static_cast<int64_t>(primitives::wait_exclusive_scan(
        s, items<uint32_t>(kName, in, n), items<uint32_t>(kName, out, n), static_cast<size_t>(n)));
  });
}

EventAnd<int64_t> select_if_flag(After, const BufferRef& flags, const BufferRef& indices, int64_t n,
                                 Request& request) {
  constexpr const char* kName = "primitives.select_if_flag";
  Stream& stream = stream_of(request);
  return compute(stream, kName, [=](InStream& s) {
    return static_cast<int64_t>(primitives::wait_select_if_flag(
        s, items<uint32_t>(kName, flags, n), items<uint32_t>(kName, indices, n), static_cast<size_t>(n)));
  });
}

EventAnd<int64_t> run_length_encode(After, const BufferRef& keys, const BufferRef& unique,
                                    const BufferRef& counts, int64_t n, Request& request) {
  constexpr const char* kName = "primitives.run_length_encode";
  Stream& stream = stream_of(request);
  return compute(stream, kName, [=](InStream& s) {
    return static_cast<int64_t>(primitives::wait_run_length_encode(
        s, items<uint32_t>(kName, keys, n), items<uint32_t>(kName, unique, n),
        items<uint32_t>(kName, counts, n), static_cast<size_t>(n)));
  });
}

StreamEvent bin_starts(After, const BufferRef& keys, int64_t n, const BufferRef& starts, int64_t n_bins,
                       Request& request) {
  constexpr const char* kName = "primitives.bin_starts";
  Stream& stream = stream_of(request);
  return {stream.enqueue(kName, [=](InStream& s) {
    items<uint32_t>(kName, starts, n_bins);  // negative: not even a number of items
    primitives::bin_starts(s, items<uint32_t>(kName, keys, n), static_cast<size_t>(n),
                           items<uint32_t>(kName, starts, n_bins + 1), static_cast<size_t>(n_bins));
  })};
}

}  // namespace

void add_sparse_operations(Registry& registry) {
  registry.add_type<BoundLaunch>("launch");
  registry.add_type<Tree>("tree");
  registry.add_type<Node>("node");
  registry.add_type<BufferRef>("buffer");
  registry.add("sparse.launch", &run_launch);
  registry.add("sparse.deactivate_all", &deactivate_all);
  registry.add("sparse.collect", &collect);
  registry.add("sparse.update_list", &update_list);
  registry.add("sparse.count_blocks", &count_blocks);
  registry.add("buffer.copy", &copy);
  registry.add("buffer.fill", &fill);
  add_sort<uint32_t>(registry, "primitives.sort_by_key.u32");
  add_sort<uint64_t>(registry, "primitives.sort_by_key.u64");
  add_reductions(registry);
  registry.add("primitives.exclusive_scan", &exclusive_scan);
  registry.add("primitives.select_if_flag", &select_if_flag);
  registry.add("primitives.run_length_encode", &run_length_encode);
  registry.add("primitives.bin_starts", &bin_starts);
}

}  // namespace coppice
