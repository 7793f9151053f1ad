# coppice_tests(folder LINKS ...): tests/<folder>/*_test.cc, one executable per kind. The kind is the file's suffix:
# x_conformance_test.cc, x_physics_test.cc, x_apps_test.cc, x_stress_test.cc, x_gpu_test.cc, x_long_test.cc; any other is a unit test.
# The kind becomes the ctest label.
set(COPPICE_TEST_KINDS conformance physics apps stress gpu long)
function(coppice_tests folder)
  cmake_parse_arguments(ARG "" "" "LINKS;KERNELS" ${ARGN})
  file(GLOB all CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${folder}/*_test.cc)
  if(ARG_KERNELS)  # An archive: each program gets the kernel files that it names, not all of them (15 to 60 MB).
    add_library(${folder}_test_kernels STATIC)
    coppice_add_kernels(${folder}_test_kernels ${ARG_KERNELS})
    target_link_libraries(${folder}_test_kernels PUBLIC ${ARG_LINKS})
    list(PREPEND ARG_LINKS ${folder}_test_kernels)
  endif()
  foreach(kind unit ${COPPICE_TEST_KINDS})
    set(sources ${all})
    if(kind STREQUAL "unit")
      foreach(other IN LISTS COPPICE_TEST_KINDS)
        list(FILTER sources EXCLUDE REGEX "_${other}_test\\.cc$")
      endforeach()
    else()
      list(FILTER sources INCLUDE REGEX "_${kind}_test\\.cc$")
    endif()
    if(NOT sources)
      continue()
    endif()
    set(target ${folder}_${kind}_tests)
    add_executable(${target} ${sources})
    # A fifth less time for compilers than with -O2; the libraries are as users have them.
    target_compile_options(${target} PRIVATE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)
    coppice_use_precompiled_headers(${target} tests)
    target_link_libraries(${target} PRIVATE ${ARG_LINKS} GTest::gmock GTest::gtest GTest::gtest_main)
    set(timeout 120)
    if(NOT kind STREQUAL "unit")
      set(timeout 900)
    endif()
    if(COPPICE_SANITIZE)  # 5 to 20 times slower
      math(EXPR timeout "${timeout} * 5")
    endif()
    gtest_discover_tests(${target} TEST_PREFIX "${folder}." DISCOVERY_TIMEOUT 60
      PROPERTIES LABELS ${kind} TIMEOUT ${timeout} ENVIRONMENT "${COPPICE_TEST_ENVIRONMENT}")
  endforeach()
endfunction()
# Suppressions: oneTBB is not instrumented (race:), LeakSanitizer needs none.
set(COPPICE_TEST_ENVIRONMENT "TSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/tsan.supp:halt_on_error=1")
