# Headers of others that nearly every file includes (Eigen by core/math.h, which sets it up) are compiled once: they were half of the
# compilers' time for apps, a tenth to a third for the rest. The dev preset does without, so that a file which forgets to include
# what it uses is found there.
#
#     coppice_use_precompiled_headers(<target> <libraries | tests>)
set(COPPICE_COMMON_HEADERS <fmt/format.h> <algorithm> <array> <atomic> <chrono> <cmath> <condition_variable> <cstdint> <cstring> <filesystem>
  <fstream> <functional> <map> <memory> <mutex> <numeric> <optional> <string> <string_view> <thread> <utility> <vector>)

# Each set of flags has its own. Libraries are compiled as position-independent code, programs are not.
function(coppice_add_library_headers)
  coppice_precompile(coppice_library_headers STATIC "void coppice_library_headers() {}" LINKS fmt::fmt Eigen3::Eigen
    HEADERS ${CMAKE_SOURCE_DIR}/core/math.h ${COPPICE_COMMON_HEADERS} <span> <unordered_map> <variant>)
  target_include_directories(coppice_library_headers PRIVATE ${CMAKE_SOURCE_DIR})
endfunction()
function(coppice_add_test_headers)
  coppice_precompile(coppice_test_headers EXECUTABLE "int main() {}" LINKS fmt::fmt GTest::gmock GTest::gtest
    HEADERS ${COPPICE_COMMON_HEADERS} <gmock/gmock.h> <gtest/gtest.h> <random> <set>)
  target_compile_options(coppice_test_headers PRIVATE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)
endfunction()
function(coppice_precompile target kind text)
  cmake_parse_arguments(ARG "" "" "LINKS;HEADERS" ${ARGN})
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/${target}.cc CONTENT "${text}\n")
  if(kind STREQUAL EXECUTABLE)
    add_executable(${target} EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/${target}.cc)
  else()
    add_library(${target} ${kind} EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/${target}.cc)
  endif()
  target_link_libraries(${target} PRIVATE ${ARG_LINKS})
  target_precompile_headers(${target} PRIVATE ${ARG_HEADERS})
  coppice_cache_precompiled(${target})
endfunction()

function(coppice_use_precompiled_headers target of)
  if(of STREQUAL tests)
    target_precompile_headers(${target} REUSE_FROM coppice_test_headers)
  else()
    target_precompile_headers(${target} REUSE_FROM coppice_library_headers)
  endif()
  coppice_cache_precompiled(${target})
endfunction()
# ccache wants to be told that it may know such headers by what is in them.
function(coppice_cache_precompiled target)
  if(COPPICE_CCACHE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND};-E;env;CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime;${COPPICE_CCACHE}")
  endif()
endfunction()
