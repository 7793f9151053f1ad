// NVTX ranges: what a stream does when, in the pictures of NVIDIA's profilers.
//
// Every TraceScope of the process becomes a range of the domain "coppice" while a profiler is attached:
// launches and copies by name around their issuing, on the stream's thread (Nsight Systems projects
// them to what they set off on the GPU), the executor's operations, the solver's stages. Profilers
// attach by NVTX_INJECTION64_PATH, before the program starts. Needs NVTX's header (of CUDA toolkits)
// when Coppice is built, and no library.
#pragma once

namespace coppice::cuda {

// Works once in a process, however often it is called; thread-safe. Returns whether a profiler listens.
bool trace_to_nvtx();

// Returns whether the build found the header.
bool has_nvtx();

}  // namespace coppice::cuda
