# coppice_add_kernels(target file... [INCLUDES folder...] [DEFINES name[=value]...] [NO_RELOAD]): compiles kernel files
# (x.kernels.cc) once to LLVM bitcode, embeds it in the target, and generates `x.kernels.h`, which declares the kernels to the
# host with their argument types.
# INCLUDES: folders whose headers the kernel files include; those beside a kernel file need no mention.
# DEFINES: macros of the kernel files; the target's own sources do not have them. A value may have spaces and quotes.
# NO_RELOAD: a program that takes over changed kernels while it runs (sparse/kernel_reload.h) leaves these as they are.
#
# In C++ a kernel file is called as its name is, with every other character made an underscore: `my-heat.kernels.cc` becomes
# `my-heat.kernels.h`, and in it `my_heat_kernels`. Its name has letters, digits, spaces and _ - . + (and whatever is not
# ASCII); names differ within a program, for its kernels are found by them.
#
# A compile error in a kernel file is clang's own message; what no device can run is coppice-kernelgen's, in one line. Bitcode is shipped nearly raw: -O1 would stamp
# "do not unroll" on every loop (measured: up to 3.5 times slower stencils).
#
# Used in this project's own build and, installed, by coppiceConfig.cmake, which sets the three variables to its own files.
set(COPPICE_KERNELGEN coppice-kernelgen)
set(COPPICE_INCLUDE_DIR ${CMAKE_SOURCE_DIR})
set(COPPICE_EIGEN_DIR /usr/include/eigen3)

find_program(COPPICE_CLANG NAMES clang++-19 HINTS /usr/lib/llvm-19/bin)
find_program(COPPICE_OPT NAMES opt-19 opt HINTS /usr/lib/llvm-19/bin)

# Sets ${problem} to a line that says what is wrong with COPPICE_CLANG and COPPICE_OPT, or to nothing.
function(coppice_check_kernel_compiler problem)
  set(${problem} "" PARENT_SCOPE)
  foreach(tool CLANG OPT)
    if(NOT EXISTS "${COPPICE_${tool}}")
      set(${problem} "kernels need clang++-19 and opt-19 (COPPICE_${tool} is ${COPPICE_${tool}}): install the Debian packages clang-19 and llvm-19-dev" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  execute_process(COMMAND ${COPPICE_CLANG} -dumpversion OUTPUT_VARIABLE version ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT version MATCHES "^19\\.")
    set(${problem} "kernels need clang 19, and COPPICE_CLANG, ${COPPICE_CLANG}, is of version '${version}': install the Debian package clang-19" PARENT_SCOPE)
  endif()
endfunction()

# -Wno-psabi: vectors wider than the host's registers are never passed between files, kernels are inlined whole.
set(COPPICE_BITCODE_FLAGS -std=c++20 -O2 -g -Xclang -fno-use-ctor-homing -Xclang -disable-llvm-passes -emit-llvm -c -fno-exceptions -fno-rtti
    -fno-math-errno -ffp-contract=fast-honor-pragmas -fcomplex-arithmetic=improved
    -Xclang -ffloat16-excess-precision=none -fno-stack-protector
    -fno-unwind-tables -fno-asynchronous-unwind-tables
    -fno-threadsafe-statics -fno-pic -fconvergent-functions -Wall -Wextra -Wno-missing-field-initializers
    -Wno-unknown-assumption -Wno-psabi
    -DEIGEN_DONT_VECTORIZE -DEIGEN_NO_DEBUG)
set(COPPICE_BITCODE_PASSES
    "strip-nonlinetable-debuginfo,function(sroa,early-cse,simplifycfg),cgscc(inline,function(sroa,early-cse,simplifycfg)),globaldce")

# Sanitizers: clang marks the functions, so that no pass moves what they watch; the specializer's own passes instrument
# them. Not for GPU code.
set(COPPICE_BITCODE_SANITIZE "")
foreach(sanitizer address thread)
  if("${COPPICE_SANITIZE}" MATCHES "${sanitizer}")
    list(APPEND COPPICE_BITCODE_SANITIZE -fsanitize=${sanitizer})
  endif()
endforeach()

if(COPPICE_CCACHE)
  set(COPPICE_CLANG_COMMAND ${COPPICE_CCACHE} ${COPPICE_CLANG})
else()
  set(COPPICE_CLANG_COMMAND ${COPPICE_CLANG})
endif()

# Bitcode of one file; sets ${out} to the shipped .bc. EXTRA: flags of another target (device intrinsics).
# INCLUDES: folders whose headers the file includes. DEFINES: macros of it. DEPENDS: generated files that it includes.
function(coppice_bitcode out source)
  cmake_parse_arguments(ARG "" "" "EXTRA;INCLUDES;DEFINES;DEPENDS" ${ARGN})
  set(includes "")
  foreach(folder IN LISTS ARG_INCLUDES)
    get_filename_component(folder ${folder} ABSOLUTE)
    list(APPEND includes -I${folder})
  endforeach()
  list(TRANSFORM ARG_DEFINES PREPEND -D)
  set(sanitize ${COPPICE_BITCODE_SANITIZE})
  if(ARG_EXTRA MATCHES "nvptx64")
    set(sanitize "")
  endif()
  get_filename_component(source ${source} ABSOLUTE)
  get_filename_component(full ${source} NAME)
  set(raw ${CMAKE_CURRENT_BINARY_DIR}/kernels/${full}.debug.bc)
  set(shipped ${CMAKE_CURRENT_BINARY_DIR}/kernels/${full}.bc)
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/kernels)
  # Some generators do not notice that a command has changed. This file is written when its text is another one.
  set(defines "")
  if(ARG_DEFINES OR EXISTS ${raw}.defines)
    set(defines ${raw}.defines)
    string(REPLACE ";" "\n" text "${ARG_DEFINES}")
    file(GENERATE OUTPUT ${defines} CONTENT "${text}\n")
  endif()
  add_custom_command(OUTPUT ${raw} ${shipped}
    COMMAND ${COPPICE_CLANG_COMMAND} ${COPPICE_BITCODE_FLAGS} ${sanitize} ${ARG_EXTRA} -I${COPPICE_INCLUDE_DIR} -isystem ${COPPICE_EIGEN_DIR}
            ${includes} ${ARG_DEFINES} -MD -MF ${raw}.d -MQ ${raw} ${source} -o ${raw}
    COMMAND ${COPPICE_OPT} "-passes=${COPPICE_BITCODE_PASSES}" ${raw} -o ${shipped}
    DEPENDS ${source} ${defines} ${ARG_DEPENDS} DEPFILE ${raw}.d VERBATIM COMMENT "Bitcode ${full}")
  set(${out} ${shipped} PARENT_SCOPE)
  set(${out}_DEBUG ${raw} PARENT_SCOPE)
  set(${out}_FLAGS ${COPPICE_BITCODE_FLAGS} ${sanitize} ${ARG_EXTRA} -I${COPPICE_INCLUDE_DIR} -isystem ${COPPICE_EIGEN_DIR}
      ${includes} ${ARG_DEFINES} PARENT_SCOPE)
