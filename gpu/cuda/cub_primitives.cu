// The parallel primitives by CUB (see cub_primitives.h).
//
// One type of offset everywhere, and sums of 32-bit values through an iterator that widens them: what is
// instantiated here is what the compiler takes a minute for, for each architecture.
#include <cuda_runtime.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <cstdint>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cub/device/device_select.cuh>
#include <limits>
#include <type_traits>

#include "gpu/cuda/cub_primitives.h"

namespace coppice::cub_primitives {
namespace {

using Kind = PrimitiveCall::Kind;
using Type = PrimitiveCall::Type;

// This is a call, or with a null scratch the question how many bytes of it are needed: as CUB's own
// functions have it.
struct Request {
  const PrimitiveCall& call;
  void* scratch;
  size_t& bytes;
  cudaStream_t stream;

  bool is_question() const { return scratch == nullptr; }
};

template <class T>
using SumOf = std::conditional_t<std::is_floating_point<T>::value, double, uint64_t>;

template <class To>
struct Widened {
  template <class T>
  __host__ __device__ To operator()(T value) const {
    return static_cast<To>(value);
  }
};
struct Plus {
  template <class T>
  __host__ __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Larger {
  template <class T>
  __host__ __device__ T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};

template <class T>
auto widened(const void* in) {
  const auto* const values = static_cast<const T*>(in);
  if constexpr (std::is_same<T, SumOf<T>>::value) {
    return values;
  } else {
    return thrust::make_transform_iterator(values, Widened<SumOf<T>>());
  }
}

constexpr size_t kAlignment = 256;
constexpr size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

template <class Key>
cudaError_t sort_by_key(const Request& request) {
  const PrimitiveCall& call = request.call;
  auto* const other_keys = static_cast<Key*>(request.scratch);
  const size_t key_bytes = aligned(call.n * sizeof(Key)), value_bytes = aligned(call.n * sizeof(uint32_t));
  auto* const bytes = static_cast<unsigned char*>(request.scratch);
  cub::DoubleBuffer<Key> keys(static_cast<Key*>(call.first), other_keys);
  cub::DoubleBuffer<uint32_t> values(static_cast<uint32_t*>(call.second),
                                     reinterpret_cast<uint32_t*>(bytes + key_bytes));
  if (request.is_question()) {
    size_t own = 0;
    const cudaError_t error = cub::DeviceRadixSort::SortPairs(nullptr, own, keys, values, uint64_t{call.n}, 0,
                                                              int{sizeof(Key)} * 8, request.stream);
    request.bytes = key_bytes + value_bytes + own;
    return error;
  }
  size_t own = request.bytes - key_bytes - value_bytes;
  cudaError_t error =
      cub::DeviceRadixSort::SortPairs(bytes + key_bytes + value_bytes, own, keys, values, uint64_t{call.n}, 0,
                                      int{sizeof(Key)} * 8, request.stream);
  if (error == cudaSuccess && keys.Current() != call.first)
    error = cudaMemcpyAsync(call.first, keys.Current(), call.n * sizeof(Key), cudaMemcpyDeviceToDevice,
                            request.stream);
  if (error == cudaSuccess && values.Current() != call.second)
    error = cudaMemcpyAsync(call.second, values.Current(), call.n * sizeof(uint32_t),
                            cudaMemcpyDeviceToDevice, request.stream);
  return error;
}

template <class T>
cudaError_t sum(const Request& request) {
  return cub::DeviceReduce::Reduce(request.scratch, request.bytes, widened<T>(request.call.in),
                                   static_cast<SumOf<T>*>(request.call.result), uint64_t{request.call.n},
                                   Plus(), SumOf<T>{0}, request.stream);
}

template <class T>
cudaError_t max(const Request& request) {
  constexpr T kLowest = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                             : std::numeric_limits<T>::lowest();
  return cub::DeviceReduce::Reduce(request.scratch, request.bytes, static_cast<const T*>(request.call.in),
                                   static_cast<T*>(request.call.result), uint64_t{request.call.n}, Larger(),
                                   kLowest, request.stream);
}

template <class T>
cudaError_t segmented_sum(const Request& request) {
  const PrimitiveCall& call = request.call;
  return cub::DeviceSegmentedReduce::Reduce(request.scratch, request.bytes, widened<T>(call.in),
                                            static_cast<SumOf<T>*>(call.first),
                                            static_cast<int64_t>(call.count), call.starts, call.starts + 1,
                                            Plus(), SumOf<T>{0}, request.stream);
}

cudaError_t clear(void* result, size_t bytes, cudaStream_t stream) {
  return bytes == 0 ? cudaSuccess : cudaMemsetAsync(result, 0, bytes, stream);
}

// The sum is taken first: the output may be the input.
cudaError_t exclusive_scan(const Request& request) {
  const PrimitiveCall& call = request.call;
  const auto scan = [&](size_t& bytes) {
    return cub::DeviceScan::ExclusiveSum(request.scratch, bytes, static_cast<const uint32_t*>(call.in),
                                         static_cast<uint32_t*>(call.first), uint64_t{call.n},
                                         request.stream);
  };
  size_t sum_bytes = request.bytes, scan_bytes = request.bytes;
  cudaError_t error = cudaSuccess;
  if (call.result != nullptr) error = sum<uint32_t>({call, request.scratch, sum_bytes, request.stream});
  if (error == cudaSuccess) error = scan(scan_bytes);
  if (request.is_question()) request.bytes = sum_bytes > scan_bytes ? sum_bytes : scan_bytes;
  return error;
}

cudaError_t select_if_flag(const Request& request) {
  const PrimitiveCall& call = request.call;
  return cub::DeviceSelect::Flagged(request.scratch, request.bytes,
                                    thrust::counting_iterator<uint32_t>(0),
                                    static_cast<const uint32_t*>(call.in), static_cast<uint32_t*>(call.first),
                                    static_cast<uint64_t*>(call.result), static_cast<int64_t>(call.n),
                                    request.stream);
}

cudaError_t run_length_encode(const Request& request) {
  const PrimitiveCall& call = request.call;
  return cub::DeviceRunLengthEncode::Encode(
      request.scratch, request.bytes, static_cast<const uint32_t*>(call.in),
      static_cast<uint32_t*>(call.first), static_cast<uint32_t*>(call.second),
      static_cast<uint64_t*>(call.result), static_cast<int>(call.n), request.stream);
}

constexpr unsigned kThreads = 256;
constexpr size_t kSharedBins = 2048;  // counted in a block's own memory first: few bins have many keys each
constexpr size_t kHistogramBlocks = 1024;

template <bool kIsShared>
__global__ void __launch_bounds__(kThreads)
    count_keys(const uint32_t* keys, size_t n, uint32_t* counts, size_t n_bins) {
  __shared__ uint32_t own[kIsShared ? kSharedBins : 1];
  uint32_t* const to = kIsShared ? own : counts;
  if constexpr (kIsShared) {
    for (size_t bin = threadIdx.x; bin < n_bins; bin += kThreads) own[bin] = 0;
    __syncthreads();
  }
  for (size_t i = size_t{blockIdx.x} * kThreads + threadIdx.x; i < n; i += size_t{gridDim.x} * kThreads) {
    const uint32_t key = keys[i];
    if (key < n_bins) atomicAdd(to + key, 1u);
  }
  if constexpr (kIsShared) {
    __syncthreads();
    for (size_t bin = threadIdx.x; bin < n_bins; bin += kThreads) {
      if (own[bin] != 0) atomicAdd(counts + bin, own[bin]);
    }
  }
}

cudaError_t histogram(const Request& request) {
  const PrimitiveCall& call = request.call;
  if (request.is_question()) return cudaSuccess;
  const cudaError_t error = clear(call.first, call.count * sizeof(uint32_t), request.stream);
  if (error != cudaSuccess || call.n == 0 || call.count == 0) return error;
  const size_t wanted = (call.n + kThreads - 1) / kThreads;
  const auto blocks = static_cast<unsigned>(wanted < kHistogramBlocks ? wanted : kHistogramBlocks);
  const auto* const keys = static_cast<const uint32_t*>(call.in);
  auto* const counts = static_cast<uint32_t*>(call.first);
  if (call.count <= kSharedBins) {
    count_keys<true><<<blocks, kThreads, 0, request.stream>>>(keys, call.n, counts, call.count);
  } else {
    count_keys<false><<<blocks, kThreads, 0, request.stream>>>(keys, call.n, counts, call.count);
  }
  return cudaPeekAtLastError();
}

// A thread per bin searches the first key that is not less.
__global__ void __launch_bounds__(kThreads)
    find_bin_starts(const uint32_t* keys, uint32_t n, uint32_t* starts, size_t n_bins) {
  const size_t bin = size_t{blockIdx.x} * kThreads + threadIdx.x;
  if (bin > n_bins) return;
  uint32_t begin = 0, end = n;
  while (begin < end) {
    const uint32_t middle = begin + (end - begin) / 2;
    if (keys[middle] < bin) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  starts[bin] = begin;
}

cudaError_t bin_starts(const Request& request) {
  const PrimitiveCall& call = request.call;
  if (request.is_question()) return cudaSuccess;
  const auto blocks = static_cast<unsigned>(call.count / kThreads + 1);  // count + 1 threads
  find_bin_starts<<<blocks, kThreads, 0, request.stream>>>(static_cast<const uint32_t*>(call.in),
                                                          static_cast<uint32_t>(call.n),
                                                          static_cast<uint32_t*>(call.first), call.count);
  return cudaPeekAtLastError();
}

template <class T>
cudaError_t of_type(const Request& request) {
  switch (request.call.kind) {
    case Kind::kSum:
      return sum<T>(request);
    case Kind::kMax:
      return max<T>(request);
    case Kind::kSegmentedSum:
      return request.call.count == 0 ? cudaSuccess : segmented_sum<T>(request);
    case Kind::kSortByKey:
      if constexpr (std::is_integral<T>::value)
        return request.call.n == 0 ? cudaSuccess : sort_by_key<T>(request);
      return cudaErrorInvalidValue;
    default:
      return cudaErrorInvalidValue;
  }
}

cudaError_t of_words(const Request& request) {
  const PrimitiveCall& call = request.call;
  switch (call.kind) {
    case Kind::kHistogram:
      return histogram(request);
    case Kind::kBinStarts:
      return bin_starts(request);
    case Kind::kExclusiveScan:
    case Kind::kSelectIfFlag:
    case Kind::kRunLengthEncode:
      break;
    default:
      return of_type<uint32_t>(request);
  }
  if (call.n == 0) {
    const bool has_result = call.result != nullptr && !request.is_question();
    return has_result ? clear(call.result, sizeof(uint64_t), request.stream) : cudaSuccess;
  }
  if (call.kind == Kind::kExclusiveScan) return exclusive_scan(request);
  return call.kind == Kind::kSelectIfFlag ? select_if_flag(request) : run_length_encode(request);
}

cudaError_t answer(const Request& request) {
  switch (request.call.type) {
    case Type::kU32:
      return of_words(request);
    case Type::kU64:
      return of_type<uint64_t>(request);
    case Type::kF32:
      return of_type<float>(request);
    case Type::kF64:
      return of_type<double>(request);
  }
  return cudaErrorInvalidValue;
}

// Without a driver that is new enough, CUB says no more than that there is no such device.
cudaError_t check_driver() {
  static const cudaError_t error = [] {
    int devices = 0;
    return cudaGetDeviceCount(&devices);
  }();
  return error;
}

// CUB leaves a failed launch's error for the next one who asks.
cudaError_t answer_and_forget(const Request& request) {
  cudaError_t error = check_driver();
  if (error == cudaSuccess) error = answer(request);
  const cudaError_t left = cudaGetLastError();
  return error != cudaSuccess ? error : left;
}

}  // namespace

int scratch_bytes(const PrimitiveCall& call, size_t* bytes) {
  *bytes = 0;
  return answer_and_forget({call, nullptr, *bytes, nullptr});
}
int run(const PrimitiveCall& call, void* stream, void* scratch, size_t bytes) {
  return answer_and_forget({call, scratch, bytes, static_cast<cudaStream_t>(stream)});
}

const char* error_name(int error) { return cudaGetErrorName(static_cast<cudaError_t>(error)); }
const char* error_text(int error) { return cudaGetErrorString(static_cast<cudaError_t>(error)); }
int runtime_version() { return CUDART_VERSION; }
int driver_version() {
  int version = 0;
  return cudaDriverGetVersion(&version) == cudaSuccess ? version : 0;
}

}  // namespace coppice::cub_primitives
