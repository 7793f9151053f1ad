// Compares gpu/cuda/driver.h with NVIDIA's cuda.h, at compile time: values, sizes, offsets, and
// the shape of every signature (how many parameters, and of each its size, whether it is a
// pointer, and to what constness).
#pragma once
#include <cuda.h>
#include <cudaTypedefs.h>

#include <cstddef>
#include <type_traits>

#include "gpu/cuda/driver.h"

namespace coppice::cuda {

template <class T>
inline constexpr int kShape = static_cast<int>(sizeof(T)) + 100 * std::is_pointer_v<T> +
                              1000 * std::is_const_v<std::remove_pointer_t<T>> +
                              10000 * std::is_pointer_v<std::remove_pointer_t<T>>;

template <class Ours, class Theirs>
inline constexpr bool kSameSignature = false;
template <class R, class... Ours, class S, class... Theirs>
inline constexpr bool kSameSignature<R (*)(Ours...), S (*)(Theirs...)> = [] {
  if constexpr (sizeof...(Ours) != sizeof...(Theirs))
    return false;
  else
    return kShape<R> == kShape<S> && ((kShape<Ours> == kShape<Theirs>)&&...);
}();

// A handle is a pointer to a type that has no size; where one is passed by address, both are.
#define COPPICE_SAME_SIGNATURE(member, symbol, parameters) \
  static_assert(kSameSignature<decltype(Driver::member), decltype(&::symbol)>, "the signature of " #member);
COPPICE_CUDA_FUNCTIONS(COPPICE_SAME_SIGNATURE)
#undef COPPICE_SAME_SIGNATURE
static_assert(kSameSignature<decltype(Driver::stream_get_capture_info), PFN_cuStreamGetCaptureInfo_v11030>);
static_assert(kSameSignature<decltype(Driver::stream_update_capture_dependencies),
                             PFN_cuStreamUpdateCaptureDependencies_v11030>);

#define COPPICE_SAME_VALUE(ours, theirs) \
  static_assert(static_cast<long long>(ours) == static_cast<long long>(theirs), #theirs);
COPPICE_SAME_VALUE(Result::kSuccess, CUDA_SUCCESS)
COPPICE_SAME_VALUE(Result::kInvalidValue, CUDA_ERROR_INVALID_VALUE)
COPPICE_SAME_VALUE(Result::kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY)
COPPICE_SAME_VALUE(Result::kNotInitialized, CUDA_ERROR_NOT_INITIALIZED)
COPPICE_SAME_VALUE(Result::kDeinitialized, CUDA_ERROR_DEINITIALIZED)
COPPICE_SAME_VALUE(Result::kStubLibrary, CUDA_ERROR_STUB_LIBRARY)
COPPICE_SAME_VALUE(Result::kDeviceUnavailable, CUDA_ERROR_DEVICE_UNAVAILABLE)
COPPICE_SAME_VALUE(Result::kNoDevice, CUDA_ERROR_NO_DEVICE)
COPPICE_SAME_VALUE(Result::kInvalidDevice, CUDA_ERROR_INVALID_DEVICE)
COPPICE_SAME_VALUE(Result::kInvalidImage, CUDA_ERROR_INVALID_IMAGE)
COPPICE_SAME_VALUE(Result::kInvalidContext, CUDA_ERROR_INVALID_CONTEXT)
COPPICE_SAME_VALUE(Result::kNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU)
COPPICE_SAME_VALUE(Result::kEccUncorrectable, CUDA_ERROR_ECC_UNCORRECTABLE)
COPPICE_SAME_VALUE(Result::kInvalidPtx, CUDA_ERROR_INVALID_PTX)
COPPICE_SAME_VALUE(Result::kNvlinkUncorrectable, CUDA_ERROR_NVLINK_UNCORRECTABLE)
COPPICE_SAME_VALUE(Result::kJitCompilerNotFound, CUDA_ERROR_JIT_COMPILER_NOT_FOUND)
COPPICE_SAME_VALUE(Result::kUnsupportedPtxVersion, CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
COPPICE_SAME_VALUE(Result::kJitCompilationDisabled, CUDA_ERROR_JIT_COMPILATION_DISABLED)
COPPICE_SAME_VALUE(Result::kContained, CUDA_ERROR_CONTAINED)
COPPICE_SAME_VALUE(Result::kInvalidSource, CUDA_ERROR_INVALID_SOURCE)
COPPICE_SAME_VALUE(Result::kInvalidHandle, CUDA_ERROR_INVALID_HANDLE)
COPPICE_SAME_VALUE(Result::kIllegalState, CUDA_ERROR_ILLEGAL_STATE)
COPPICE_SAME_VALUE(Result::kNotFound, CUDA_ERROR_NOT_FOUND)
COPPICE_SAME_VALUE(Result::kNotReady, CUDA_ERROR_NOT_READY)
COPPICE_SAME_VALUE(Result::kIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS)
COPPICE_SAME_VALUE(Result::kLaunchOutOfResources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
COPPICE_SAME_VALUE(Result::kLaunchTimeout, CUDA_ERROR_LAUNCH_TIMEOUT)
COPPICE_SAME_VALUE(Result::kContextIsDestroyed, CUDA_ERROR_CONTEXT_IS_DESTROYED)
COPPICE_SAME_VALUE(Result::kAssert, CUDA_ERROR_ASSERT)
COPPICE_SAME_VALUE(Result::kHardwareStackError, CUDA_ERROR_HARDWARE_STACK_ERROR)
COPPICE_SAME_VALUE(Result::kIllegalInstruction, CUDA_ERROR_ILLEGAL_INSTRUCTION)
COPPICE_SAME_VALUE(Result::kMisalignedAddress, CUDA_ERROR_MISALIGNED_ADDRESS)
COPPICE_SAME_VALUE(Result::kInvalidAddressSpace, CUDA_ERROR_INVALID_ADDRESS_SPACE)
COPPICE_SAME_VALUE(Result::kInvalidPc, CUDA_ERROR_INVALID_PC)
COPPICE_SAME_VALUE(Result::kLaunchFailed, CUDA_ERROR_LAUNCH_FAILED)
COPPICE_SAME_VALUE(Result::kTensorMemoryLeak, CUDA_ERROR_TENSOR_MEMORY_LEAK)
COPPICE_SAME_VALUE(Result::kNotSupported, CUDA_ERROR_NOT_SUPPORTED)
COPPICE_SAME_VALUE(Result::kSystemNotReady, CUDA_ERROR_SYSTEM_NOT_READY)
COPPICE_SAME_VALUE(Result::kSystemDriverMismatch, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)
COPPICE_SAME_VALUE(Result::kCompatNotSupportedOnDevice, CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE)
COPPICE_SAME_VALUE(Result::kStreamCaptureUnsupported, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
COPPICE_SAME_VALUE(Result::kStreamCaptureInvalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
COPPICE_SAME_VALUE(Result::kCapturedEvent, CUDA_ERROR_CAPTURED_EVENT)
COPPICE_SAME_VALUE(Result::kUnknown, CUDA_ERROR_UNKNOWN)
COPPICE_SAME_VALUE(DeviceAttribute::kMultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
COPPICE_SAME_VALUE(DeviceAttribute::kComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
COPPICE_SAME_VALUE(DeviceAttribute::kComputeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
COPPICE_SAME_VALUE(DeviceAttribute::kMaxSharedMemoryPerBlockOptin,
                   CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
COPPICE_SAME_VALUE(DeviceAttribute::kVirtualMemoryManagementSupported,
                   CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)
COPPICE_SAME_VALUE(DeviceAttribute::kClockRate, CU_DEVICE_ATTRIBUTE_CLOCK_RATE)
COPPICE_SAME_VALUE(DeviceAttribute::kMemoryClockRate, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)
COPPICE_SAME_VALUE(DeviceAttribute::kGlobalMemoryBusWidth, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)
COPPICE_SAME_VALUE(DeviceAttribute::kMaxThreadsPerMultiprocessor,
                   CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)
COPPICE_SAME_VALUE(FunctionAttribute::kSharedSizeBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)
COPPICE_SAME_VALUE(FunctionAttribute::kLocalSizeBytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)
COPPICE_SAME_VALUE(FunctionAttribute::kNumRegs, CU_FUNC_ATTRIBUTE_NUM_REGS)
COPPICE_SAME_VALUE(FunctionAttribute::kMaxDynamicSharedSizeBytes,
                   CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
COPPICE_SAME_VALUE(JitOption::kInfoLogBuffer, CU_JIT_INFO_LOG_BUFFER)
COPPICE_SAME_VALUE(JitOption::kInfoLogBufferSizeBytes, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES)
COPPICE_SAME_VALUE(JitOption::kLogVerbose, CU_JIT_LOG_VERBOSE)
COPPICE_SAME_VALUE(JitOption::kErrorLogBuffer, CU_JIT_ERROR_LOG_BUFFER)
COPPICE_SAME_VALUE(JitOption::kErrorLogBufferSizeBytes, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
COPPICE_SAME_VALUE(JitOption::kGenerateLineInfo, CU_JIT_GENERATE_LINE_INFO)
COPPICE_SAME_VALUE(AllocationType::kPinned, CU_MEM_ALLOCATION_TYPE_PINNED)
COPPICE_SAME_VALUE(LocationType::kDevice, CU_MEM_LOCATION_TYPE_DEVICE)
COPPICE_SAME_VALUE(AccessFlags::kReadWrite, CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
COPPICE_SAME_VALUE(Granularity::kMinimum, CU_MEM_ALLOC_GRANULARITY_MINIMUM)
COPPICE_SAME_VALUE(CaptureMode::kRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED)
COPPICE_SAME_VALUE(CaptureStatus::kActive, CU_STREAM_CAPTURE_STATUS_ACTIVE)
COPPICE_SAME_VALUE(CaptureStatus::kInvalidated, CU_STREAM_CAPTURE_STATUS_INVALIDATED)
COPPICE_SAME_VALUE(kSetCaptureDependencies, CU_STREAM_SET_CAPTURE_DEPENDENCIES)
COPPICE_SAME_VALUE(kStreamNonBlocking, CU_STREAM_NON_BLOCKING)
COPPICE_SAME_VALUE(kEventDefault, CU_EVENT_DEFAULT)
COPPICE_SAME_VALUE(kEventDisableTiming, CU_EVENT_DISABLE_TIMING)

COPPICE_SAME_VALUE(sizeof(DeviceAddress), sizeof(CUdeviceptr))
COPPICE_SAME_VALUE(sizeof(MemoryHandle), sizeof(CUmemGenericAllocationHandle))
COPPICE_SAME_VALUE(sizeof(MemoryLocation), sizeof(CUmemLocation))
COPPICE_SAME_VALUE(offsetof(MemoryLocation, id), offsetof(CUmemLocation, id))
COPPICE_SAME_VALUE(sizeof(AccessDescriptor), sizeof(CUmemAccessDesc))
COPPICE_SAME_VALUE(offsetof(AccessDescriptor, flags), offsetof(CUmemAccessDesc, flags))
COPPICE_SAME_VALUE(sizeof(AllocationProperties), sizeof(CUmemAllocationProp))
COPPICE_SAME_VALUE(offsetof(AllocationProperties, requested_handle_types),
                   offsetof(CUmemAllocationProp, requestedHandleTypes))
COPPICE_SAME_VALUE(offsetof(AllocationProperties, location), offsetof(CUmemAllocationProp, location))
COPPICE_SAME_VALUE(offsetof(AllocationProperties, win32_handle_metadata),
                   offsetof(CUmemAllocationProp, win32HandleMetaData))
COPPICE_SAME_VALUE(offsetof(AllocationProperties, compression_type),
                   offsetof(CUmemAllocationProp, allocFlags))
#undef COPPICE_SAME_VALUE

}  // namespace coppice::cuda
