// The operations on buffers (sparse/operations.h) with memory of another device than their
// stream's: each is an Error, wherever the buffer stands among its arguments, and whatever the
// other device is; nobody's memory changes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "executor/builtin_operations.h"
#include "executor/executor.h"
#include "executor/text.h"
#include "sparse/operations.h"
#include "tests/sparse/staging.h"

namespace coppice {
namespace {

using BufferRef = IntrusivePtr<Buffer>;
using Value = RCReference<AsyncValue>;

// An operation with `*` where its buffers stand, and whether a number of the host comes with its event.
struct BufferOperation {
  const char* text;
  const char* number = nullptr;
};
constexpr BufferOperation kOperations[] = {
    {"buffer.copy *, 0, *, 0, 8"},
    {"buffer.fill 255, *, 0, 8"},
    {"primitives.sort_by_key.u32 *, *, 8"},
    {"primitives.sort_by_key.u64 *, *, 8"},
    {"primitives.exclusive_scan *, *, 8"},
    {"primitives.scan_and_sum *, *, 8", "i64"},
    {"primitives.sum.f32 *, 8", "f64"},
    {"primitives.sum.f64 *, 8", "f64"},
    {"primitives.sum.u32 *, 8", "i64"},
    {"primitives.sum.u64 *, 8", "i64"},
    {"primitives.max.f32 *, 8", "f32"},
    {"primitives.max.f64 *, 8", "f64"},
    {"primitives.max.u32 *, 8", "i64"},
    {"primitives.max.u64 *, 8", "i64"},
    {"primitives.select_if_flag *, *, 8", "i64"},
    {"primitives.run_length_encode *, *, *, 8", "i64"},
    {"primitives.histogram *, 8, *, 8"},
    {"primitives.bin_starts *, 8, *, 8"},
};

// The devices of the stream and of the other memory.
class MemoryOfAnotherDevice : public testing::TestWithParam<std::pair<const char*, const char*>> {
 protected:
  static constexpr int64_t kItems = 8;

  static IntrusivePtr<Device> make(const std::string& name) {
    return name == "cpu" ? Device::cpu(2) : Device::named(name);
  }
  static BufferRef numbers(Device& device) {
    std::vector<uint64_t> items(2 * kItems);
    std::iota(items.begin(), items.end(), 1);
    return wait_device_copy(device, items);
  }
  static std::vector<uint64_t> read(Device& device, const BufferRef& from) {
    std::vector<uint64_t> items(2 * kItems);
    device.wait_copy(items.data(), from->data(), items.size() * sizeof(uint64_t));
    return items;
  }
  // Buffers are the stream's own but for number `theirs_at`.
  std::vector<Value> run(const BufferOperation& operation, int theirs_at) {
    std::string text = operation.text;
    for (int n = 0; text.find('*') != std::string::npos; ++n)
      text.replace(text.find('*'), 1, n == theirs_at ? "$theirs" : fmt::format("$mine{}", n));
    const std::string source = fmt::format(R"(
func @main(%start: chain) -> chain {{
  %e0 = stream.start (%start)
  %e1{} = {} (%e0)
  %done = stream.done (%e1)
  return %done
}})",
                                           operation.number != nullptr ? ", %number" : "", text);
    executor::Bindings bindings;
    for (int n = 0; n < 3; ++n) bindings.add(fmt::format("mine{}", n), mine[n]);
    bindings.add("theirs", theirs);
    module = executor::LoadedModule::load(executor::parse(source, "test.graph"), registry, bindings);
    auto results = execute(module->function("main"), {make_available_async_value<Chain>()}, *request);
    for (const Value& result : results) wait(*result);
    return results;
  }

  IntrusivePtr<Device> device = make(GetParam().first), second = make(GetParam().second);
  const BufferRef mine[3] = {numbers(*device), numbers(*device), numbers(*device)}, theirs = numbers(*second);
  executor::Registry registry;
  IntrusivePtr<executor::Host> host = make_intrusive<executor::Host>();
  IntrusivePtr<executor::Request> request = host->start_request(share(&device->default_stream()));
  IntrusivePtr<executor::LoadedModule> module;
};

TEST_P(MemoryOfAnotherDevice, IsRefusedByEachOperation) {
  executor::add_builtin_operations(registry);
  add_sparse_operations(registry);
  const std::vector<uint64_t> before = read(*second, theirs);
  for (const BufferOperation& operation : kOperations) {
    const std::string text = operation.text, name = text.substr(0, text.find(' '));
    const auto buffers = std::count(text.begin(), text.end(), '*');
    for (int at = 0; at < buffers; ++at) {
      SCOPED_TRACE(fmt::format("{}, buffer {}", name, at));
      const std::vector<Value> results = run(operation, at);
      ASSERT_TRUE(results[0]->is_error());
      const Error error = results[0]->error();
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
      EXPECT_TRUE(error.message().ends_with(" is in memory of another device")) << error.message();
      device->default_stream().clear_error();
      EXPECT_EQ(read(*second, theirs), before);
    }
    const std::vector<Value> results = run(operation, -1);
    ASSERT_FALSE(results[0]->is_error()) << name << ": " << results[0]->error().what();
  }
}

INSTANTIATE_TEST_SUITE_P(Sparse, MemoryOfAnotherDevice,
                         testing::Values(std::pair{"cpu", "cpu"}, std::pair{"cpu", "simt"},
                                         std::pair{"simt", "cpu"}),
                         [](const auto& info) {
                           return fmt::format("{}_{}", info.param.first, info.param.second);
                         });

}  // namespace
}  // namespace coppice
