// Notes what ordinary code gives to a device's default stream while a function is traced (sparse/function.h),
// and makes a module of it.
//
// One is there per thread at most.
#pragma once
#include <map>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/work_refusal.h"
#include "executor/bindings.h"
#include "executor/module.h"
#include "sparse/device_operations.h"
#include "sparse/function.h"
#include "sparse/traced_calls.h"

namespace coppice {

class Tracer final : public TracedCalls, public WorkRefusal {
 public:
  // An operation is given these.
  using Operand =
      std::variant<int64_t, BoundLaunch, Node, BufferRef, CountSlot, Function, executor::FunctionRef>;

  // Traces what the calling thread gives, until it is destroyed. Errors: kInvalidArgument without a device,
  // for a name that is none, or while another function is traced on this thread.
  Tracer(IntrusivePtr<Device> device, std::string name, const std::source_location& where);
  ~Tracer();
  // Returns that of the calling thread, or null.
  static Tracer* current() { return static_cast<Tracer*>(TracedCalls::current()); }

  // Notes an operation. Returns a value that is an error, for whoever looks at it: it says that nothing has
  // run. `label` is what the operation is called, the kernel's name, say.
  AsyncValueRef<Chain> add(std::string_view operation, std::string_view label, std::vector<Operand> operands);
  // Errors: kInvalidArgument for what belongs to another device.
  AsyncValueRef<Chain> launch(const BoundLaunch& launch) override;
  AsyncValueRef<Chain> deactivate_all(const Node& node) override;
  BufferRef temporary(Device& device, size_t bytes);
  IntrusivePtr<Buffer> temporary_at(uintptr_t begin) const override;
  // Notes what `body` gives as a function of its own.
  template <class Body>
  executor::FunctionRef trace_body(std::string_view kind, Body&& body) {
    begin_body(kind);
    const size_t depth = open_.size(), done = done_.size();
    try {
      body();
    } catch (...) {
      // Whoever catches it goes on in the function around the body.
      open_.resize(depth - 1), done_.resize(done);
      throw;
    }
    return end_body();
  }

  [[noreturn]] void refuse(std::string_view call) override;
  // Ends tracing.
  Function finish();

 private:
  void begin_body(std::string_view kind);
  executor::FunctionRef end_body();
  // Errors: kInvalidArgument for a temporary of another function.
  void check_temporary(const BufferRef& buffer, std::string_view label) const;
  void place_temporaries(executor::Module& module);
  void check_device(const Operand& operand, std::string_view label) const;
  executor::Attribute attribute_of(const Operand& operand, std::string_view label);
  // Binds a value to a name like `label`, unless what it stands for has one.
  template <class T>
  executor::BindingRef bind(const T& value, std::pair<const void*, uint64_t> identity,
                            std::string_view label);

  IntrusivePtr<Device> device_;
  std::string place_;                     // "heat.cc:42"
  std::vector<executor::Function> open_;  // the function, and the bodies that are being traced in it
  std::vector<executor::Function> done_;
  std::map<std::pair<const void*, uint64_t>, std::string> names_;  // of what is bound
  executor::Bindings bindings_;
  std::map<uintptr_t, BufferRef> temporaries_;           // by where they begin, before they are placed
  std::map<std::string, BoundLaunch> with_temporaries_;  // launches that have some, by what they are bound to
  std::map<std::string, int> bound_like_;           // how many names are taken that are numbered like one
  std::map<std::string, int, std::less<>> bodies_;  // of each kind, how many there are
  WorkRefusal::Scope refusal_;
};

}  // namespace coppice
