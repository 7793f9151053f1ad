// COPPICE_KERNEL defines a kernel in a kernel file, COPPICE_KERNEL_2D_3D one for 2 and one for 3 dimensions,
// COPPICE_KERNEL_OF makes one of a function.
//
// Device-clean.
#pragma once
#include "sparse/device/loops.h"

// Defines a kernel: `void name(arguments...)`, run once per item of its launch. Exactly one argument is a
// Cell<D> (active cells of a node), a Block<D> or BlockTeam<D, kBytes> (containers of a node), an Entry<D>
// (elements of a dynamic node's lists), an Item (a range), a GridItem<D> (a range of two or three dimensions)
// or a Team (a range whose items the threads of a GPU's thread block share); arguments that are handles or
// structs of handles are bound to fields, all others are plain values. The generated header declares it for
// the host.
//
// Two kernels of a file have two names, also in two namespaces: the program looks the entry up by it. Other
// functions of the name, such as C's, are told apart by the arguments.
#define COPPICE_KERNEL(name, ...)                                                              \
  static_assert(__builtin_strcmp(#name, "main") != 0,                                          \
                "a kernel cannot be called main; give it another name");                       \
  static void name(__VA_ARGS__);                                                               \
  COPPICE_KERNEL_ENTRY(name, static_cast<void (*)(__VA_ARGS__)>(&name), void (*)(__VA_ARGS__)) \
  [[gnu::always_inline]] static inline void name(__VA_ARGS__)

// Defines two kernels, name_2d and name_3d, with one body: a template in which D is 2 or 3.
//
//     COPPICE_KERNEL_2D_3D(scale, Update<float> x, Cell<D> cell, float by) { x[cell] *= by; }
//
// On the host, scale<D> is scale_2d or scale_3d; messages and profiles have these names. Two kernels of a
// file have two names here, too. The declaration is inlined as the definition is: an instance takes its
// attributes from the one before it.
#define COPPICE_KERNEL_2D_3D(name, ...)                                         \
  static_assert(__builtin_strcmp(#name, "main") != 0,                           \
                "a kernel cannot be called main; give it another name");        \
  template <int D>                                                              \
  [[gnu::always_inline]] static inline void name(__VA_ARGS__);                  \
  extern "C" [[gnu::used]] const unsigned char coppice_kernel_2d_3d_##name = 1; \
  COPPICE_KERNEL_OF(name##_2d, name<2>)                                         \
  COPPICE_KERNEL_OF(name##_3d, name<3>)                                         \
  template <int D>                                                              \
  [[gnu::always_inline]] static inline void name(__VA_ARGS__)

// Makes a kernel of a function that stands above, which may be one of a template's:
//
//     template <class T>
//     COPPICE_INLINE void scale(Update<T> x, Cell2 cell, T by) { x[cell] *= by; }
//     COPPICE_KERNEL_OF(scale_floats, scale<float>)
//     COPPICE_KERNEL_OF(scale_doubles, scale<double>)
//
// The host names it by the first argument, in the function's namespace.
#define COPPICE_KERNEL_OF(name, ...) COPPICE_KERNEL_ENTRY(name, &__VA_ARGS__, decltype(&__VA_ARGS__))

// Makes the entry that the program looks up, and the constant by which two kernels of a name are refused.
#define COPPICE_KERNEL_ENTRY(name, ...)                                                                  \
  extern "C" [[gnu::used]] const uint32_t coppice_only_kernel_in_this_file_with_the_name_##name =        \
      coppice::device::Runner<__VA_ARGS__>::kArgumentLayout;                                             \
  extern "C" [[gnu::used]] void coppice_kernel_##name(const coppice::LaunchBlock* block, uint64_t begin, \
                                                      uint64_t end) {                                    \
    coppice::device::Runner<__VA_ARGS__>::run(block, begin, end);                                        \
  }

// Does the same with fast instead of precise math in the kernel and in what it calls. On every device sums
// and products may be reordered, x / y may become x * (1 / y), and the sign of a zero may be lost; NaNs
// and infinities stay what they are. On a GPU, for floats, denormals are also zero, and division, square
// root and functions are the hardware's, a few ulp off (docs/nvptx.md has a table). Functions of doubles
// are exact as ever.
#define COPPICE_KERNEL_FAST_MATH(name, ...)                                  \
  extern "C" [[gnu::used]] const unsigned char coppice_fast_math_##name = 1; \
  COPPICE_KERNEL(name, __VA_ARGS__)
