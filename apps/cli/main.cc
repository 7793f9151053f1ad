// The `coppice` program: Ctrl-C handling around the command line of apps/cli/commands.h.
#include <iostream>

#include "apps/cli/commands.h"
#include "core/stop_signals.h"

int main(int argc, char** argv) {
  const coppice::StopSignals signals;
  return coppice::cli::run_cli(argc, argv, std::cout, std::cerr, coppice::cli::make_cli_hooks(),
                               signals.requested());
}
