// A lease: one handle of a worker's, counted. The last drop does nothing but enqueue.
#pragma once
#include "core/async_value.h"
#include "executor/remote/ids.h"

namespace coppice::executor::remote {

class WorkerCore;

class Lease final : public RefCounted {
 public:
  // `value` is the object's where it is this worker's, else null.
  Lease(IntrusivePtr<WorkerCore> core, HandleId handle, RRefId rref, RCReference<AsyncValue> value);
  ~Lease() override;

  WorkerCore& core() const { return *core_; }
  HandleId handle() const { return handle_; }
  const RRefId& rref() const { return rref_; }
  AsyncValue* value() const { return value_.get(); }

 private:
  const IntrusivePtr<WorkerCore> core_;
  const HandleId handle_;
  const RRefId rref_;
  const RCReference<AsyncValue> value_;
};
using Leases = std::vector<IntrusivePtr<Lease>>;

}  // namespace coppice::executor::remote