endfunction()

# Lets compile_commands.json say how clang compiles a kernel file, which editors ask: a target that nobody builds stands for
# what the custom commands do. A file that several targets compile is listed once.
function(coppice_show_kernels_to_editors target source)
  cmake_parse_arguments(ARG "" "" "INCLUDES;DEFINES" ${ARGN})
  if(NOT CMAKE_EXPORT_COMPILE_COMMANDS)
    return()
  endif()
  get_property(shown GLOBAL PROPERTY COPPICE_KERNELS_SHOWN)
  get_filename_component(source ${source} ABSOLUTE)
  if(source IN_LIST shown)
    return()
  endif()
  set_property(GLOBAL APPEND PROPERTY COPPICE_KERNELS_SHOWN ${source})
  set(shadow ${target}_kernels_for_editors)
  if(NOT TARGET ${shadow})
    add_library(${shadow} OBJECT EXCLUDE_FROM_ALL)
    set(flags ${COPPICE_BITCODE_FLAGS})
    list(REMOVE_ITEM flags -std=c++20 -c -emit-llvm -Xclang -fno-use-ctor-homing -disable-llvm-passes -ffloat16-excess-precision=none)
    # Nothing that the project sets for its own files, and no tool that it has run on them.
    set_target_properties(${shadow} PROPERTIES COMPILE_OPTIONS "${flags}" COMPILE_DEFINITIONS "" INCLUDE_DIRECTORIES ""
      CXX_STANDARD 20 CXX_EXTENSIONS OFF CXX_STANDARD_REQUIRED ON POSITION_INDEPENDENT_CODE OFF UNITY_BUILD OFF
      INTERPROCEDURAL_OPTIMIZATION OFF CXX_COMPILER_LAUNCHER "" CXX_CLANG_TIDY "" CXX_INCLUDE_WHAT_YOU_USE "" CXX_CPPCHECK ""
      AUTOMOC OFF AUTOUIC OFF AUTORCC OFF)
    target_include_directories(${shadow} PRIVATE ${COPPICE_INCLUDE_DIR})
    target_include_directories(${shadow} SYSTEM PRIVATE ${COPPICE_EIGEN_DIR})
  endif()
  target_sources(${shadow} PRIVATE ${source})
  set_property(SOURCE ${source} APPEND PROPERTY COMPILE_DEFINITIONS ${ARG_DEFINES})
  foreach(folder IN LISTS ARG_INCLUDES)
    get_filename_component(folder ${folder} ABSOLUTE)
    target_include_directories(${shadow} PRIVATE ${folder})
  endforeach()
