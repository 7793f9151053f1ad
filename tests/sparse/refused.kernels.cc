// Kernels that LLVM 19 cannot compile for a GPU, for the CPU, or for both: most end the process unless
// refused before. coppice-kernelgen refuses nearly all of them, so these are built without it.
#include "coppice/kernel.h"

using namespace coppice;

#pragma clang diagnostic ignored "-Wvla-cxx-extension"
#pragma clang diagnostic ignored "-Watomic-alignment"

COPPICE_KERNEL(fence, Item i, int* out)
{
  out[i.index] = 1;
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  out[i.index] += 1;
}
COPPICE_KERNEL(load_acquire, Item i, int* out)
{ out[i.index] = __atomic_load_n(out + 1, __ATOMIC_ACQUIRE); }
COPPICE_KERNEL(store_release, Item i, int* out)
{ __atomic_store_n(out + i.index, 1, __ATOMIC_RELEASE); }
COPPICE_KERNEL(add_in_order, Item i, int* out)
{ __atomic_fetch_add(out + i.index % 2, 1, __ATOMIC_SEQ_CST); }
COPPICE_KERNEL(long_double, Item i, double* out)
{
  const long double a = out[i.index];
  out[i.index] = static_cast<double>(a * a + 1.5L);
}
COPPICE_KERNEL(double_of_128_bits, Item i, double* out, uint64_t n)
{ out[i.index] = static_cast<double>(static_cast<unsigned __int128>(n + i.index) * n); }
COPPICE_KERNEL(x86_assembly, Item i, int* out)
{
  __asm__ volatile("pause" ::: "memory");
  out[i.index] = 1;
}
static void add_to_itself(float& a) { __asm__ volatile("addss %0, %0" : "+x"(a)); }
COPPICE_KERNEL(x86_register, Item i, float* out)
{ add_to_itself(out[i.index]); }
typedef float Vec16 __attribute__((vector_size(64)));
__attribute__((target("avx512f"))) static void wide_sqrt(Vec16* p) { *p = __builtin_ia32_sqrtps512(*p, 8); }
COPPICE_KERNEL(wide_vectors, Item i, float* out)
{ wide_sqrt(reinterpret_cast<Vec16*>(out + 16 * i.index)); }
// Other compilers' headers do this: they call LLVM's intrinsics by name.
extern "C" unsigned gpu_thread() __asm__("llvm.nvvm.read.ptx.sreg.tid.x");
COPPICE_KERNEL(gpu_register, Item i, unsigned* out)
{ out[i.index] = gpu_thread(); }
extern "C" unsigned arm_crc(unsigned, unsigned) __asm__("llvm.aarch64.crc32b");
COPPICE_KERNEL(arm_instruction, Item i, unsigned* out)
{ out[i.index] = arm_crc(out[i.index], 1); }
static thread_local int g_per_thread;
COPPICE_KERNEL(per_thread, Item i, int* out)
{ out[i.index] = ++g_per_thread; }
[[gnu::noinline]] static int ackermann(int m, int n) {
  if (m == 0) return n + 1;
  return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
COPPICE_KERNEL(recursive, Item i, int* out)
{ out[i.index] = ackermann(out[0], out[1]); }
static int twice(int n) { return 2 * n; }
static int thrice(int n) { return 3 * n; }
static int square(int n) { return n * n; }
COPPICE_KERNEL(unknown_callee, Item i, int* out)
{
  constexpr int (*kChoices[])(int) = {twice, thrice, square};
  out[i.index] = kChoices[out[i.index] % 3](out[0]);
}
extern int coppice_test_missing_global;
COPPICE_KERNEL(missing_global, Item i, int* out)
{ out[i.index] = coppice_test_missing_global; }
static int last_of(int n, const int* p) {
  volatile int scratch[n];
  for (int k = 0; k < n; ++k) scratch[k] = p[k];
  return scratch[p[0]];
}
COPPICE_KERNEL(array_of_any_size, Item i, int* out)
{ out[i.index] = last_of(out[1], out); }
COPPICE_KERNEL(computed_goto, Item i, int* out)
{
  static void* const kWhere[] = {&&a, &&b, &&c};
  goto* kWhere[out[i.index] % 3];
a:
  out[0] = 1;
b:
  out[1] += 2;
  return;
c:
  out[2] = 3;
  goto* kWhere[out[i.index + 1] % 2];
}
COPPICE_KERNEL(clear_cache, Item i, char* out)
{ __builtin___clear_cache(out, out + i.index); }
COPPICE_KERNEL(atomic_128_bits, Item i, __int128* out)
{
  __int128 a = 1;
  __atomic_store(out + i.index, &a, __ATOMIC_RELAXED);
}
COPPICE_KERNEL(string_length, Item i, char* out)
{ out[i.index] = static_cast<char>(__builtin_strlen(out)); }

extern "C" int coppice_test_missing_function(int);
COPPICE_KERNEL(calls_what_nobody_defines, Item i, int* out)
{ out[i.index] = coppice_test_missing_function(1); }

// These look alike and are supported: the guard must not refuse them.
COPPICE_KERNEL(dead_code, Item i, int* out)
{
  constexpr bool kFenced = false;
  if (kFenced) __atomic_thread_fence(__ATOMIC_ACQUIRE);
  out[i.index] = 1;
}
COPPICE_KERNEL(relaxed_atomics, Item i, int* out, unsigned char* bytes)
{
  __atomic_fetch_add(out + __atomic_load_n(out, __ATOMIC_RELAXED) % 2, 1, __ATOMIC_RELAXED);
  unsigned char expected = 1;
  __atomic_compare_exchange_n(bytes + i.index, &expected, 2, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
COPPICE_KERNEL(compiler_barrier, Item i, int* out)
{
  out[i.index] = 1;
  __asm__ volatile("" ::: "memory");
  out[i.index] += 1;
}
COPPICE_KERNEL(integers_of_128_bits, Item i, uint64_t* out)
{ out[i.index] = static_cast<uint64_t>((static_cast<unsigned __int128>(out[0]) * out[1]) >> 64); }
[[gnu::noinline]] static int tail(int n, int sum) { return n == 0 ? sum : tail(n - 1, sum + n); }
COPPICE_KERNEL(recursion_that_is_a_loop, Item i, int* out)
{ out[i.index] = tail(out[0], 0); }
[[gnu::noinline]] static int sum(int n, ...) {
  __builtin_va_list list;
  __builtin_va_start(list, n);
  int total = 0;
  for (int k = 0; k < n; ++k) total += __builtin_va_arg(list, int);
  __builtin_va_end(list);
  return total;
}
COPPICE_KERNEL(variadic, Item i, int* out)
{ out[i.index] = sum(out[0], 1, 2, 3); }
COPPICE_KERNEL(bits, Item i, unsigned* out)
{ out[i.index] = static_cast<unsigned>(__builtin_popcount(out[i.index]) + __builtin_clz(out[i.index] | 1)); }
