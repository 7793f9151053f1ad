# COPPICE_CUB_OBJECT: the parallel primitives for NVIDIA GPUs (gpu/cuda/cub_primitives.cu) as one object file, where an nvcc
# is found that works and COPPICE_CUDA is not OFF; else empty, and only the cuda device lacks them. Looked for in PATH,
# $CUDA_HOME, $CUDA_PATH and /usr/local/cuda; -DCOPPICE_NVCC= says which.
#
# By a command of its own and not as a language of the project: no other file is CUDA, and C++'s flags (sanitizers, linkers)
# are none of nvcc's business. The CUDA runtime is linked into the object with its symbols hidden, so that neither the
# installed library, nor the bundle, nor who links them needs a toolkit; it loads the driver at its first call.
set(COPPICE_CUB_OBJECT "")
if(COPPICE_CUDA STREQUAL "OFF")
  return()
endif()
find_program(COPPICE_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin)
# GPUs from here on that are none of these run the PTX of the last. Each costs 20 seconds of compilation and 1 MB.
set(COPPICE_CUDA_ARCHITECTURES "75;80;90" CACHE STRING "compute capabilities of GPUs that primitives are compiled for")

function(coppice_why_no_nvcc result)
  set(${result} "" PARENT_SCOPE)
  if(NOT COPPICE_NVCC)
    set(${result} "there is no nvcc" PARENT_SCOPE)
    return()
  endif()
  # CUB 2 takes fewer items, without a word.
  file(WRITE ${CMAKE_BINARY_DIR}/cub/probe.cu "#include <cub/version.cuh>\n#if CUB_VERSION < 300000\n"
    "#error CUDA 13 or newer is needed\n#endif\n__global__ void probe() {}\n")
  execute_process(COMMAND ${COPPICE_NVCC} -ccbin ${CMAKE_CXX_COMPILER} -std=c++17 -c probe.cu -o probe.o
    WORKING_DIRECTORY ${CMAKE_BINARY_DIR}/cub RESULT_VARIABLE failed OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(failed)
    string(REGEX MATCH "[^\n]*(error|fatal)[^\n]*" line "${text}")
    set(${result} "${COPPICE_NVCC} does not work: ${line}" PARENT_SCOPE)
  elseif(NOT COPPICE_CUDART)
    set(${result} "${COPPICE_NVCC} has no libcudart_static.a" PARENT_SCOPE)
  endif()
endfunction()

get_filename_component(beside_nvcc "${COPPICE_NVCC}" REALPATH)
get_filename_component(beside_nvcc "${beside_nvcc}/../.." ABSOLUTE)
find_file(COPPICE_CUDART libcudart_static.a HINTS ${beside_nvcc} ENV CUDA_HOME ENV CUDA_PATH
  PATH_SUFFIXES lib64 lib targets/x86_64-linux/lib lib/x86_64-linux-gnu)
if(NOT DEFINED COPPICE_NVCC_TRIED OR NOT COPPICE_NVCC_TRIED STREQUAL "${COPPICE_NVCC} ${COPPICE_CUDART}")
  coppice_why_no_nvcc(COPPICE_WHY_NO_NVCC)
  set(COPPICE_WHY_NO_NVCC "${COPPICE_WHY_NO_NVCC}" CACHE INTERNAL "")
  set(COPPICE_NVCC_TRIED "${COPPICE_NVCC} ${COPPICE_CUDART}" CACHE INTERNAL "")
endif()
if(COPPICE_WHY_NO_NVCC)
  if(COPPICE_CUDA STREQUAL "ON")
    message(FATAL_ERROR "  COPPICE_CUDA=ON, but ${COPPICE_WHY_NO_NVCC}")  # indented: CMake does not wrap it
  endif()
  message(STATUS "no sorting or scanning on NVIDIA GPUs: ${COPPICE_WHY_NO_NVCC}")
  return()
endif()
message(STATUS "nvcc: ${COPPICE_NVCC}")

set(gencode "")
foreach(sm IN LISTS COPPICE_CUDA_ARCHITECTURES)
  list(APPEND gencode -gencode=arch=compute_${sm},code=sm_${sm})
endforeach()
list(GET COPPICE_CUDA_ARCHITECTURES -1 sm)
list(APPEND gencode -gencode=arch=compute_${sm},code=compute_${sm})
set(cub ${CMAKE_BINARY_DIR}/cub/cub_primitives)
# What ptxas says of the kernels is kept for a test (tests/gpu/cub_kernels_test.py).
set(COPPICE_CUB_LOG ${cub}.log)
add_custom_command(OUTPUT ${cub}.nvcc.o BYPRODUCTS ${cub}.log
  COMMAND sh -c [["$@" 2> "$0" || { cat "$0" >&2; exit 1; }]] ${cub}.log
    ${COPPICE_CCACHE} ${COPPICE_NVCC} -ccbin ${CMAKE_CXX_COMPILER} -std=c++17 -O2 -DNDEBUG
    -Xcompiler=-fPIC,-fno-gnu-unique -Xptxas=-v ${gencode} -I${CMAKE_SOURCE_DIR}
    -c ${CMAKE_CURRENT_SOURCE_DIR}/cuda/cub_primitives.cu -o ${cub}.nvcc.o
  DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/cuda/cub_primitives.cu ${CMAKE_CURRENT_SOURCE_DIR}/cuda/cub_primitives.h
    ${CMAKE_CURRENT_SOURCE_DIR}/primitive_call.h
  COMMENT "Building CUDA object cub_primitives.o" VERBATIM)
# Without section groups: a linker that takes one of the same name from elsewhere (NVTX's inline functions, say) would drop
# ours, and what is local then refers to nothing.
add_custom_command(OUTPUT ${cub}.o
  COMMAND ${CMAKE_LINKER} -r --force-group-allocation ${cub}.nvcc.o ${COPPICE_CUDART} -o ${cub}.all.o
  COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=_ZN7coppice14cub_primitives* ${cub}.all.o ${cub}.o
  DEPENDS ${cub}.nvcc.o ${COPPICE_CUDART} COMMENT "Linking the CUDA runtime into cub_primitives.o" VERBATIM)
set(COPPICE_CUB_OBJECT ${cub}.o)

# What a bundle says of it: CUB's notice, and the toolkit's license (which lets the static runtime be passed on).
find_file(COPPICE_CUB_HEADER cub/cub.cuh HINTS ${beside_nvcc} PATH_SUFFIXES include/cccl include NO_DEFAULT_PATH)
file(GLOB cuda_license ${beside_nvcc}/EULA.txt ${beside_nvcc}/dist-info/nvidia_cuda_runtime*/licenses/License.txt)
if(COPPICE_CUB_HEADER)
  file(READ ${COPPICE_CUB_HEADER} notice LIMIT 4096)
  string(FIND "${notice}" "*/" end)
  string(SUBSTRING "${notice}" 0 ${end} notice)
  file(WRITE ${CMAKE_BINARY_DIR}/cub/licenses/cub "${notice}*/\n")
endif()
foreach(text IN LISTS cuda_license)
  configure_file(${text} ${CMAKE_BINARY_DIR}/cub/licenses/cuda COPYONLY)
endforeach()
install(DIRECTORY ${CMAKE_BINARY_DIR}/cub/licenses DESTINATION share/doc/coppice COMPONENT bundle EXCLUDE_FROM_ALL)
