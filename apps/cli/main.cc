// The `coppice` program: Ctrl-C handling around the command line of apps/cli/commands.h.
#include <csignal>
#include <iostream>

#include "apps/cli/commands.h"
#include "core/stop_signals.h"

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file above the user's limit is an error of the write, with a message
  const coppice::StopSignals signals;
  return coppice::cli::run_cli(argc, argv, std::cout, std::cerr, coppice::cli::make_cli_hooks(),
                               signals.requested());
}
