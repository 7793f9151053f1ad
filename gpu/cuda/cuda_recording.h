// Device work of a stream of the cuda device as a graph, which the driver launches as a whole.
#pragma once
#include <string>
#include <vector>

#include "gpu/cuda/context.h"
#include "gpu/stream.h"

namespace coppice::cuda {

// Its last reference goes when no launch of it is under way: whoever launches it keeps one until then.
class CudaRecording final : public Recording {
 public:
  // This needs a Scope. It takes the graph over, also where it throws. Errors: kOutOfMemory, kUnavailable,
  // kInternal.
  CudaRecording(IntrusivePtr<Context> context, GraphHandle graph);
  ~CudaRecording() override;
  GraphExecHandle exec() const { return exec_; }
  const Context& context() const { return *context_; }
  std::string name() const;  // for errors: "a recording of 3 launches (heat.diffuse, heat.cool, sorting)"

  std::vector<IntrusivePtr<RefCounted>> used;  // code, memory and whatever else the graph's work uses
  std::vector<std::string> names;              // of kernels and primitives, each once

 private:
  const IntrusivePtr<Context> context_;
  GraphExecHandle exec_ = nullptr;
};

}  // namespace coppice::cuda
