// One launch of a generated kernel, whatever its handles: the types come back from the shape's number
// (shapes.py).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "sparse/program.h"
#include "sparse/program_ptx.h"
#include "tests/gpu/jit/kernel_assembly.h"
#include "tests/kernel_fuzz/batch.h"
#include "tests/kernel_fuzz/signature.h"

namespace coppice::kernel_fuzz {

using fuzz_reference::Arguments;

struct HandleInfo {
  Role role;
  uint32_t bytes;
};

// A kernel as Kernel<...> names it, without the types of its arguments.
struct AnyKernel {
  KernelBitcode file;
  std::string name;
  jit::ToldOfKernel told;
};

// How kernels of one shape are launched.
class Shape {
 public:
  virtual ~Shape() = default;
  virtual std::vector<HandleInfo> handles() const = 0;
  virtual AsyncValueRef<Chain> launch(Program& program, const AnyKernel& kernel, const Loop& loop,
                                      const FieldId* fields, const Arguments& arguments) const = 0;
  virtual std::string ptx(Program& program, const AnyKernel& kernel, const Loop& loop, const FieldId* fields,
                          const Arguments& arguments) const = 0;
};

// Null for a number that no shape has.
const Shape* find_shape(int number);
void add_shape(int number, std::unique_ptr<Shape> shape);

template <bool kTable, class Place, class... Handles>
class TypedShape final : public Shape {
 public:
  std::vector<HandleInfo> handles() const override {
    return {HandleInfo{Handles::kRole, sizeof(typename Handles::Value)}...};
  }
  AsyncValueRef<Chain> launch(Program& program, const AnyKernel& kernel, const Loop& loop,
                              const FieldId* fields, const Arguments& arguments) const override {
    return with(kernel, fields, arguments,
                [&](const auto& typed, const auto&... all) { return program.launch(typed, loop, all...); });
  }
  std::string ptx(Program& program, const AnyKernel& kernel, const Loop& loop, const FieldId* fields,
                  const Arguments& arguments) const override {
    return with(kernel, fields, arguments, [&](const auto& typed, const auto&... all) {
      return ProgramPtx::of(program, {.sm = 80}, typed, loop, all...);
    });
  }

 private:
  template <class Handle>
  static Handle bind(const FieldId* fields, uint32_t& next) {
    return Field<typename Handle::Value>{fields[next++], {}};
  }
  template <class Visit>
  static auto with(const AnyKernel& kernel, [[maybe_unused]] const FieldId* fields, const Arguments& a,
                   Visit&& visit) {
    [[maybe_unused]] uint32_t next = 0;
    const std::tuple<Handles...> bound{bind<Handles>(fields, next)...};
    using Typed = Kernel<typename Signature<kTable, Place, Handles...>::Type>;
    const Typed typed{&kernel.file, kernel.name, kernel.told.active_only, kernel.told.effects};
    return std::apply(
        [&](const auto&... handles) {
          if constexpr (std::is_same_v<Place, Item> || std::is_same_v<Place, Team>)
            return visit(typed, handles..., a.p0, a.p1, a.in_i, a.in_f, a.in_d, a.out_i, a.out_f, a.out_d);
          else if constexpr (kTable)
            return visit(typed, handles..., a.p0, a.p1, a.table);
          else
            return visit(typed, handles..., a.p0, a.p1);
        },
        bound);
  }
};

}  // namespace coppice::kernel_fuzz
