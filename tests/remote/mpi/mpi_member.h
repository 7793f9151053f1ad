// One rank's worker with all that it needs, for tests over MPI. Ranks make one together, and end it together.
#pragma once
#include <memory>
#include <thread>

#include "executor/builtin_operations.h"
#include "executor/remote/mpi/mpi_transport.h"
#include "executor/remote/worker.h"
#include "executor/text.h"

namespace coppice::executor::remote {

using namespace std::chrono_literals;

inline constexpr const char* kMemberText = R"(
  func @add(%a: i32, %b: i32) -> i32 { %c = add.i32 (%a, %b) return %c }
  func @divide(%a: i32, %b: i32) -> i32 { %c = div.i32 (%a, %b) return %c }
  func @fetch(%r: remote.i32) -> i32 { %v = fetch (%r) return %v }
  func @make(%on: i32, %v: i32) -> remote.i32 { %r = make (%on, %v) return %r }
  func @long_text(%n: i32) -> string { %s = long_text (%n) return %s }
  func @tell() -> i32 { %v = tell return %v }
  func @never() -> i32 { %v = never return %v }
)";

class MpiMember {
 public:
  explicit MpiMember(const MpiTransportOptions& options = {}, const ChannelOptions& channel = {})
      : transport(MPI_COMM_WORLD, options),
        host(make_intrusive<Host>(WorkQueue::create({.threads = 2}))),
        codecs(remote_codecs()),
        worker({.protocol = {.self = transport.rank(),
                             .n_workers = transport.n_ranks(),
                             .session = transport.session(),
                             .heartbeat = 500ms,
                             .channel = channel}},
               transport, clock, host, codecs) {
    add_builtin_operations(registry);
    registry.add_type<RemoteRef<int32_t>>("remote.i32");
    registry.add("fetch", [](const RemoteRef<int32_t>& r) { return r.to_here(); });
    registry.add("make", [this](int32_t on, int32_t v) {
      return worker.remote<int32_t>(static_cast<WorkerId>(on), {module, "add"}, v, 1);
    });
    registry.add("long_text", [](int32_t n) { return std::string(static_cast<size_t>(n), 'x'); });
    registry.add("tell", [this] {
      told.emplace(1);
      return 1;
    });
    registry.add("never", [this] { return never.value(); });
    module = worker.add_module(LoadedModule::load(parse(kMemberText), registry));
    wait_all();  // before anybody calls a function of this rank's
    progress = std::make_unique<ProgressThread>(worker, transport, clock);
  }
  ~MpiMember() {
    host->queue()->shutdown(WorkQueue::Shutdown::kDrain);
    progress.reset();
  }

  WorkerId self() const { return transport.rank(); }
  WorkerId n() const { return transport.n_ranks(); }
  WorkerId after(WorkerId by) const { return (self() + by) % n(); }
  Callee callee(const std::string& function) const { return {module, function}; }

  // Waits for all ranks, and gives way to the progress thread meanwhile.
  static void wait_all() {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (int is_done = 0; is_done == 0; std::this_thread::yield())
      MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
  }
  // Waits until all ranks want no more of each other, and this one has said goodbye.
  void wait_end() {
    wait_all();
    host->queue()->wait_idle();
    const auto closed = worker.shutdown();
    wait(closed);
  }

  MpiTransport transport;
  const SteadyClock clock;
  IntrusivePtr<Host> host;
  Registry registry;
  Codecs codecs;
  Promise<int32_t> never = make_promise<int32_t>(), told = make_promise<int32_t>();
  AsyncValueRef<int32_t> is_told = told.value();  // by @tell, once
  Worker worker;
  Hash128 module;
  std::unique_ptr<ProgressThread> progress;

 private:
  static Codecs remote_codecs() {
    Codecs codecs;
    codecs.add_remote<int32_t>();
    return codecs;
  }
};

}  // namespace coppice::executor::remote
