// The part of NVIDIA's driver interface that the cuda device uses, as a table of
// functions that is filled at run time.
//
// Declared here and not by cuda.h: who builds and who runs Coppice needs no CUDA toolkit. A test compares
// every value, size and signature with cuda.h where there is one. Meanings are those of the function named in
// the table; handles are opaque. Every function may be called from any thread; most need a current context.
#pragma once
#include <cstddef>
#include <cstdint>

namespace coppice::cuda {

using DeviceAddress =
    unsigned long long;  // a pointer of the device's: the same number as on the host, not readable there
using MemoryHandle = unsigned long long;
using DeviceId = int;
using ContextHandle = struct ContextTag*;
using StreamHandle = struct StreamTag*;
using EventHandle = struct EventTag*;
using ModuleHandle = struct ModuleTag*;
using FunctionHandle = struct FunctionTag*;
using GraphHandle = struct GraphTag*;
using GraphNodeHandle = struct GraphNodeTag*;
using GraphExecHandle = struct GraphExecTag*;

// These are the values of CUresult that something is decided by; the driver may return any other number.
enum class Result : uint32_t {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kDeinitialized = 4,
  kStubLibrary = 34,
  kDeviceUnavailable = 46,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinaryForGpu = 209,
  kEccUncorrectable = 214,
  kInvalidPtx = 218,
  kNvlinkUncorrectable = 220,
  kJitCompilerNotFound = 221,
  kUnsupportedPtxVersion = 222,
  kJitCompilationDisabled = 223,
  kContained = 226,
  kInvalidSource = 300,
  kInvalidHandle = 400,
  kIllegalState = 401,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchOutOfResources = 701,
  kLaunchTimeout = 702,
  kContextIsDestroyed = 709,
  kAssert = 710,
  kHardwareStackError = 714,
  kIllegalInstruction = 715,
  kMisalignedAddress = 716,
  kInvalidAddressSpace = 717,
  kInvalidPc = 718,
  kLaunchFailed = 719,
  kTensorMemoryLeak = 721,
  kNotSupported = 801,
  kSystemNotReady = 802,
  kSystemDriverMismatch = 803,
  kCompatNotSupportedOnDevice = 804,
  kStreamCaptureUnsupported = 900,
  kStreamCaptureInvalidated = 901,
  kCapturedEvent = 907,
  kUnknown = 999,
};

enum class DeviceAttribute : int {
  kClockRate = 13,  // kHz
  kMultiprocessorCount = 16,
  kMemoryClockRate = 36,       // kHz
  kGlobalMemoryBusWidth = 37,  // bits
  kMaxThreadsPerMultiprocessor = 39,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMaxSharedMemoryPerBlockOptin = 97,
  kVirtualMemoryManagementSupported = 102,
};
enum class FunctionAttribute : int {
  kSharedSizeBytes = 1,  // of its own, without what a launch asks for
  kLocalSizeBytes = 3,
  kNumRegs = 4,
  kMaxDynamicSharedSizeBytes = 8
};
enum class JitOption : int {
  kInfoLogBuffer = 3,
  kInfoLogBufferSizeBytes = 4,
  kErrorLogBuffer = 5,
  kErrorLogBufferSizeBytes = 6,
  kLogVerbose = 12,
  kGenerateLineInfo = 13
};
enum class AllocationType : int { kPinned = 1 };
enum class LocationType : int { kDevice = 1 };
enum class AccessFlags : int { kReadWrite = 3 };
enum class Granularity : int { kMinimum = 0 };
enum class CaptureMode : int { kRelaxed = 2 };  // other calls stay allowed meanwhile, on all threads
enum class CaptureStatus : int { kNone = 0, kActive = 1, kInvalidated = 2 };
inline constexpr unsigned kSetCaptureDependencies = 1;
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDefault = 0;
inline constexpr unsigned kEventDisableTiming = 2;

struct MemoryLocation {
  LocationType type;
  int id;
};
struct AllocationProperties {
  AllocationType type = AllocationType::kPinned;  // of the device's own memory: the only type there is
  int requested_handle_types = 0;
  MemoryLocation location{};
  void* win32_handle_metadata = nullptr;
  unsigned char compression_type = 0, gpu_direct_rdma_capable = 0;
  unsigned short usage = 0;
  unsigned char reserved[4] = {};
};
struct AccessDescriptor {
  MemoryLocation location;
  AccessFlags flags;
};
static_assert(sizeof(MemoryLocation) == 8 && sizeof(AccessDescriptor) == 12);
static_assert(sizeof(AllocationProperties) == 32 && offsetof(AllocationProperties, location) == 8);

// X(member of the table, exported name, parameters)
#define COPPICE_CUDA_FUNCTIONS(X)                                                                            \
  X(init, cuInit, (unsigned flags))                                                                          \
  X(driver_get_version, cuDriverGetVersion, (int* version))                                                  \
  X(get_error_name, cuGetErrorName, (Result result, const char** name))                                      \
  X(get_error_string, cuGetErrorString, (Result result, const char** text))                                  \
  X(device_get_count, cuDeviceGetCount, (int* count))                                                        \
  X(device_get, cuDeviceGet, (DeviceId * device, int ordinal))                                               \
  X(device_get_name, cuDeviceGetName, (char* name, int bytes, DeviceId device))                              \
  X(device_get_attribute, cuDeviceGetAttribute, (int* value, DeviceAttribute attribute, DeviceId device))    \
  X(device_total_mem, cuDeviceTotalMem_v2, (size_t * bytes, DeviceId device))                                \
  X(device_primary_ctx_retain, cuDevicePrimaryCtxRetain, (ContextHandle * context, DeviceId device))         \
  X(device_primary_ctx_release, cuDevicePrimaryCtxRelease_v2, (DeviceId device))                             \
  X(ctx_set_current, cuCtxSetCurrent, (ContextHandle context))                                               \
  X(ctx_get_current, cuCtxGetCurrent, (ContextHandle * context))                                             \
  X(stream_create, cuStreamCreate, (StreamHandle * stream, unsigned flags))                                  \
  X(stream_destroy, cuStreamDestroy_v2, (StreamHandle stream))                                               \
  X(stream_synchronize, cuStreamSynchronize, (StreamHandle stream))                                          \
  X(stream_wait_event, cuStreamWaitEvent, (StreamHandle stream, EventHandle event, unsigned flags))          \
  X(event_create, cuEventCreate, (EventHandle * event, unsigned flags))                                      \
  X(event_record, cuEventRecord, (EventHandle event, StreamHandle stream))                                   \
  X(event_query, cuEventQuery, (EventHandle event))                                                          \
  X(event_synchronize, cuEventSynchronize, (EventHandle event))                                              \
  X(event_elapsed_time, cuEventElapsedTime, (float* milliseconds, EventHandle begin, EventHandle end))       \
  X(event_destroy, cuEventDestroy_v2, (EventHandle event))                                                   \
  X(stream_begin_capture, cuStreamBeginCapture_v2, (StreamHandle stream, CaptureMode mode))                  \
  X(stream_end_capture, cuStreamEndCapture, (StreamHandle stream, GraphHandle * graph))                      \
  X(graph_instantiate, cuGraphInstantiateWithFlags,                                                          \
    (GraphExecHandle * exec, GraphHandle graph, unsigned long long flags))                                   \
  X(graph_launch, cuGraphLaunch, (GraphExecHandle exec, StreamHandle stream))                                \
  X(graph_exec_destroy, cuGraphExecDestroy, (GraphExecHandle exec))                                          \
  X(graph_destroy, cuGraphDestroy, (GraphHandle graph))                                                      \
  X(mem_get_info, cuMemGetInfo_v2, (size_t * free, size_t * total))                                          \
  X(mem_get_allocation_granularity, cuMemGetAllocationGranularity,                                           \
    (size_t * bytes, const AllocationProperties* properties, Granularity which))                             \
  X(mem_address_reserve, cuMemAddressReserve,                                                                \
    (DeviceAddress * at, size_t bytes, size_t alignment, DeviceAddress wanted, unsigned long long flags))    \
  X(mem_address_free, cuMemAddressFree, (DeviceAddress at, size_t bytes))                                    \
  X(mem_create, cuMemCreate,                                                                                 \
    (MemoryHandle * memory, size_t bytes, const AllocationProperties* properties, unsigned long long flags)) \
  X(mem_release, cuMemRelease, (MemoryHandle memory))                                                        \
  X(mem_map, cuMemMap,                                                                                       \
    (DeviceAddress at, size_t bytes, size_t offset, MemoryHandle memory, unsigned long long flags))          \
  X(mem_unmap, cuMemUnmap, (DeviceAddress at, size_t bytes))                                                 \
  X(mem_set_access, cuMemSetAccess,                                                                          \
    (DeviceAddress at, size_t bytes, const AccessDescriptor* access, size_t count))                          \
  X(mem_alloc_host, cuMemAllocHost_v2, (void** memory, size_t bytes))                                        \
  X(mem_free_host, cuMemFreeHost, (void* memory))                                                            \
  X(memcpy_async, cuMemcpyAsync, (DeviceAddress to, DeviceAddress from, size_t bytes, StreamHandle stream))  \
  X(memset_d8_async, cuMemsetD8Async,                                                                        \
    (DeviceAddress to, unsigned char byte, size_t bytes, StreamHandle stream))                               \
  X(module_load_data_ex, cuModuleLoadDataEx,                                                                 \
    (ModuleHandle * module, const void* image, unsigned num_options, JitOption* options, void** values))     \
  X(module_unload, cuModuleUnload, (ModuleHandle module))                                                    \
  X(module_get_function, cuModuleGetFunction,                                                                \
    (FunctionHandle * function, ModuleHandle module, const char* name))                                      \
  X(func_get_attribute, cuFuncGetAttribute,                                                                  \
    (int* value, FunctionAttribute attribute, FunctionHandle function))                                      \
  X(func_set_attribute, cuFuncSetAttribute,                                                                  \
    (FunctionHandle function, FunctionAttribute attribute, int value))                                       \
  X(occupancy_max_active_blocks, cuOccupancyMaxActiveBlocksPerMultiprocessor,                                \
    (int* blocks, FunctionHandle function, int block_threads, size_t shared_bytes))                          \
  X(launch_kernel, cuLaunchKernel,                                                                           \
    (FunctionHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,           \
     unsigned block_y, unsigned block_z, unsigned shared_bytes, StreamHandle stream, void** parameters,      \
     void** extra))

// These have later versions with more parameters, which are what cuda.h calls by these names.
#define COPPICE_CUDA_FIRST_VERSIONS(X)                                                        \
  X(stream_get_capture_info, cuStreamGetCaptureInfo_v2,                                       \
    (StreamHandle stream, CaptureStatus * status, unsigned long long* id, GraphHandle* graph, \
     const GraphNodeHandle** dependencies, size_t* count))                                    \
  X(stream_update_capture_dependencies, cuStreamUpdateCaptureDependencies,                    \
    (StreamHandle stream, GraphNodeHandle * dependencies, size_t count, unsigned flags))

struct Primitives;  // gpu/cuda/primitives.h

struct Driver {
  // This sorts and scans on the driver's devices.
  const Primitives* primitives = nullptr;
#define COPPICE_CUDA_MEMBER(member, symbol, parameters) Result(*member) parameters = nullptr;
  COPPICE_CUDA_FUNCTIONS(COPPICE_CUDA_MEMBER)
  COPPICE_CUDA_FIRST_VERSIONS(COPPICE_CUDA_MEMBER)
#undef COPPICE_CUDA_MEMBER
};

// This is the oldest driver that has all of these functions and takes PTX 7.0: as cuDriverGetVersion
// counts, CUDA 11.4.
inline constexpr int kNeededDriverVersion = 11040;

// Loads libcuda.so.1 at the first call and initializes it; stays loaded. Thread-safe. Errors: kUnavailable,
// "no NVIDIA driver: " and the reason.
const Driver& load_driver();
// Loads the same from a library of another name, for tests of what is missing; without the initialization.
Driver driver_from_library(const char* library);

}  // namespace coppice::cuda
