// Ranks of which one dies, for mpi_death_test.py. `kill`: rank 1 is killed while others wait for it. `stuck`:
// rank 0 stays away from the end of a transport, and takes nothing.
#include <csignal>
#include <cstdio>
#include <cstring>

#include "core/error.h"
#include "executor/remote/mpi/mpi_session.h"
#include "tests/remote/mpi/mpi_member.h"

namespace coppice::executor::remote {
namespace {

void run_kill() {
  MpiMember me({.end_timeout = 1s}, {.first_retry = 100ms, .most_sends = 5});
  const auto object = me.worker.remote<int32_t>(1, me.callee("add"), 1, 2);
  const auto first = object.to_here();
  wait(first);
  std::printf("rank %u: before %d\n", me.self(), first.get());
  std::fflush(stdout);
  MpiMember::wait_all();
  if (me.self() == 1) std::raise(SIGKILL);
  const auto never = me.worker.rpc_async<int32_t>(1, me.callee("never"));
  const auto again = object.to_here();
  const auto text = me.worker.rpc_async<std::string>(1, me.callee("long_text"), 1000);
  wait(never);
  wait(again);
  wait(text);
  for (const Error& e : {never.error(), again.error(), text.error()})
    std::printf("rank %u: %s: %s\n", me.self(), name_of(e.code()), e.what());
  // The others are there for each other still, and none leaves before it was told.
  const WorkerId other = me.self() == 0 ? 2 : 0;
  const auto sum = me.worker.rpc_async<int32_t>(other, me.callee("add"), 20, 3);
  wait(sum);
  const auto tells = me.worker.rpc_async<int32_t>(other, me.callee("tell"));
  wait(tells);
  wait(me.is_told);
  std::printf("rank %u: after %d\n", me.self(), sum.is_error() || tells.is_error() ? -1 : sum.get());
  std::fflush(stdout);
  me.never.set_error(Error(ErrorCode::kCancelled, "the end"));
  me.host->queue()->wait_idle();
  const auto closed = me.worker.shutdown();
  wait(closed);
}

void run_stuck() {
  auto transport = std::make_unique<MpiTransport>(MPI_COMM_WORLD, MpiTransportOptions{.end_timeout = 300ms});
  if (transport->rank() != 0) {
    for (int i = 0; i < 5000; ++i) transport->send(0, Bytes(i % 2 == 0 ? 20'000 : 100));
    transport->wait(1ms);
    std::printf("rank %u: lost %d\n", transport->rank(), static_cast<int>(transport->counts().lost > 0));
    transport.reset();
    std::printf("rank %u: abandoned %d\n", static_cast<unsigned>(MpiSession().rank()),
                MpiTransport::n_abandoned());
  }
  MpiMember::wait_all();
  transport.reset();
}

}  // namespace

int run(const char* what) {
  const MpiSession session;
  try {
    std::strcmp(what, "kill") == 0 ? run_kill() : run_stuck();
  } catch (const Error& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
  return 0;
}

}  // namespace coppice::executor::remote

int main(int argc, char** argv) { return argc == 2 ? coppice::executor::remote::run(argv[1]) : 2; }
