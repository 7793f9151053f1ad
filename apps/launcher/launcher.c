// What the portable bundle has in bin/: starts the program of its own name in ../libexec, with a C++ runtime that suffices.
//
// The bundle carries the C++ runtime that it was built with. A system with the same one or a newer one must use its own:
// graphics drivers that the program loads may need it. No loader path says "only if there is no better", so this does.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
  (void)argc;
  char self[PATH_MAX], path[2 * PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length < 0) return fail("cannot read", "/proc/self/exe");
  self[length] = '\0';
  for (int level = 0; level < 2; ++level) {  // up from <bundle>/libexec/launcher
    char* slash = strrchr(self, '/');
    if (slash != NULL) *slash = '\0';
  }
  if (!system_runtime_suffices()) {
    const char* before = getenv("LD_LIBRARY_PATH");
    const int has = before != NULL && before[0] != '\0';
    char* paths = NULL;
    if (asprintf(&paths, "%s/lib/coppice/runtime%s%s", self, has ? ":" : "", has ? before : "") < 0 ||
        setenv("LD_LIBRARY_PATH", paths, 1) != 0)
      return fail("cannot set", "LD_LIBRARY_PATH");
  }
  const char* slash = strrchr(argv[0], '/');
  snprintf(path, sizeof path, "%s/libexec/%s", self, slash != NULL ? slash + 1 : argv[0]);
  execv(path, argv);
  return fail("cannot start", path);
}
