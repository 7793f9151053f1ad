# COPPICE_LIBDEVICE: libdevice.10.bc of a CUDA toolkit, the math functions of NVIDIA GPUs. It is embedded in the library,
# so that machines with a GPU need the driver only. Looked for in $CUDA_HOME, $CUDA_PATH, beside ptxas and in
# /usr/local/cuda, unless COPPICE_CUDA is OFF; OFF: none. A build without it works, but for kernels that call math
# functions and are to run on a GPU.
if(NOT COPPICE_CUDA STREQUAL "OFF")
  set(beside_ptxas "")
  if(COPPICE_PTXAS)
    get_filename_component(beside_ptxas "${COPPICE_PTXAS}" REALPATH)
    get_filename_component(beside_ptxas "${beside_ptxas}/../.." ABSOLUTE)
  endif()
  find_file(COPPICE_LIBDEVICE libdevice.10.bc HINTS ENV CUDA_HOME ENV CUDA_PATH ${beside_ptxas} /usr/local/cuda
    PATH_SUFFIXES nvvm/libdevice NO_DEFAULT_PATH DOC "libdevice.10.bc of a CUDA toolkit, or OFF")
endif()
if(COPPICE_LIBDEVICE)
  if(NOT EXISTS "${COPPICE_LIBDEVICE}")
    message(FATAL_ERROR "  COPPICE_LIBDEVICE: there is no file '${COPPICE_LIBDEVICE}'; expected the path of a CUDA toolkit's nvvm/libdevice/libdevice.10.bc, or OFF")
  endif()
  message(STATUS "libdevice: ${COPPICE_LIBDEVICE}")
elseif(COPPICE_CUDA STREQUAL "ON")
  message(FATAL_ERROR "  COPPICE_CUDA=ON, but no libdevice.10.bc was found: set CUDA_HOME, or COPPICE_LIBDEVICE to the path of one")
else()
  message(STATUS "no libdevice: kernels that call math functions will not run on NVIDIA GPUs (COPPICE_LIBDEVICE)")
endif()