endfunction()

# What gpu/kernel_builder.h reads, which does these commands again in a running program. It and its path stay in the build's
# folder: where that is gone, nothing is compiled again.
function(coppice_kernel_recipe recipe name source bitcode flags)
  get_property(made GLOBAL PROPERTY COPPICE_KERNEL_RECIPES)
  if(recipe IN_LIST made)
    return()  # of a file that several targets compile
  endif()
  set_property(GLOBAL APPEND PROPERTY COPPICE_KERNEL_RECIPES ${recipe})
  list(JOIN flags "\nflag " flags)
  get_filename_component(source ${source} ABSOLUTE)
  file(GENERATE OUTPUT ${recipe} CONTENT "coppice kernel recipe 1
name ${name}
source ${source}
folder ${CMAKE_CURRENT_BINARY_DIR}
bitcode ${bitcode}
dependencies ${bitcode}.d
clang ${COPPICE_CLANG}
flag ${flags}
opt ${COPPICE_OPT}
passes ${COPPICE_BITCODE_PASSES}
kernelgen $<TARGET_FILE:${COPPICE_KERNELGEN}>
library ${COPPICE_INCLUDE_DIR}
eigen ${COPPICE_EIGEN_DIR}
")
endfunction()

# Once all targets are known: a program finds its kernels by the names of their files, and the linker would take one of two
# files of one name, without a word where they are in libraries.
function(coppice_check_kernel_names_later)
  get_property(is_asked GLOBAL PROPERTY COPPICE_KERNEL_NAMES_ARE_CHECKED)
  if(NOT is_asked)
    set_property(GLOBAL PROPERTY COPPICE_KERNEL_NAMES_ARE_CHECKED TRUE)
    cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL coppice_check_kernel_names ${CMAKE_SOURCE_DIR})
  endif()
endfunction()

function(coppice_check_kernel_names folder)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(type MATCHES "EXECUTABLE|SHARED_LIBRARY|MODULE_LIBRARY")
      coppice_check_kernel_names_of(${target})
    endif()
  endforeach()
  get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(below IN LISTS folders)
    coppice_check_kernel_names(${below})
  endforeach()
endfunction()

function(coppice_check_kernel_names_of program)
  set(open ${program})
  set(seen "")
  while(NOT open STREQUAL "")
    list(POP_FRONT open target)
    string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" target "${target}")
    if(NOT TARGET "${target}" OR target IN_LIST seen)
      continue()
    endif()
    list(APPEND seen ${target})
    get_property(names TARGET ${target} PROPERTY COPPICE_KERNEL_FILES)
    get_property(sources TARGET ${target} PROPERTY COPPICE_KERNEL_SOURCES)
    foreach(name source IN ZIP_LISTS names sources)
      if(DEFINED "source_${name}" AND NOT source_${name} STREQUAL source)
        message(FATAL_ERROR "coppice_add_kernels: ${program} has two kernel files that are called ${name} in C++, "
                "${source_${name}} and ${source}; rename one of them")
      endif()
      set("source_${name}" "${source}")
    endforeach()
    foreach(property LINK_LIBRARIES INTERFACE_LINK_LIBRARIES)
      get_property(more TARGET ${target} PROPERTY ${property})
      list(APPEND open ${more})
    endforeach()
  endwhile()
endfunction()

# A file that several targets of a folder compile is compiled once.
function(coppice_check_same_flags target path)
  get_property(flags DIRECTORY PROPERTY "COPPICE_KERNEL_FLAGS ${path}")
  get_property(other DIRECTORY PROPERTY "COPPICE_KERNEL_TARGET ${path}")
  if(other AND NOT flags STREQUAL "${ARGN}")
    message(FATAL_ERROR "coppice_add_kernels: ${path} has other INCLUDES or DEFINES in ${target} than in ${other}; add one of "
            "them in another folder")
  endif()
  set_property(DIRECTORY PROPERTY "COPPICE_KERNEL_FLAGS ${path}" "${ARGN}")
  set_property(DIRECTORY PROPERTY "COPPICE_KERNEL_TARGET ${path}" ${target})
