// Task: work to be run once, on some thread. A move-only void() without RTTI, 64 bytes,
// of which 48 hold the callable.
//
//   Task task([file = std::move(file)]() mutable { ... });
//   task();   // runs it, destroys the callable with what it holds, and leaves the task empty
//
// A task that is destroyed without being run destroys its callable. A callable that is larger, more strictly
// aligned than max_align_t, or may throw when moved, is put on the heap. An exception that leaves a callable
// ends the program: there is nobody to catch it. One thread at a time, as every value type here.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstring>
#include <functional>
#include <new>
#include <type_traits>
#include <utility>

#include "core/check.h"

namespace coppice::executor {

class Task {
 public:
  static constexpr size_t kInlineBytes = 48;

  Task() noexcept = default;
  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, Task> && std::invocable<std::decay_t<F>>) Task(F&& callable)
      : operations_(&kOperations<std::decay_t<F>>) {  // NOLINT: a lambda is passed as a task
    using Callable = std::decay_t<F>;
    if constexpr (kIsInline<Callable>) {
      new (storage_) Callable(std::forward<F>(callable));
    } else {
      new (storage_) Callable*(new Callable(std::forward<F>(callable)));
    }
  }
  Task(Task&& other) noexcept { take(other); }
  Task& operator=(Task&& other) noexcept {
    if (this == &other) return *this;
    reset();
    take(other);
    return *this;
  }
  ~Task() { reset(); }

  explicit operator bool() const noexcept { return operations_ != nullptr; }

  // The task is empty already while the callable runs, so that it may assign to, or destroy, the task it was
  // in.
  void operator()() noexcept {
    COPPICE_CHECK(operations_ != nullptr, "an empty task, or one that ran already");
    Task self(std::move(*this));
    std::exchange(self.operations_, nullptr)->run_and_destroy(self.storage_);
  }

  // Destroys the callable unrun.
  void reset() noexcept {
    if (const Operations* operations = std::exchange(operations_, nullptr)) operations->destroy(storage_);
  }

 private:
  struct Operations {
    void (*run_and_destroy)(void* storage);
    void (*destroy)(void* storage) noexcept;
    void (*relocate)(void* to, void* from) noexcept;  // null: the bytes are copied
  };

  template <class F>
  static constexpr bool kIsInline =
      sizeof(F) <= kInlineBytes &&
      alignof(F) <= alignof(std::max_align_t) && std::is_nothrow_move_constructible_v<F>;

  template <class F>
  struct Inline {
    static F* at(void* storage) { return std::launder(static_cast<F*>(storage)); }
    static void run_and_destroy(void* storage) {
      struct Destroyer {
        F* callable;
        ~Destroyer() { callable->~F(); }
      } const destroyer{at(storage)};
      std::invoke(std::move(*destroyer.callable));
    }
    static void destroy(void* storage) noexcept { at(storage)->~F(); }
    static void relocate(void* to, void* from) noexcept {
      new (to) F(std::move(*at(from)));
      at(from)->~F();
    }
    static constexpr Operations kTable = {&run_and_destroy, &destroy,
                                          std::is_trivially_copyable_v<F> ? nullptr : &relocate};
  };
  template <class F>
  struct OnHeap {
    static F*& at(void* storage) { return *std::launder(static_cast<F**>(storage)); }
    static void run_and_destroy(void* storage) {
      struct Destroyer {
        F* callable;
        ~Destroyer() { delete callable; }
      } const destroyer{at(storage)};
      std::invoke(std::move(*destroyer.callable));
    }
    static void destroy(void* storage) noexcept { delete at(storage); }
    static constexpr Operations kTable = {&run_and_destroy, &destroy, nullptr};
  };
  template <class F>
  static constexpr const Operations& kOperations =
      std::conditional_t<kIsInline<F>, Inline<F>, OnHeap<F>>::kTable;

  void take(Task& other) noexcept {
    operations_ = std::exchange(other.operations_, nullptr);
    if (operations_ == nullptr) return;
    if (operations_->relocate == nullptr) {
      std::memcpy(storage_, other.storage_, kInlineBytes);
    } else {
      operations_->relocate(storage_, other.storage_);
    }
  }

  alignas(std::max_align_t) std::byte storage_[kInlineBytes];
  const Operations* operations_ = nullptr;
};
static_assert(sizeof(Task) == 64);
static_assert(std::is_nothrow_move_constructible_v<Task> && !std::is_copy_constructible_v<Task>);

}  // namespace coppice::executor
