// The functions that C's headers put beside everybody's: a kernel in no namespace cannot have their names,
// since the constant by which the host knows it (coppice::Kernel) would. Part of coppice-kernelgen.
#pragma once
#include <string_view>

namespace coppice::kernelgen {

// Tells whether <math.h>, <stdlib.h>, <stdio.h>, <string.h>, <strings.h>, <time.h>, <ctype.h> or <signal.h>,
// which the library's headers include, declare a function `name`.
bool is_name_of_c(std::string_view name);

}  // namespace coppice::kernelgen
