# Compiler flags, sanitizers, compiler cache, linker, and coppice_library().
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
# -Og, not -O0: Thrust's CPU algorithms are 150 times slower without optimisation.
set(CMAKE_CXX_FLAGS_DEBUG "-Og -g -DCOPPICE_DEBUG=1")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

find_program(COPPICE_CCACHE ccache)
if(COPPICE_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${COPPICE_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${COPPICE_CCACHE})
endif()
find_program(COPPICE_MOLD mold)
if(COPPICE_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wall> $<$<COMPILE_LANGUAGE:CXX>:-Wextra>
                    $<$<COMPILE_LANGUAGE:CXX>:-Wno-missing-field-initializers>)

set(COPPICE_SANITIZE "" CACHE STRING "sanitizers for host code, as in -fsanitize=")
if(COPPICE_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${COPPICE_SANITIZE}>
                      $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>)
  add_link_options(-fsanitize=${COPPICE_SANITIZE})
  if(COPPICE_SANITIZE MATCHES "undefined")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=undefined>)
  endif()
endif()

# coppice_library(name LINKS ...): the static library `coppice_<name>` of every .cc beside the caller's CMakeLists
# (subfolders included, but for those listed in EXCLUDE).
function(coppice_library name)
  cmake_parse_arguments(ARG "" "" "LINKS;EXCLUDE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  list(FILTER sources EXCLUDE REGEX "\\.kernels\\.cc$|\\.device\\.cc$")
  foreach(pattern IN LISTS ARG_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "${CMAKE_CURRENT_SOURCE_DIR}/${pattern}")
  endforeach()
  add_library(coppice_${name} STATIC ${sources})
  add_library(coppice::${name} ALIAS coppice_${name})
  target_include_directories(coppice_${name} PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>)
  target_link_libraries(coppice_${name} PUBLIC ${ARG_LINKS})
endfunction()
