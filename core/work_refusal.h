// Lets a thread refuse to wait and to give work to streams for a while, because what it runs is looked at and
// not done: it traces a function (sparse/function.h).
//
// It is here because wait() is.
#pragma once
#include <string_view>

namespace coppice {

class WorkRefusal {
 public:
  // Is called for each wait(), and for each operation that the thread would give to a stream; throws.
  [[noreturn]] virtual void refuse(std::string_view call) = 0;

  // Sets what refuses on the calling thread until the scope ends; null: nothing does. Scopes nest.
  class Scope {
   public:
    explicit Scope(WorkRefusal* refusal) : outer_(current_) { current_ = refusal; }
    ~Scope() { current_ = outer_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    WorkRefusal* const outer_;
  };
  static void check(std::string_view call) {
    if (current_ != nullptr) current_->refuse(call);
  }

 protected:
  ~WorkRefusal() = default;

 private:
  // This is thread-local, since a wait() asks for a property of the thread, however deep in a call it is.
  static inline constinit thread_local WorkRefusal* current_ = nullptr;
};

}  // namespace coppice
