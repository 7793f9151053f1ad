// A program that ends at a random moment, in a random way, while functions run on its
// host (ending_host_stress_test.cc).
//
//     ending_host_program SEED          exit status 0
#include <algorithm>
#include <optional>
#include <vector>

#include "executor/builtin_operations.h"
#include "executor/enqueue_work.h"
#include "executor/executor.h"
#include "executor/text.h"
#include "tests/core/ending_ways.h"

namespace coppice::executor {
namespace {

constexpr const char* kGraph = R"(
func @step(%x: i32) -> i32 {
  %a = compute (%x)
  %b = later (%a)
  return %b
}
func @blocking_step(%x: i32) -> i32 {
  %a = block (%x)
  %b = later (%a)
  return %b
}
func @side_by_side(%n: i32, %x: i32) -> i32 {
  %y = repeat @step (%n, %x)
  %z = repeat @blocking_step (%n, %x)
  %w = repeat @step (%n, %z)
  return %w
})";

class World {
 public:
  using Random = std::mt19937;

  explicit World(Random& random) {
    registry_.emplace();
    add_builtin_operations(*registry_);
    registry_->add("compute", [](int32_t x) { return x + 1; }, {.run = Run::kCompute});
    registry_->add("block", [](int32_t x) { return x + 1; }, {.run = Run::kBlocking});
    registry_->add("later", [](int32_t x, Result<int32_t> y, Request& request) {
      auto work = [x, y = y.allocate()]() mutable { y.emplace(x); };
      request.queue()->add(request.source(), 0, Task(std::move(work)));
    });
    module_ = LoadedModule::load(parse(kGraph, "ending.graph"), *registry_);
    for (int n = 1 + below(random, 2); n > 0; --n)
      hosts_.push_back(make_intrusive<Host>(WorkQueue::create({.threads = 1 + below(random, 4)})));
    request_ = hosts_.back()->start_request();
  }

  void work(Random& random) {
    Host& host = *hosts_[below(random, static_cast<int>(hosts_.size()))];
    WorkQueue& queue = *host.queue();
    const auto i32 = [](int32_t value) { return make_available_async_value<int32_t>(value); };
    switch (below(random, 6)) {
      case 0:
        return keep(
            execute(module_->function("side_by_side"), {i32(1 + below(random, 50)), i32(0)}, *request_)[0]);
      case 1:
        return keep(enqueue_work(host, [] { return std::string(100, 'x'); }).release_rc_reference());
      case 2:
        return keep(enqueue_blocking_work(host, [] { return std::string(100, 'x'); }).release_rc_reference());
      case 3:
        queue.add_at(WorkQueue::Clock::now() + std::chrono::milliseconds(below(random, 20)), [] {});
        return;
      case 4:  // whose last reference a task may hold
        queue.add(1, 0, [other = WorkQueue::create({.threads = 2}), self = share(&host)] {
          for (int i = 0; i < 10; ++i) other->add(1, 0, [self] {});
        });
        return;
      default:
        request_->cancel_at(WorkQueue::Clock::now() + std::chrono::milliseconds(below(random, 20)));
    }
  }

  void on_its_threads(Random& random, std::function<void()> deed) {
    WorkQueue& queue = *hosts_[0]->queue();
    if (random() % 2 == 0) {
      queue.add(1, 0, std::move(deed));
    } else {
      queue.add_blocking(std::move(deed));
    }
  }

  void let_go(Random& random) {
    std::vector<std::function<void()>> handles{[&] { hosts_.clear(); }, [&] { request_.reset(); },
                                               [&] { module_.reset(); }, [&] { values_.clear(); }};
    std::shuffle(handles.begin(), handles.end(), random);
    for (const auto& drop : handles) drop();
  }

 private:
  static int below(Random& random, int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }
  void keep(RCReference<AsyncValue> value) { values_.push_back(std::move(value)); }

  std::optional<Registry> registry_;
  IntrusivePtr<LoadedModule> module_;
  std::vector<IntrusivePtr<Host>> hosts_;
  IntrusivePtr<Request> request_;
  std::vector<RCReference<AsyncValue>> values_;
};

}  // namespace
}  // namespace coppice::executor

int main(int count, char** words) { return coppice::Ending<coppice::executor::World>::run(count, words); }
