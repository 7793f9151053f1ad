// The names of C's functions (see c_names.h).
#include "gpu/jit/c_names.h"

#include <algorithm>

#include "gpu/jit/library_symbols.h"

namespace coppice::kernelgen {
namespace {

// The names of <math.h> are the runtime's own list.
constexpr std::string_view kOthers[] = {
    "abort",       "abs",      "aligned_alloc", "asctime",    "at_quick_exit", "atexit",   "atof",
    "atoi",        "atol",     "atoll",         "bcmp",       "bcopy",         "bsearch",  "bzero",
    "calloc",      "clearerr", "clock",         "ctime",      "difftime",      "div",      "drand48",
    "erand48",     "exit",     "fclose",        "feof",       "ferror",        "fflush",   "ffs",
    "fgetc",       "fgetpos",  "fgets",         "fopen",      "fprintf",       "fputc",    "fputs",
    "fread",       "free",     "freopen",       "fscanf",     "fseek",         "fsetpos",  "ftell",
    "fwrite",      "getc",     "getchar",       "getenv",     "getline",       "gmtime",   "index",
    "isalnum",     "isalpha",  "isblank",       "iscntrl",    "isdigit",       "isgraph",  "islower",
    "isprint",     "ispunct",  "isspace",       "isupper",    "isxdigit",      "kill",     "labs",
    "ldiv",        "llabs",    "lldiv",         "localtime",  "lrand48",       "malloc",   "mblen",
    "mbstowcs",    "mbtowc",   "memchr",        "memcmp",     "memcpy",        "memmove",  "memset",
    "mktime",      "mrand48",  "nanosleep",     "perror",     "printf",        "putc",     "putchar",
    "putenv",      "puts",     "qsort",         "quick_exit", "raise",         "rand",     "random",
    "realloc",     "remove",   "rename",        "rewind",     "rindex",        "scanf",    "select",
    "setbuf",      "setenv",   "setvbuf",       "sigaction",  "signal",        "snprintf", "sprintf",
    "srand",       "srandom",  "sscanf",        "strcasecmp", "strcat",        "strchr",   "strcmp",
    "strcoll",     "strcpy",   "strcspn",       "strdup",     "strerror",      "strftime", "strlen",
    "strncasecmp", "strncat",  "strncmp",       "strncpy",    "strndup",       "strpbrk",  "strrchr",
    "strsignal",   "strspn",   "strstr",        "strtod",     "strtof",        "strtok",   "strtol",
    "strtold",     "strtoll",  "strtoul",       "strtoull",   "strxfrm",       "system",   "time",
    "tmpfile",     "tmpnam",   "tolower",       "toupper",    "tzset",         "ungetc",   "unsetenv",
    "vfprintf",    "vfscanf",  "vprintf",       "vscanf",     "vsnprintf",     "vsprintf", "vsscanf",
    "wcstombs",    "wctomb"};

}  // namespace

bool is_name_of_c(std::string_view name) {
  const auto is_it = [&](const jit::LibrarySymbol& symbol) { return symbol.name == name; };
  const auto symbols = jit::library_symbols();
  return std::binary_search(std::begin(kOthers), std::end(kOthers), name) ||
         std::any_of(symbols.begin(), symbols.end(), is_it);
}

}  // namespace coppice::kernelgen
