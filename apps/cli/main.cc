// The `coppice` program: Ctrl-C handling around the command line of apps/cli/commands.h.
#include <csignal>
#include <iostream>

#include "apps/cli/commands.h"

namespace {

std::atomic<bool> g_stop{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

extern "C" void request_stop(int) { g_stop.store(true, std::memory_order_relaxed); }

// The first Ctrl-C lets the frame finish; SA_RESETHAND makes the second one end the program at once.
void install_stop_handler() {
  struct sigaction action = {};
  action.sa_handler = request_stop;
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  install_stop_handler();
  return coppice::cli::run_cli(argc, argv, std::cout, std::cerr, coppice::cli::make_cli_hooks(), g_stop);
}
