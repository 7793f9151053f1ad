# coppice_add_kernels(target file...): compiles kernel files (x.kernels.cc) once to LLVM bitcode, embeds it in the
# target, and generates `x.kernels.h`, which declares the kernels to the host with their argument types.
#
# A compile error in a kernel file is clang's own message. Bitcode is shipped nearly raw: -O1 would stamp
# "do not unroll" on every loop (measured: up to 3.5 times slower stencils).
find_program(COPPICE_CLANG NAMES clang++-19 HINTS /usr/lib/llvm-19/bin REQUIRED)
find_program(COPPICE_OPT NAMES opt-19 opt HINTS /usr/lib/llvm-19/bin REQUIRED)

set(COPPICE_BITCODE_FLAGS -std=c++20 -O2 -g -Xclang -disable-llvm-passes -emit-llvm -c -fno-exceptions -fno-rtti
    -fno-math-errno -ffp-contract=on -fno-stack-protector -fno-unwind-tables -fno-asynchronous-unwind-tables
    -fno-threadsafe-statics -fno-pic -fconvergent-functions -Wall -Wextra -Wno-missing-field-initializers
    -DEIGEN_DONT_VECTORIZE -DEIGEN_NO_DEBUG)
set(COPPICE_BITCODE_PASSES
    "function(sroa,early-cse,simplifycfg),cgscc(inline,function(sroa,early-cse,simplifycfg)),globaldce,strip-nonlinetable-debuginfo")

if(COPPICE_CCACHE)
  set(COPPICE_CLANG_COMMAND ${COPPICE_CCACHE} ${COPPICE_CLANG})
else()
  set(COPPICE_CLANG_COMMAND ${COPPICE_CLANG})
endif()

# Bitcode of one file; sets ${out} to the shipped .bc. EXTRA: flags of another target (device intrinsics).
function(coppice_bitcode out source)
  cmake_parse_arguments(ARG "" "" "EXTRA" ${ARGN})
  get_filename_component(source ${source} ABSOLUTE)
  get_filename_component(name ${source} NAME_WE)
  get_filename_component(full ${source} NAME)
  set(raw ${CMAKE_CURRENT_BINARY_DIR}/kernels/${full}.debug.bc)
  set(shipped ${CMAKE_CURRENT_BINARY_DIR}/kernels/${full}.bc)
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/kernels)
  add_custom_command(OUTPUT ${raw} ${shipped}
    COMMAND ${COPPICE_CLANG_COMMAND} ${COPPICE_BITCODE_FLAGS} ${ARG_EXTRA} -I${COPPICE_INCLUDE_DIR} -isystem ${COPPICE_EIGEN_DIR}
            -MD -MF ${raw}.d -MT ${raw} ${source} -o ${raw}
    COMMAND ${COPPICE_OPT} "-passes=${COPPICE_BITCODE_PASSES}" ${raw} -o ${shipped}
    DEPENDS ${source} DEPFILE ${raw}.d VERBATIM COMMENT "Bitcode ${full}")
  set(${out} ${shipped} PARENT_SCOPE)
  set(${out}_DEBUG ${raw} PARENT_SCOPE)
endfunction()

set(COPPICE_INCLUDE_DIR ${CMAKE_SOURCE_DIR})
set(COPPICE_EIGEN_DIR /usr/include/eigen3)

function(coppice_add_kernels target)
  foreach(file IN LISTS ARGN)
    get_filename_component(name ${file} NAME_WE)
    coppice_bitcode(shipped ${file})
    set(header ${CMAKE_CURRENT_BINARY_DIR}/kernels/${name}.kernels.h)
    set(source ${CMAKE_CURRENT_BINARY_DIR}/kernels/${name}.kernels.gen.cc)
    add_custom_command(OUTPUT ${header} ${source}
      COMMAND coppice-kernelgen ${shipped_DEBUG} ${shipped} ${name} ${header} ${source}
      DEPENDS ${shipped} ${shipped_DEBUG} coppice-kernelgen VERBATIM COMMENT "Kernel header ${name}.kernels.h")
    # .incbin is invisible to the compiler's own dependency scan (and to ccache, which therefore must not see it).
    set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS ${shipped})
    target_sources(${target} PRIVATE ${source} ${header})
  endforeach()
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_BINARY_DIR}/kernels>)
endfunction()
