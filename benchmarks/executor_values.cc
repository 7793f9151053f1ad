// Async values beside std::promise and std::future, and beside lists of callbacks written by hand.
#include <atomic>
#include <future>
#include <memory>

#include "benchmarks/executor_cases.h"
#include "core/async_value.h"
#include "core/block_pool.h"
#include "core/count_down.h"

namespace coppice::bench {
namespace {

// A floor is made of these: a value that one knows all about, and one callback.
struct HandValue {
  std::atomic<uint64_t> state{0};
  int64_t payload = 0;
};
struct HandWaiter {
  HandWaiter* next;
  void (*run)(HandWaiter* self, HandValue& source);
  void* to;
};

void add_to_sum(HandWaiter* self, HandValue& source) {
  *static_cast<int64_t*>(self->to) += source.payload;
  delete_in_block(self);
}
void hand_push(HandValue& value, HandWaiter* waiter) {
  uint64_t word = value.state.load(std::memory_order_acquire);
  do {
    waiter->next = reinterpret_cast<HandWaiter*>(word);
  } while (!value.state.compare_exchange_weak(word, reinterpret_cast<uint64_t>(waiter),
                                              std::memory_order_release));
}
void hand_complete(HandValue& value, int64_t payload) {
  value.payload = payload;
  auto* waiter = reinterpret_cast<HandWaiter*>(value.state.exchange(1, std::memory_order_acq_rel));
  while (waiter != nullptr) {
    HandWaiter* const next = waiter->next;
    waiter->run(waiter, value);
    waiter = next;
  }
}

MicroCase make_and_destroy() {
  MicroCase c;
  c.name = "make_destroy", c.peer_name = "std::promise and std::future, set and get";
  c.detail = "heap value of 8 bytes; floor: a block of the pool, filled by plain stores";
  c.target = ours_at_most(20);
  c.ours = [](int n) {
    for (int i = 0; i < n; ++i) keep(make_available_async_value<int64_t>(i).get());
  };
  c.peer = [](int n) {
    for (int64_t i = 0; i < n; ++i) {
      std::promise<int64_t> promise;
      std::future<int64_t> future = promise.get_future();
      promise.set_value(i);
      keep(future.get());
    }
  };
  c.floor = [](int n) {
    for (int i = 0; i < n; ++i) {
      auto* const value = new_in_block<HandValue>();
      value->payload = i;
      value->state.store(1, std::memory_order_relaxed);
      keep(*value);
      delete_in_block(value);
    }
  };
  return c;
}

MicroCase and_then_on_ready() {
  MicroCase c;
  c.name = "and_then_ready", c.peer_name = "std::shared_future::get() of a ready one";
  c.detail = "floor: an acquire load and the addition";
  c.target = ours_at_most(12);
  c.ours = [](int n) {
    const auto value = make_available_async_value<int64_t>(1);
    int64_t sum = 0;
    for (int i = 0; i < n; ++i) {
      value.and_then([&sum](AsyncValuePtr<int64_t> v) { sum += v.get(); });
      keep(sum);
    }
  };
  c.peer = [](int n) {
    std::promise<int64_t> promise;
    promise.set_value(1);
    const std::shared_future<int64_t> future = promise.get_future().share();
    int64_t sum = 0;
    for (int i = 0; i < n; ++i) {
      sum += future.get();
      keep(sum);
    }
  };
  c.floor = [](int n) {
    HandValue value;
    value.state = 1, value.payload = 1;
    int64_t sum = 0;
    for (int i = 0; i < n; ++i) {
      if (value.state.load(std::memory_order_acquire) != 0) sum += value.payload;
      keep(sum);
    }
  };
  return c;
}

void hand_fan_out(int n, int waiters) {
  int64_t sum = 0;
  for (int i = 0; i < n; ++i) {
    HandValue value;
    for (int k = 0; k < waiters; ++k) {
      auto* const waiter = new_in_block<HandWaiter>();
      waiter->run = &add_to_sum;
      waiter->to = &sum;
      hand_push(value, waiter);
    }
    hand_complete(value, i);
  }
  keep(sum);
}

MicroCase map_of_ready() {
  MicroCase c;
  c.name = "map_ready", c.peer_name = "std::promise set to f of a ready std::shared_future";
  c.detail = "floor: a block of the pool and f";
  c.target = ours_at_most(40);
  c.ours = [](int n) {
    const auto value = make_available_async_value<int>(1);
    for (int i = 0; i < n; ++i) keep(value.map([](int& x) { return static_cast<float>(x) * 0.5f; }).get());
  };
  c.peer = [](int n) {
    std::promise<int> promise;
    promise.set_value(1);
    const std::shared_future<int> future = promise.get_future().share();
    for (int i = 0; i < n; ++i) {
      std::promise<float> mapped;
      std::future<float> result = mapped.get_future();
      mapped.set_value(static_cast<float>(future.get()) * 0.5f);
      keep(result.get());
    }
  };
  c.floor = [](int n) {
    HandValue source;
    source.state = 1, source.payload = 1;
    for (int i = 0; i < n; ++i) {
      if (source.state.load(std::memory_order_acquire) == 0) continue;
      auto* const value = new_in_block<HandValue>();
      value->payload = source.payload / 2;
      value->state.store(1, std::memory_order_relaxed);
      keep(*value);
      delete_in_block(value);
    }
  };
  return c;
}

MicroCase fan_out(int waiters) {
  MicroCase c;
  c.name = "fan_out_" + std::to_string(waiters), c.units = waiters, c.unit = "ns/waiter";
  c.peer_name = "std::shared_future, a copy and a get() each";
  c.detail = "floor: a list of callbacks written by hand";
  c.n = 20'000 / waiters;
  c.ours = [waiters](int n) {
    int64_t sum = 0;
    for (int i = 0; i < n; ++i) {
      const auto value = make_unconstructed_async_value<int64_t>();
      for (int k = 0; k < waiters; ++k) value.and_then([&sum](AsyncValuePtr<int64_t> v) { sum += v.get(); });
      value.emplace(i);
    }
    keep(sum);
  };
  c.peer = [waiters](int n) {
    int64_t sum = 0;
    std::vector<std::shared_future<int64_t>> futures(static_cast<size_t>(waiters));
    for (int i = 0; i < n; ++i) {
      std::promise<int64_t> promise;
      const std::shared_future<int64_t> future = promise.get_future().share();
      for (auto& f : futures) f = future;
      promise.set_value(i);
      for (auto& f : futures) sum += f.get();
    }
    keep(sum);
  };
  c.floor = [waiters](int n) { hand_fan_out(n, waiters); };
  return c;
}

// A chain's stage by hand: the next value lies in the callback's block.
struct HandStage : HandWaiter {
  HandValue value;
};
void run_stage(HandWaiter* self, HandValue& source) {
  hand_complete(static_cast<HandStage*>(self)->value, source.payload + 1);
}

void hand_chain(int n, int stages) {
  for (int i = 0; i < n; ++i) {
    HandValue first;
    HandValue* last = &first;
    HandStage* to_delete = nullptr;
    for (int k = 0; k < stages; ++k) {
      auto* const stage = new_in_block<HandStage>();
      stage->run = &run_stage;
      stage->to = to_delete;
      to_delete = stage;
      stage->next = nullptr;
      last->state.store(reinterpret_cast<uint64_t>(stage), std::memory_order_release);
      last = &stage->value;
    }
    // Not by hand_complete, which would recurse.
    int64_t payload = i;
    for (HandValue* value = &first; value != nullptr;) {
      value->payload = payload++;
      auto* const stage = static_cast<HandStage*>(
          reinterpret_cast<HandWaiter*>(value->state.exchange(1, std::memory_order_acq_rel)));
      value = stage != nullptr ? &stage->value : nullptr;
    }
    keep(*last);
    while (to_delete != nullptr) {
      auto* const stage = to_delete;
      to_delete = static_cast<HandStage*>(stage->to);
      delete_in_block(stage);
    }
  }
}

MicroCase chain(int stages) {
  MicroCase c;
  c.name = "chain_" + std::to_string(stages), c.units = stages, c.unit = "ns/stage";
  c.detail = "pending maps, then emplace; floor: a list of stages written by hand, without counts";
  c.n = std::max(1, 20'000 / stages);
  c.ours = [stages](int n) {
    for (int i = 0; i < n; ++i) {
      const auto first = make_unconstructed_async_value<int64_t>();
      auto last = first;
      for (int k = 0; k < stages; ++k) last = last.map([](int64_t x) { return x + 1; });
      first.emplace(i);
      keep(last.get());
    }
  };
  c.floor = [stages](int n) { hand_chain(n, stages); };
  if (stages > 10'000) {
    c.peer_name = "none: a chain of std::async(deferred) of this length overflows the stack";
    return c;
  }
  c.peer_name = "std::async(deferred) of each future's get()";
  c.peer = [stages](int n) {
    for (int i = 0; i < n; ++i) {
      std::promise<int64_t> first;
      std::future<int64_t> last = first.get_future();
      for (int k = 0; k < stages; ++k)
        last = std::async(std::launch::deferred,
                          [before = std::move(last)]() mutable { return before.get() + 1; });
      first.set_value(i);
      keep(last.get());
    }
  };
  return c;
}

MicroCase count_down(int count) {
  MicroCase c;
  c.name = "count_down_" + std::to_string(count);
  c.peer_name = "std::shared_ptr to an atomic counter and a std::promise";
  c.detail = "made, counted down, chain looked at; floor: the atomic subtractions";
  c.n = 2'000;
  c.ours = [count](int n) {
    for (int i = 0; i < n; ++i) {
      CountDown done(count);
      for (int k = 0; k < count; ++k) done.count_down();
      keep(done.chain().is_concrete());
    }
  };
  c.peer = [count](int n) {
    struct State {
      std::atomic<int64_t> left;
      std::promise<void> promise;
    };
    for (int i = 0; i < n; ++i) {
      const auto state = std::make_shared<State>();
      state->left = count;
      std::future<void> future = state->promise.get_future();
      for (int k = 0; k < count; ++k)
        if (state->left.fetch_sub(1, std::memory_order_acq_rel) == 1) state->promise.set_value();
      future.get();
    }
  };
  c.floor = [count](int n) {
    for (int i = 0; i < n; ++i) {
      std::atomic<int64_t> left{count};
      for (int k = 0; k < count; ++k) keep(left.fetch_sub(1, std::memory_order_acq_rel));
    }
  };
  return c;
}

}  // namespace

std::vector<MicroCase> async_value_cases() {
  return {make_and_destroy(), and_then_on_ready(), map_of_ready(), fan_out(1),
          fan_out(16),        fan_out(256),        chain(1),       chain(16),
          chain(256),         chain(1'000'000),    count_down(8),  count_down(32)};
}

}  // namespace coppice::bench
