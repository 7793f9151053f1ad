// The ranks of the benchmark `remote`, which mpiexec starts:
//
//   coppice-bench-ranks threads|driven latency|flow|share ROUNDS CALLS
//
// `threads`: each rank has its main thread, a progress thread and one of its queue; `driven`: the main thread
// does it all (executor/remote/driver.h).
//
// Rank 0 prints a line for each row: name, the medians of ours and the peer's, the best of both, packets and
// bytes of ours for each call, bytes of each of the peer's messages; times in microseconds, rates per second.
//
// The peer is bare MPI: the main threads of the same ranks send messages along the same way, as long as our
// packets are on the average, in turns with ours. While ours are measured the main threads of the other ranks
// sleep, and while the peer is, our progress threads do.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "core/count_down.h"
#include "executor/builtin_operations.h"
#include "executor/remote/driver.h"
#include "executor/remote/mpi/mpi_session.h"
#include "executor/remote/mpi/mpi_transport.h"
#include "executor/remote/worker.h"
#include "executor/text.h"

namespace coppice::bench {
namespace {

using namespace executor;
using namespace executor::remote;
using namespace std::chrono_literals;

constexpr int kData = 1;  // a tag
constexpr int32_t kTextBytes = 1'000'000;
constexpr int kWindow = 64;  // of the peer's messages under way

double microseconds_now() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Tells the other ranks what to do for the peer.
struct Order {
  enum class What : int { kEcho, kFlow, kRing, kReply, kEnd } what;
  int n, bytes;
};

class Member {
 public:
  explicit Member(bool is_driven)
      : transport(MPI_COMM_WORLD),
        driven_queue(is_driven ? make_intrusive<DrivenQueue>(transport) : nullptr),
        host(make_intrusive<Host>(is_driven ? IntrusivePtr<WorkQueue>(driven_queue)
                                            : WorkQueue::create({.threads = 1}))),
        worker({.protocol = {.self = transport.rank(),
                             .n_workers = transport.n_ranks(),
                             .session = transport.session()}},
               transport, clock, host, codecs()) {
    add_builtin_operations(registry);
    registry.add_type<RemoteRef<int32_t>>("remote.i32");
    registry.add("fetch", [](const RemoteRef<int32_t>& r) { return r.to_here(); });
    registry.add("long_text", [](int32_t n) { return std::string(static_cast<size_t>(n), 'x'); });
    registry.add("order", [this](int32_t what, int32_t n, int32_t bytes) {
      order.emplace(Order{static_cast<Order::What>(what), n, bytes});
      return 0;
    });
    module = worker.add_module(LoadedModule::load(parse(R"(
      func @add(%a: i32, %b: i32) -> i32 { %c = add.i32 (%a, %b) return %c }
      func @fetch(%r: remote.i32) -> i32 { %v = fetch (%r) return %v }
      func @order(%w: i32, %n: i32, %b: i32) -> i32 { %v = order (%w, %n, %b) return %v }
      func @long_text(%n: i32) -> string { %s = long_text (%n) return %s })"),
                                                  registry));
    MPI_Barrier(MPI_COMM_WORLD);
    if (is_driven) {
      driver.emplace(worker, transport, clock, *driven_queue);
    } else {
      progress.emplace(worker, transport, clock);
    }
  }
  ~Member() {
    host->queue()->wait_idle();
    const auto closed = worker.shutdown();
    wait(closed);
    host->queue()->shutdown(WorkQueue::Shutdown::kDrain);
    progress.reset();
  }
  template <class T>
  void wait(const AsyncValueRef<T>& value) {
    if (driver) return driver->wait(value);
    coppice::wait(value);
  }
  Order wait_order() {
    wait(ordered);
    const Order next = ordered.get();
    order = make_promise<Order>();
    ordered = order.value();
    return next;
  }
  Callee callee(const char* function) const { return {module, function}; }

  MpiTransport transport;
  const SteadyClock clock;
  IntrusivePtr<DrivenQueue> driven_queue;  // null: a ProgressThread's worker
  IntrusivePtr<Host> host;
  Registry registry;
  Worker worker;
  Hash128 module;
  Promise<Order> order = make_promise<Order>();  // from rank 0
  AsyncValueRef<Order> ordered = order.value();
  std::optional<ProgressThread> progress;
  std::optional<Driver> driver;

