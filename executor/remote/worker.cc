// Worker and its progress thread.
#include "executor/remote/worker.h"

#include "executor/binary.h"

namespace coppice::executor::remote {

Hash128 module_id(const Module& module) { return hash128(encode(module)); }

Worker::Worker(const Options& options, Transport& transport, const Clock& clock, IntrusivePtr<Host> host,
               Codecs codecs)
    : core_(make_intrusive<WorkerCore>(options, transport, clock, std::move(host), std::move(codecs))) {}

Worker::~Worker() { core_->close(); }

ProgressThread::ProgressThread(Worker& worker, Transport& transport, const Clock& clock)
    : transport_(transport), thread_([&worker, &transport, &clock, this] {
        while (!ends_.load(std::memory_order_relaxed)) {
          const Time next = worker.progress();
          transport.wait(next == kNever ? kNever : std::max(Time(0), next - clock.now()));
        }
      }) {}

ProgressThread::~ProgressThread() {
  ends_.store(true, std::memory_order_relaxed);
  transport_.wake();
  thread_.join();
}

}  // namespace coppice::executor::remote
