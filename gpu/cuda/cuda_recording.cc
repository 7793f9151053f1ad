// Device work as a graph (see cuda_recording.h).
#include "gpu/cuda/cuda_recording.h"

#include <fmt/format.h>

#include <utility>

namespace coppice::cuda {

CudaRecording::CudaRecording(IntrusivePtr<Context> context, GraphHandle graph)
    : context_(std::move(context)) {
  const Driver& driver = context_->driver();
  const Result made = driver.graph_instantiate(&exec_, graph, 0);
  driver.graph_destroy(graph);  // only the form that can be launched is needed
  context_->check(made, "cuGraphInstantiate");
}

CudaRecording::~CudaRecording() {
  const Context::FreeingScope scope(*context_);
  context_->driver().graph_exec_destroy(exec_);
}

std::string CudaRecording::name() const {
  return fmt::format("a recording of {} launch{} ({})", launches, launches == 1 ? "" : "es",
                     fmt::join(names, ", "));
}

}  // namespace coppice::cuda
