// Operations that show what the executor does with values: their counts, kinds, lives and threads.
//
// Notes (test_operations.h) take what they see. Payloads of their own:
//   tracked   an object that notes when it is made, moved and destroyed; moved-from ones are silent
//   buffer    memory (a tracked object) that an operation can give back before the value dies
#pragma once
#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "tests/executor/test_operations.h"

#ifndef COPPICE_TEST_PROGRAMS
#define COPPICE_TEST_PROGRAMS ""  // only the conformance tests read programs from files
#endif

namespace coppice::executor {

class Tracked {
 public:
  Tracked(Notes& notes, int32_t id) : notes_(&notes), id_(id) { note("make"); }
  Tracked(Tracked&& other) noexcept : notes_(std::exchange(other.notes_, nullptr)), id_(other.id_) {
    note("move");
  }
  ~Tracked() {
    if (notes_ != nullptr) note("destroy");
  }
  int32_t id() const { return id_; }

 private:
  void note(const char* what) { notes_->add(fmt::format("{} {}", what, id_)); }
  Notes* notes_;
  int32_t id_;
};

struct Buffer {
  std::unique_ptr<Tracked> memory;
};

// References that producers keep: of values that they never complete, or when the test says so.
class Kept {
 public:
  void add(RCReference<AsyncValue> value) {
    const std::lock_guard lock(mutex_);
    values_.push_back(std::move(value));
  }
  std::vector<RCReference<AsyncValue>> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(values_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<RCReference<AsyncValue>> values_;
};

inline uint32_t references(AsyncValue* value) { return share(value).use_count() - 1; }

// probe.add.i32 "name" (a, b)    the sum; notes the references to both while it runs
// probe.refs.i32 "name" (a)      notes the references to a
// probe.kinds (...)              non-strict; notes "concrete", "pending" or "indirect" for each
// probe.is_unique.i32 (a)        whether nobody else uses a
inline void add_value_probes(Registry& registry) {
  registry.add("probe.add.i32", [](Constant<std::string_view> name, Argument<int32_t> a, Argument<int32_t> b,
                                   Request& request) {
    request.host().shared<Notes>().add(
        fmt::format("{} {} {}", name.get(), references(a.value()), references(b.value())));
    return *a + *b;
  });
  registry.add("probe.refs.i32", [](Constant<std::string_view> name, Argument<int32_t> a, Request& request) {
    request.host().shared<Notes>().add(fmt::format("{} {}", name.get(), references(a.value())));
  });
  registry.add(
      "probe.kinds",
      [](RemainingArguments values, Request& request) {
        for (size_t i = 0; i < values.size(); ++i) {
          request.host().shared<Notes>().add(values[i]->is_indirect()    ? "indirect"
                                             : values[i]->is_available() ? "concrete"
                                                                         : "pending");
        }
      },
      {.non_strict = true}, [](const OperationUse&) { return std::vector<std::string>(); });
  registry.add("probe.is_unique.i32", [](Argument<int32_t> a) { return a.value()->is_unique(); });
}

// async_copy.i32 (a)        a, later; by Result::allocate      async_copy_ref.i32 (a)   by a returned AsyncValueRef
// read_later.i32 (a)        notes a, later                     copy_to_two.i32 (a)      a itself as both results
// never.i32 ()              its producer keeps it for ever (Kept)
// dropped.i32 ()            its producer forgets it at once   forgotten.i32 ()       ... when Later runs
// throws_late.i32 ()        its producer throws with the result allocated
// queued_copy.i32 (a)       a, by a task of the queue
// partial.i32 (a)           a, and an error
// divmod.i32 (a, b)         quotient and remainder
// fail_with.i32 7 (a)       the error "failure 7"              async_fail_with.i32 7 (a)    the same, later
// cancel (a) -> a           cancels the request
inline void add_i32_probes(Registry& registry) {
  registry.add("async_copy.i32", [](Argument<int32_t> in, Result<int32_t> out, Request& request) {
    request.host().shared<Later>().add(
        [in = in.value_ref(), out = out.allocate()]() mutable { out.emplace(in.get()); });
  });
  registry.add("async_copy_ref.i32", [](Argument<int32_t> in, Request& request) {
    auto promise = make_promise<int32_t>();
    AsyncValueRef<int32_t> out = promise.value();
    request.host().shared<Later>().add(
        [in = in.value_ref(), promise = std::move(promise)]() mutable { promise.emplace(in.get()); });
    return out;
  });
  registry.add("read_later.i32", [](Argument<int32_t> in, Request& request) {
    Notes& notes = request.host().shared<Notes>();
    request.host().shared<Later>().add(
        [in = in.value_ref(), &notes] { notes.add(fmt::format("read {}", in.get())); });
  });
  registry.add("copy_to_two.i32",
               [](Argument<int32_t> in, Result<int32_t> a, Result<int32_t> b) { a.set(in), b.set(in); });
  registry.add("never.i32", [](Result<int32_t> result, Request& request) {
    request.host().shared<Kept>().add(result.allocate().release());
  });
  registry.add("dropped.i32", [](Result<int32_t> result) { (void)result.allocate(); });
  registry.add("forgotten.i32", [](Result<int32_t> result, Request& request) {
    request.host().shared<Later>().add([result = result.allocate()] {});
  });
  registry.add("queued_copy.i32", [](Argument<int32_t> in, Result<int32_t> out, Request& request) {
    request.queue()->add(request.source(), 0, Task([in = in.value_ref(), out = out.allocate()]() mutable {
                           out.emplace(in.get());
                         }));
  });
  registry.add("throws_late.i32", [](Result<int32_t> result) {
    const auto promise = result.allocate();
    throw Error(ErrorCode::kNumeric, "too late");
  });
  registry.add("partial.i32", [](Argument<int32_t> a, Result<int32_t> good, Result<int32_t> bad) {
    good.set(a);
    bad.set_error(Error(ErrorCode::kNumeric, "only one"));
  });
  registry.add("divmod.i32", [](int32_t a, int32_t b) { return std::tuple(a / b, a % b); });
  registry.add("fail_with.i32", [](Constant<int32_t> number, int32_t) -> int32_t {
    throw Error(ErrorCode::kNumeric, fmt::format("failure {}", number.get()));
  });
  registry.add("async_fail_with.i32", [](Constant<int32_t> number, Argument<int32_t>, Result<int32_t> result,
                                         Request& request) {
    request.host().shared<Later>().add([number = number.get(), result = result.allocate()]() mutable {
      result.set_error(Error(ErrorCode::kNumeric, fmt::format("failure {}", number)));
    });
  });
  registry.add("cancel", [](Argument<int32_t> a, Result<int32_t> same, Request& request) {
    request.cancel();
    same.set(a);
  });
}

// tracked.new 1, tracked.emplace 1    returned by value; made in place        tracked.see "name" (t)   notes that it runs
// tracked.pass (t) -> t               the same value                          tracked.next (t)         one with the next id
// tracked.later (t) -> chain          holds t until Later runs
// buffer.new 1, buffer.release (b)    the memory goes when the operation runs       release_after (b, a)   ... once a is there
inline void add_life_probes(Registry& registry) {
  registry.add_type<Tracked>("tracked");
  registry.add_type<Buffer>("buffer");
  registry.add("tracked.new", [](Constant<int32_t> id, Request& request) {
    return Tracked(request.host().shared<Notes>(), id);
  });
  registry.add("tracked.emplace", [](Constant<int32_t> id, Result<Tracked> result, Request& request) {
    result.emplace(request.host().shared<Notes>(), id);
  });
  registry.add("tracked.see", [](Constant<std::string_view> name, const Tracked& t, Request& request) {
    request.host().shared<Notes>().add(fmt::format("{} sees {}", name.get(), t.id()));
  });
  registry.add("tracked.next", [](const Tracked& t, Result<Tracked> result, Request& request) {
    result.emplace(request.host().shared<Notes>(), t.id() + 1);
  });
  registry.add("tracked.pass", [](Argument<Tracked> t, Result<Tracked> same) { same.set(t); });
  registry.add("tracked.later", [](Argument<Tracked> t, Result<Chain> done, Request& request) {
    request.host().shared<Later>().add([t = t.value_ref(), done = done.allocate()]() mutable {
      t.reset();
      done.emplace();
    });
  });
  registry.add("buffer.new", [](Constant<int32_t> id, Request& request) {
    return Buffer{std::make_unique<Tracked>(request.host().shared<Notes>(), id)};
  });
  registry.add("buffer.release", [](Buffer& buffer, Request& request) {
    Notes& notes = request.host().shared<Notes>();
    notes.add("release");
    buffer.memory.reset();
    notes.add("released");
  });
  registry.add("release_after", [](Buffer& buffer, int32_t) { buffer.memory.reset(); });
}

inline void add_probe_operations(Registry& registry) {
  add_value_probes(registry);
  add_i32_probes(registry);
  add_life_probes(registry);
}

inline std::string read_program(const std::string& name) {
  std::ifstream file(COPPICE_TEST_PROGRAMS + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// A program that also knows the probes.
struct ProbedProgram : Program {
  explicit ProbedProgram(std::string_view text, IntrusivePtr<WorkQueue> queue = nullptr)
      : Program(text, std::move(queue), &add_probe_operations) {}
};

}  // namespace coppice::executor
