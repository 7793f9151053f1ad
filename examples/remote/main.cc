// Each rank of an MPI program keeps a strip of numbers; ranks multiply their strip with a neighbour's, which
// they are lent by reference: `remote --ranks 4`, or `mpirun -n 4 remote`.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "executor/builtin_operations.h"
#include "executor/remote/mpi/mpi_session.h"
#include "executor/remote/mpi/mpi_transport.h"
#include "executor/remote/worker.h"
#include "executor/text.h"
using namespace coppice;
using namespace coppice::executor;
using namespace coppice::executor::remote;

using Strip = std::vector<float>;
constexpr int kStrip = 1000;  // numbers on each rank

// Every rank loads the same functions: code does not travel.
constexpr const char* kFunctions = R"(
  func @make(%first: i32) -> strip { %s = make (%first) return %s }
  func @product(%mine: remote.strip, %next: remote.strip) -> f64 {
    %a = fetch (%mine)
    %b = fetch (%next)
    %p = product (%a, %b)
    return %p
  }
)";

Strip make(int32_t first) {
  Strip strip(kStrip);
  for (int i = 0; i < kStrip; ++i) strip[i] = std::sin(0.001f * static_cast<float>(first + i));
  return strip;
}

double product(const Strip& a, const Strip& b) {
  double sum = 0;
  for (int i = 0; i < kStrip; ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

void add_operations(Registry& registry) {
  registry.add_type<Strip>("strip");
  registry.add_type<RemoteRef<Strip>>("remote.strip");
  registry.add("make", make);
  registry.add("product", product);
  registry.add("fetch", [](const RemoteRef<Strip>& strip) { return strip.to_here(); });
}

Codecs make_codecs() {
  Codecs codecs;
  codecs.add<Strip>(
      "strip", [](const Strip& strip, Writer& out) { out.bytes(std::as_bytes(std::span(strip))); },
      [](Reader& in) {
        const auto bytes = in.bytes();
        if (bytes.size() != kStrip * sizeof(float)) in.fail("a strip of another length");
        Strip strip(kStrip);
        std::memcpy(strip.data(), bytes.data(), bytes.size());
        return strip;
      });
  codecs.add_remote<Strip>();
  return codecs;
}

// Rank 0 gives the work out; every rank's function runs beside its own strip.
bool multiply_everywhere(Worker& worker, int n_ranks, const Hash128& module) {
  std::vector<RemoteRef<Strip>> strips;
  for (int rank = 0; rank < n_ranks; ++rank)
    strips.push_back(worker.remote<Strip>(static_cast<WorkerId>(rank), {module, "make"}, rank * kStrip));
  std::vector<AsyncValueRef<double>> products;
  for (int rank = 0; rank < n_ranks; ++rank)
    products.push_back(worker.rpc_async<double>(static_cast<WorkerId>(rank), {module, "product"},
                                                strips[rank], strips[(rank + 1) % n_ranks]));
  bool is_right = true;
  for (int rank = 0; rank < n_ranks; ++rank) {
    wait(products[rank]);
    if (products[rank].is_error()) throw products[rank].error();
    const double expected = product(make(rank * kStrip), make((rank + 1) % n_ranks * kStrip));
    std::printf("rank %d: %.6f, error %.1e\n", rank, products[rank].get(), products[rank].get() - expected);
    is_right = is_right && products[rank].get() == expected;
  }
  return is_right;
}

bool run_rank() {
  const MpiSession session;
  Registry registry;
  add_builtin_operations(registry);
  add_operations(registry);

  MpiTransport transport(session.world());
  const SteadyClock clock;
  const auto host = make_intrusive<Host>(WorkQueue::create({.threads = 2}));
  Worker worker({.protocol = {.self = transport.rank(),
                              .n_workers = transport.n_ranks(),
                              .session = transport.session()}},
                transport, clock, host, make_codecs());
  const Hash128 module = worker.add_module(LoadedModule::load(parse(kFunctions), registry));
  const ProgressThread progress(worker, transport, clock);

  const bool is_right =
      transport.rank() != 0 || multiply_everywhere(worker, static_cast<int>(transport.n_ranks()), module);
  MPI_Barrier(session.world());  // nobody leaves before rank 0 has all that it asked for
  host->queue()->wait_idle();
  wait(worker.shutdown());
  host->queue()->shutdown(WorkQueue::Shutdown::kDrain);
  return is_right;
}

int main(int argc, char** argv) {
  const bool starts_ranks = argc == 3 && std::string_view(argv[1]) == "--ranks" && std::atoi(argv[2]) > 0;
  if (argc != 1 && !starts_ranks) {
    std::puts("usage: remote --ranks N | mpirun -n N remote");
    return 2;
  }
  try {
    if (starts_ranks && !is_mpi_rank()) start_ranks(std::atoi(argv[2]), argv);
    return run_rank() ? 0 : 1;
  } catch (const Error& error) {
    std::fprintf(stderr, "remote: %s\n", error.what());
    return 1;
  }
}
