// One launch of a generated kernel, whatever its handles: the types come back from the shape's number
// (shapes.py).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "sparse/program.h"

namespace coppice::kernel_fuzz {

// What a kernel is given besides its fields.
struct Arguments {
  int32_t p0;
  float p1;
  const int32_t* table;  // of 16 integers, in the device's memory
  // Items only: arrays of the device, one value per item.
  const int32_t* in_i;
  const float* in_f;
  const double* in_d;
  int32_t* out_i;
  float* out_f;
  double* out_d;
};

struct HandleInfo {
  Role role;
  uint32_t bytes;
};

// How kernels of one shape are launched; `kernel` is a Kernel<...> constant of a loaded batch.
class Shape {
 public:
  virtual ~Shape() = default;
  virtual std::vector<HandleInfo> handles() const = 0;
  virtual AsyncValueRef<Chain> launch(Program& program, const void* kernel, const Loop& loop,
                                      const FieldId* fields, const Arguments& arguments) const = 0;
  virtual std::string ptx(Program& program, const void* kernel, const Loop& loop, const FieldId* fields,
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
  AsyncValueRef<Chain> launch(Program& program, const void* kernel, const Loop& loop, const FieldId* fields,
                              const Arguments& arguments) const override {
    return with(kernel, fields, arguments,
                [&](const auto& typed, const auto&... all) { return program.launch(typed, loop, all...); });
  }
  std::string ptx(Program& program, const void* kernel, const Loop& loop, const FieldId* fields,
                  const Arguments& arguments) const override {
    return with(kernel, fields, arguments, [&](const auto& typed, const auto&... all) {
      return program.ptx({.sm = 80}, typed, loop, all...);
    });
  }

 private:
  template <class Handle>
  static Handle bind(const FieldId* fields, uint32_t& next) {
    return Field<typename Handle::Value>{fields[next++], {}};
  }
  template <class Visit>
  static auto with(const void* kernel, [[maybe_unused]] const FieldId* fields, const Arguments& a,
                   Visit&& visit) {
    [[maybe_unused]] uint32_t next = 0;
    const std::tuple<Handles...> bound{bind<Handles>(fields, next)...};
    return std::apply(
        [&](const auto&... handles) {
          if constexpr (std::is_same_v<Place, Item>) {
            using Typed = Kernel<void(Handles..., Place, int32_t, float, const int32_t*, const float*,
                                      const double*, int32_t*, float*, double*)>;
            return visit(*static_cast<const Typed*>(kernel), handles..., a.p0, a.p1, a.in_i, a.in_f, a.in_d,
                         a.out_i, a.out_f, a.out_d);
          } else if constexpr (kTable) {
            using Typed = Kernel<void(Handles..., Place, int32_t, float, const int32_t*)>;
            return visit(*static_cast<const Typed*>(kernel), handles..., a.p0, a.p1, a.table);
          } else {
            using Typed = Kernel<void(Handles..., Place, int32_t, float)>;
            return visit(*static_cast<const Typed*>(kernel), handles..., a.p0, a.p1);
          }
        },
        bound);
  }
};

}  // namespace coppice::kernel_fuzz
