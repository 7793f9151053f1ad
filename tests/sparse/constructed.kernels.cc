// A kernel file with a global that only code can initialise, which nobody would run.
#include "coppice/kernel.h"

using namespace coppice;

extern "C" int coppice_intrinsic_of_nobody(int);
static int g_table = coppice_intrinsic_of_nobody(1);
COPPICE_KERNEL(constructed, Item i, int* out)
{ out[i.index] = g_table++; }
COPPICE_KERNEL(not_constructed, Item i, int* out)
{ out[i.index] = 1; }
