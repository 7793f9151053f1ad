// What the portable bundle has in bin/: starts the program of its own name in ../libexec, with a C library and a C++
// runtime that suffice.
//
// The bundle carries both as it was built with them. A system with the same ones or newer ones must use its own: graphics
// drivers that the program loads may need them. No loader path says "only if there is no better", so this does.
//
// An older C library cannot be had by a path alone, since the loader is a part of it: the bundle's loader is started,
// and told what to run. This file itself must start with any C library, so it names no symbol newer than glibc 2.28:
// a test reads their versions.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The default versions of these are of glibc 2.34, in which they moved from libdl to libc or changed how programs start.
__asm__(".symver dlopen, dlopen@GLIBC_2.2.5");
__asm__(".symver dlvsym, dlvsym@GLIBC_2.2.5");
__asm__(".symver __libc_start_main, __libc_start_main@GLIBC_2.2.5");

// This does what crt1.o does, whose reference to __libc_start_main has its newest version. No function of ours runs before main()
// or at exit, so both tables are null.
__asm__(
    ".globl _start\n"
    ".type _start, @function\n"
    "_start:\n"
    "  xorl %ebp, %ebp\n"
    "  movq %rdx, %r9\n"  // what the loader wants called at exit
    "  popq %rsi\n"       // argc
    "  movq %rsp, %rdx\n"  // argv
    "  andq $-16, %rsp\n"
    "  pushq %rax\n"
    "  pushq %rsp\n"  // the end of the stack
    "  xorl %r8d, %r8d\n"
    "  xorl %ecx, %ecx\n"
    "  leaq main(%rip), %rdi\n"
    "  call *__libc_start_main@GOTPCREL(%rip)\n"
    "  hlt\n");

// Returns whether the system's C library is of the version that the bundle was built with, or newer.
static int system_libc_suffices(void) {
  int major = 0, minor = 0;
  if (sscanf(gnu_get_libc_version(), "%d.%d", &major, &minor) != 2) return 0;
  return major > __GLIBC__ || (major == __GLIBC__ && minor >= __GLIBC_MINOR__);
}

// The newest version that g++ 12's library has, by one symbol of it.
static int system_runtime_suffices(void) {
  void* library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
  if (library == NULL || dlopen("libgcc_s.so.1", RTLD_LAZY | RTLD_LOCAL) == NULL) return 0;
  return dlvsym(library, "_ZNKSt11__timepunctIcE15_M_am_pm_formatEPPKc", "GLIBCXX_3.4.30") != NULL;
}

static int fail(const char* what, const char* path) {
  fprintf(stderr, "coppice: error: %s %s: %s\n", what, path, strerror(errno));
  return 1;
}

int main(int argc, char** argv) {
  char self[PATH_MAX], path[2 * PATH_MAX], loader[2 * PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length < 0) return fail("cannot read", "/proc/self/exe");
  self[length] = '\0';
  for (int level = 0; level < 2; ++level) {  // up from <bundle>/libexec/launcher
    char* slash = strrchr(self, '/');
    if (slash != NULL) *slash = '\0';
  }
  const char* slash = strrchr(argv[0], '/');
  snprintf(path, sizeof path, "%s/libexec/%s", self, slash != NULL ? slash + 1 : argv[0]);

  const int needs_loader = !system_libc_suffices();
  if (!needs_loader && system_runtime_suffices()) {
    execv(path, argv);
    return fail("cannot start", path);
  }
  const char* before = getenv("LD_LIBRARY_PATH");
  const int has = before != NULL && before[0] != '\0';
  char* paths = NULL;
  if (asprintf(&paths, "%s%s%s/lib/coppice/runtime%s%s", needs_loader ? self : "", needs_loader ? "/lib/coppice/glibc:" : "",
               self, has ? ":" : "", has ? before : "") < 0)
    return fail("no memory for", "LD_LIBRARY_PATH");
  if (!needs_loader) {
    if (setenv("LD_LIBRARY_PATH", paths, 1) != 0) return fail("cannot set", "LD_LIBRARY_PATH");
    execv(path, argv);
    return fail("cannot start", path);
  }
  // The path is not in the environment: programs of the system that this one starts have the system's loader, which
  // cannot load this C library.
  snprintf(loader, sizeof loader, "%s/lib/coppice/glibc/ld-linux-x86-64.so.2", self);
  char** arguments = calloc((size_t)argc + 6, sizeof *arguments);
  if (arguments == NULL) return fail("no memory for", "arguments");
  char* first[] = {loader, "--argv0", argv[0], "--library-path", paths, path};
  memcpy(arguments, first, sizeof first);
  memcpy(arguments + 6, argv + 1, (size_t)argc * sizeof *arguments);  // with the null at their end
  execv(loader, arguments);
  return fail("cannot start", loader);
}