endfunction()

# Ends with one line where a macro of a list cannot be handed on as it is.
function(coppice_check_kernel_defines list)
  foreach(define IN LISTS ${list})
    string(REGEX REPLACE "=.*" "" name "${define}")
    if(define MATCHES ";")
      message(FATAL_ERROR "coppice_add_kernels: DEFINES '${define}' has a semicolon, which no value may have; give several macros "
              "as several arguments")
    elseif(define MATCHES "[\n\r]")
      message(FATAL_ERROR "coppice_add_kernels: the value of ${name} in DEFINES has several lines")
    elseif(NOT name MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
      message(FATAL_ERROR "coppice_add_kernels: DEFINES '${define}' is not name or name=value, with the name of a macro")
    endif()
  endforeach()
endfunction()

function(coppice_add_kernels target)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "NO_RELOAD" "" "INCLUDES;DEFINES")
  coppice_check_kernel_defines(ARG_DEFINES)  # each as it was given; other arguments may be lists
  cmake_parse_arguments(ARG "NO_RELOAD" "" "INCLUDES;DEFINES" ${ARGN})
  foreach(file IN LISTS ARG_UNPARSED_ARGUMENTS)
    get_filename_component(full ${file} NAME)
    string(REGEX REPLACE "(\\.kernels)?\\.[^.]*$" "" stem "${full}")
    if(full MATCHES "[][#$\"'\\\\<>|&*?(){}!^%:`~=,@]")
      message(FATAL_ERROR "coppice_add_kernels: the name of ${full} has the character '${CMAKE_MATCH_0}'; kernel files' names "
              "have letters, digits, spaces and _ - . +")
    endif()
    string(MAKE_C_IDENTIFIER "${stem}" name)
    get_property(names TARGET ${target} PROPERTY COPPICE_KERNEL_FILES)
    if(name IN_LIST names)
      message(FATAL_ERROR "coppice_add_kernels: ${target} has two kernel files that are called ${name} in C++; rename ${full}")
    endif()
    get_filename_component(path ${file} ABSOLUTE)
    get_property(other DIRECTORY PROPERTY "COPPICE_KERNEL_SOURCE ${stem}")
    if(other AND NOT other STREQUAL path)
      message(FATAL_ERROR "coppice_add_kernels: ${other} and ${path} would both be declared by ${stem}.kernels.h; rename one of "
              "them, or add one in another folder")
    endif()
    set_property(DIRECTORY PROPERTY "COPPICE_KERNEL_SOURCE ${stem}" "${path}")
    set_property(TARGET ${target} APPEND PROPERTY COPPICE_KERNEL_FILES ${name})
    set_property(TARGET ${target} APPEND PROPERTY COPPICE_KERNEL_SOURCES "${path}")
    coppice_check_kernel_names_later()
    coppice_check_same_flags(${target} ${path} INCLUDES ${ARG_INCLUDES} DEFINES ${ARG_DEFINES})
    coppice_bitcode(shipped ${file} INCLUDES ${ARG_INCLUDES} DEFINES ${ARG_DEFINES})
    set(header ${CMAKE_CURRENT_BINARY_DIR}/kernels/${stem}.kernels.h)
    set(source ${CMAKE_CURRENT_BINARY_DIR}/kernels/${stem}.kernels.gen.cc)
    set(recipe "")
    if(NOT ARG_NO_RELOAD)
      set(recipe ${CMAKE_CURRENT_BINARY_DIR}/kernels/${stem}.kernels.recipe)
      coppice_kernel_recipe(${recipe} ${name} ${file} ${shipped_DEBUG} "${shipped_FLAGS}")
    endif()
    add_custom_command(OUTPUT ${header} ${source}
      COMMAND ${COPPICE_KERNELGEN} ${shipped_DEBUG} ${shipped} ${name} ${COPPICE_INCLUDE_DIR} ${COPPICE_EIGEN_DIR} ${header} ${source}
              ${recipe}
      DEPENDS ${shipped} ${shipped_DEBUG} ${COPPICE_KERNELGEN} VERBATIM COMMENT "Kernel header ${stem}.kernels.h")
    # .incbin is invisible to the compiler's own dependency scan (and to ccache, which therefore must not see it).
    set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS ${shipped})
    target_sources(${target} PRIVATE ${source} ${header})
    coppice_show_kernels_to_editors(${target} ${file} INCLUDES ${ARG_INCLUDES} DEFINES ${ARG_DEFINES})
  endforeach()
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_BINARY_DIR}/kernels>)
endfunction()
