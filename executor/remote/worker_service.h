// The duty to finish what another worker has asked for. Internal to worker_core.h.
#pragma once
#include "executor/remote/worker_core.h"

namespace coppice::executor::remote {

class WorkerCore::Service {
 public:
  Service(IntrusivePtr<WorkerCore> core, ServiceId id) : core_(std::move(core)), id_(id) {}
  Service(Service&& other) noexcept : core_(std::move(other.core_)), id_(other.id_) {}
  Service& operator=(Service&&) = delete;
  // A queue that drops the work leaves an error.
  ~Service();

  WorkerCore& core() const { return *core_; }
  void end(const Outcome& outcome) { std::exchange(core_, nullptr)->finish(id_, outcome); }
  // Ends it with an available value's bytes, or its error with a step behind its path.
  void end_with(AsyncValue& value, const std::string& step);

 private:
  IntrusivePtr<WorkerCore> core_;
  ServiceId id_;
};

}  // namespace coppice::executor::remote
