// Embeds bitcode as coppice-kernelgen would, had it not refused the files (see refused_bitcode.h).
#include "tests/sparse/refused_bitcode.h"

#define COPPICE_EMBED(name, bytes)                                                                     \
  asm(".section .rodata,\"a\"\n.balign 16\n.local " #name "_begin\n" #name "_begin:\n.incbin \"" bytes \
      "\"\n"                                                                                           \
      ".local " #name "_end\n" #name "_end:\n.byte 0\n.previous\n");                                   \
  extern "C" const std::byte name##_begin[], name##_end[];                                             \
  const coppice::KernelBitcode name##_kernels{#name, #name ".kernels.cc", {name##_begin, name##_end}};

COPPICE_EMBED(refused, COPPICE_REFUSED_BITCODE)
COPPICE_EMBED(constructed, COPPICE_CONSTRUCTED_BITCODE)
