# COPPICE_NVTX_INCLUDE: the folder of nvtx3/nvToolsExt.h, NVIDIA's header for ranges in profilers (Apache 2.0 with LLVM
# exception; no library belongs to it). Looked for where a CUDA toolkit may be, unless COPPICE_CUDA is OFF; OFF: without.
if(NOT COPPICE_CUDA STREQUAL "OFF")
  find_path(COPPICE_NVTX_INCLUDE nvtx3/nvToolsExt.h HINTS ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda
    PATH_SUFFIXES include targets/x86_64-linux/include DOC "folder of nvtx3/nvToolsExt.h, or OFF")
endif()
if(COPPICE_NVTX_INCLUDE)
  message(STATUS "NVTX: ${COPPICE_NVTX_INCLUDE}")
else()
  message(STATUS "no NVTX header: NVIDIA's profilers show no names of operations (COPPICE_NVTX_INCLUDE)")
endif()