 private:
  static Codecs codecs() {
    Codecs codecs;
    codecs.add_remote<int32_t>();
    return codecs;
  }
};

// ---- the peer ----

// Ranks other than 0 are told by a call, and say when they are about to begin.
void order_all(Member& me, const Order& order) {
  for (WorkerId to = 1; to < me.transport.n_ranks(); ++to)
    me.wait(me.worker.rpc_async<int32_t>(to, me.callee("order"), static_cast<int32_t>(order.what),
                                         static_cast<int32_t>(order.n), static_cast<int32_t>(order.bytes)));
  MPI_Barrier(MPI_COMM_WORLD);
}

void send_data(const Bytes& bytes, int to) {
  MPI_Send(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, to, kData, MPI_COMM_WORLD);
}
void receive_data(Bytes& bytes, int from) {
  MPI_Recv(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, from, kData, MPI_COMM_WORLD,
           MPI_STATUS_IGNORE);
}

// Messages both ways, kWindow at a time, on both sides.
void flow_data(int n, const Bytes& bytes, int other) {
  Bytes incoming(bytes.size() * kWindow);
  std::vector<MPI_Request> requests;
  for (int i = 0; i < n; i += kWindow) {
    requests.assign(2 * kWindow, MPI_REQUEST_NULL);
    for (size_t j = 0; j < kWindow; ++j) {
      MPI_Irecv(incoming.data() + j * bytes.size(), static_cast<int>(bytes.size()), MPI_BYTE, other, kData,
                MPI_COMM_WORLD, &requests[2 * j]);
      MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, other, kData, MPI_COMM_WORLD,
                &requests[2 * j + 1]);
    }
    MPI_Waitall(2 * kWindow, requests.data(), MPI_STATUSES_IGNORE);
  }
}

void obey(const Order& order, WorkerId self) {
  Bytes bytes(static_cast<size_t>(order.bytes)), little(64);
  if (order.what == Order::What::kFlow) return flow_data(order.n, bytes, 0);
  for (int i = 0; i < order.n; ++i) {
    if (order.what == Order::What::kEcho) {
      receive_data(bytes, 0);
      send_data(bytes, 0);
    } else if (order.what == Order::What::kReply) {
      receive_data(little, 0);
      send_data(bytes, 0);
    } else if (self == 1) {  // the owner in the ring of a share
      receive_data(bytes, 2);
      send_data(bytes, 2);
    } else {
      receive_data(bytes, 0);
      send_data(bytes, 1);
      receive_data(bytes, 1);
      send_data(bytes, 0);
    }
  }
}

// Returns the microseconds that one of the peer's calls takes.
double time_peer(Member& me, const Order& order) {
  order_all(me, order);
  Bytes bytes(static_cast<size_t>(order.bytes)), little(64);
  const int next = order.what == Order::What::kRing ? 2 : 1;
  const double begin = microseconds_now();
  if (order.what == Order::What::kFlow) flow_data(order.n, bytes, 1);
  for (int i = 0; i < order.n && order.what != Order::What::kFlow; ++i) {
    send_data(order.what == Order::What::kReply ? little : bytes, next);
    receive_data(bytes, next);
  }
  return (microseconds_now() - begin) / order.n;
}

// ---- ours ----

void check(Member& me, const AsyncValueRef<int32_t>& value, int32_t expected) {
  me.wait(value);
  if (value.is_error()) throw value.error();
  if (value.get() != expected) throw Error(ErrorCode::kInternal, "a call has brought another's value");
}

struct Case {
  const char* name;
  Order::What peer;
  bool is_rate;  // of calls, or bytes, per second; else microseconds for a call
  double units;  // for each call
  std::function<void(Member& me, int n)> run;
};

const Case kLatency[] = {
    {"remote_to_here", Order::What::kEcho, false, 1,
     [](Member& me, int n) {
       for (int i = 0; i < n; ++i)
         check(me, me.worker.remote<int32_t>(1, me.callee("add"), i, 1).to_here(), i + 1);
     }},
    {"rpc_async", Order::What::kEcho, false, 1,
     [](Member& me, int n) {
       for (int i = 0; i < n; ++i) check(me, me.worker.rpc_async<int32_t>(1, me.callee("add"), i, 1), i + 1);
     }},
};
const Case kFlow[] = {
    {"calls", Order::What::kFlow, true, 1,
     [](Member& me, int n) {
       CountDown done(n);
       for (int i = 0; i < n; ++i) {
         const auto sum = me.worker.rpc_async<int32_t>(1, me.callee("add"), i, 1);
         sum.and_then([done]() mutable { done.count_down(); });
       }
       me.wait(done.chain());
     }},
    {"bytes_1MB", Order::What::kReply, true, kTextBytes,
     [](Member& me, int n) {
       // Two are under way, so that the next is on its way while one is decoded.
       std::vector<AsyncValueRef<std::string>> texts;
       for (int i = 0; i < n; ++i) {
         texts.push_back(me.worker.rpc_async<std::string>(1, me.callee("long_text"), kTextBytes));
         if (i == 0) continue;
         me.wait(texts[static_cast<size_t>(i - 1)]);
         texts[static_cast<size_t>(i - 1)].reset();
       }
       me.wait(texts.back());
     }},
};
const Case kShare[] = {
    {"share", Order::What::kRing, false, 1,
     [](Member& me, int n) {
       const auto object = me.worker.remote<int32_t>(1, me.callee("add"), 40, 2);
       for (int i = 0; i < n; ++i) check(me, me.worker.rpc_async<int32_t>(2, me.callee("fetch"), object), 42);
     }},
};

// Rank 0's packets, both ways.
struct Traffic {
  uint64_t packets = 0, bytes = 0;
};
Traffic traffic_of(const Member& me) {
  // The progress thread writes these; it is idle, or a packet off, when they are read.
  const auto& counts = me.transport.counts();
  return {counts.sent + counts.received, counts.sent_bytes + counts.received_bytes};
}

void measure(Member& me, const Case& c, int rounds, int calls) {
  c.run(me, calls);
  const Traffic before = traffic_of(me);
  c.run(me, calls);
  const Traffic after = traffic_of(me);
  const double packets = static_cast<double>(after.packets - before.packets) / calls;
  const double bytes = static_cast<double>(after.bytes - before.bytes) / calls;
  Order order{c.peer, calls, std::max(1, static_cast<int>(bytes / std::max(packets, 1e-9)))};
  if (c.peer == Order::What::kReply) order.bytes = kTextBytes;
  if (c.peer == Order::What::kFlow)
    order = {c.peer, (calls + kWindow - 1) / kWindow * kWindow, static_cast<int>(bytes / 2)};
  std::vector<double> ours, peers;
  for (int round = 0; round < rounds; ++round) {
    const double begin = microseconds_now();
    c.run(me, calls);
    ours.push_back((microseconds_now() - begin) / calls);
    peers.push_back(time_peer(me, order));
  }
  const auto value = [&](double us) { return c.is_rate ? c.units / (us * 1e-6) : us; };
  const double best = *std::min_element(ours.begin(), ours.end());
  const double peers_best = *std::min_element(peers.begin(), peers.end());
  fmt::print("{} {} {} {} {} {} {} {}\n", c.name, value(median(ours)), value(median(peers)), value(best),
             value(peers_best), packets, bytes, order.bytes);
  std::fflush(stdout);
}

void run_ranks(bool is_driven, const std::string& what, int rounds, int calls) {
  const MpiSession session;
  Member me(is_driven);
  if (session.rank() == 0) {
    std::span<const Case> cases = kLatency;
    if (what == "flow") cases = kFlow;
    if (what == "share") cases = kShare;
    for (const Case& c : cases) measure(me, c, rounds, c.units > 1 ? std::max(2, calls / 50) : calls);
    order_all(me, {Order::What::kEnd, 0, 0});
    return;
  }
  for (;;) {
    const Order order = me.wait_order();
    MPI_Barrier(MPI_COMM_WORLD);
    if (order.what == Order::What::kEnd) return;
    obey(order, session.rank());
  }
}

}  // namespace
}  // namespace coppice::bench

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: coppice-bench-ranks threads|driven latency|flow|share ROUNDS CALLS\n");
    return 2;
  }
  try {
    coppice::bench::run_ranks(std::string_view(argv[1]) == "driven", argv[2], std::atoi(argv[3]),
                              std::atoi(argv[4]));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "coppice-bench-ranks: error: %s\n", error.what());
    return 1;
  }
}
