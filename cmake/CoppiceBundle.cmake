# The portable bundle: one .tar.xz that runs on x86-64 Linux with glibc 2.28 or newer and nothing else.
#
#     cmake --build build/release --target bundle      -> build/release/coppice-<version>-linux-x86_64.tar.xz
#
#     bin/<name>            links to libexec/launcher, which starts libexec/<name>
#     libexec/              the program, its benchmarks and the tests that run on any device
#     lib/coppice/          libcoppice.so (with LLVM inside) and the libraries it needs; runtime/: g++'s, where the system has none;
#                           glibc/: the C library and its loader, where the system's is older
#     share/coppice/assets  scenes
#     share/coppice/gpu_report.sh, gpu_report/
#     share/doc/coppice/    README.md, CHANGELOG.md, LICENSE, licenses of what is carried, commit: what it was built from
#     dev                   `./dev test`, `./dev gpu`
#
# Nothing is compiled anew: what the build made is linked once more, against LLVM's archives.
set(COPPICE_BUNDLE_TESTS gpu_unit gpu_gpu sparse_unit sparse_conformance sparse_stress sparse_gpu)
set(COPPICE_BUNDLE_NAME coppice-${PROJECT_VERSION}-linux-x86_64)

function(coppice_bundle_program name)
  cmake_parse_arguments(ARG "" "" "OF;LINKS" ${ARGN})
  add_executable(bundle_${name} EXCLUDE_FROM_ALL $<TARGET_OBJECTS:${ARG_OF}>)
  set_target_properties(bundle_${name} PROPERTIES LINKER_LANGUAGE CXX
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bundle/programs BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/../lib/coppice")
  target_link_libraries(bundle_${name} PRIVATE ${ARG_LINKS} coppice_bundle_library ${CMAKE_DL_LIBS} Threads::Threads)
  set_property(GLOBAL APPEND PROPERTY COPPICE_BUNDLE_PROGRAMS bundle_${name})
endfunction()

# Everything but apps, in one library: four test programs with LLVM in each of them would be 160 MB.
set(coppice_archives "")
foreach(name sparse executor gpu core)
  list(APPEND coppice_archives $<TARGET_FILE:coppice_${name}>)
endforeach()
file(WRITE ${CMAKE_BINARY_DIR}/bundle/empty.cc "")
add_library(coppice_bundle_library SHARED EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/bundle/empty.cc)
add_dependencies(coppice_bundle_library coppice_sparse coppice_executor coppice_gpu coppice_core)
set_target_properties(coppice_bundle_library PROPERTIES OUTPUT_NAME coppice LINK_DEPENDS "${coppice_archives}"
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bundle/library BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN")
target_link_libraries(coppice_bundle_library PRIVATE
  -Wl,--whole-archive ${coppice_archives} -Wl,--no-whole-archive -Wl,--as-needed ${COPPICE_LLVM_ARCHIVES}
  TBB::tbb Boost::context fmt::fmt ${CMAKE_DL_LIBS} Threads::Threads)
# LLVM stays to itself: a driver of the system's may bring its own. Loader paths must hold for what is carried, too.
file(GLOB llvm_archives RELATIVE ${LLVM_LIBRARY_DIR} ${LLVM_LIBRARY_DIR}/libLLVM*.a)
string(JOIN ":" llvm_archives ${llvm_archives})
# Not by mold 1.10, whose memory grows without bound over so long a list.
target_link_options(coppice_bundle_library PRIVATE -fuse-ld=bfd -Wl,--exclude-libs,${llvm_archives} -Wl,--gc-sections)

add_executable(coppice_launcher EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/apps/launcher/launcher.c)
set_target_properties(coppice_launcher PROPERTIES OUTPUT_NAME launcher C_STANDARD 11
  RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bundle)
# It starts with any glibc: it has a start of its own, and names libdl, which newer ones no longer offer to a linker.
find_library(COPPICE_OLD_LIBDL libdl.so.2 REQUIRED)
target_link_options(coppice_launcher PRIVATE -nostartfiles -Wl,--no-as-needed)
target_link_libraries(coppice_launcher PRIVATE ${COPPICE_OLD_LIBDL})

find_package(PNG REQUIRED)
set(bundle_apps $<TARGET_FILE:coppice_apps> $<TARGET_FILE:coppice_viewer> $<TARGET_FILE:coppice_output> TBB::tbb PNG::PNG fmt::fmt)
coppice_bundle_program(coppice OF coppice LINKS ${bundle_apps})
add_dependencies(bundle_coppice coppice_apps)
if(COPPICE_BUILD_TESTS)
  foreach(kind IN LISTS COPPICE_BUNDLE_TESTS)
    if(TARGET ${kind}_tests)
      string(REGEX REPLACE "_.*" "_test_kernels" kernels ${kind})
      if(TARGET ${kernels})
        coppice_bundle_program(${kind}_tests OF ${kind}_tests
          LINKS $<TARGET_FILE:${kernels}> TBB::tbb fmt::fmt GTest::gtest GTest::gtest_main)
        add_dependencies(bundle_${kind}_tests ${kernels})
      else()
        coppice_bundle_program(${kind}_tests OF ${kind}_tests LINKS TBB::tbb fmt::fmt GTest::gtest GTest::gtest_main)
      endif()
    endif()
  endforeach()
  coppice_bundle_program(apps_physics_tests OF apps_physics_tests
    LINKS ${bundle_apps} GTest::gtest GTest::gtest_main)
  add_dependencies(bundle_apps_physics_tests coppice_apps)
  coppice_bundle_program(coppice-gpu-ladder OF coppice-gpu-ladder
    LINKS ${bundle_apps} GTest::gtest)
  add_dependencies(bundle_coppice-gpu-ladder coppice_apps)
  # What tests start.
  foreach(name kept_kernels_program ending_program many_trees_program)
    coppice_bundle_program(${name} OF ${name} LINKS TBB::tbb fmt::fmt)
  endforeach()
endif()
if(COPPICE_BUILD_BENCHMARKS)
  get_property(portable_stencils GLOBAL PROPERTY COPPICE_PORTABLE_STENCILS)
  coppice_bundle_program(coppice-bench OF coppice_bench_objects LINKS $<TARGET_OBJECTS:coppice_bench_portable_peers>
    ${portable_stencils} ${bundle_apps})
  add_dependencies(bundle_coppice-bench coppice_apps coppice_bench_portable_peers coppice_portable_stencils)
endif()
get_property(programs GLOBAL PROPERTY COPPICE_BUNDLE_PROGRAMS)
foreach(target coppice_bundle_library ${programs})
  target_link_options(${target} PRIVATE -Wl,--disable-new-dtags -s)
endforeach()

# ---- what goes where: `cmake --install --component bundle` puts it there, cpack packs it
set(in_bundle COMPONENT bundle EXCLUDE_FROM_ALL)
install(TARGETS coppice_launcher RUNTIME DESTINATION libexec ${in_bundle})
install(TARGETS coppice_bundle_library LIBRARY DESTINATION lib/coppice ${in_bundle})
foreach(plugin coppice_vdb coppice_window)
  if(TARGET ${plugin})
    install(TARGETS ${plugin} LIBRARY DESTINATION lib/coppice ${in_bundle} OPTIONAL)
  endif()
endforeach()
install(DIRECTORY assets DESTINATION share/coppice ${in_bundle})
install(FILES README.md LICENSE CHANGELOG.md DESTINATION share/doc/coppice ${in_bundle})
install(PROGRAMS scripts/bundle_dev.sh RENAME dev DESTINATION . ${in_bundle})
install(PROGRAMS scripts/gpu_report.sh DESTINATION share/coppice ${in_bundle})
install(DIRECTORY scripts/gpu_report DESTINATION share/coppice ${in_bundle})
set(bundle_files "$<TARGET_FILE:coppice_bundle_library>")
foreach(program IN LISTS programs)
  list(APPEND bundle_files "$<TARGET_FILE:${program}>")
  string(REPLACE bundle_ "" name ${program})
  install(PROGRAMS $<TARGET_FILE:${program}> DESTINATION libexec RENAME ${name} ${in_bundle})
endforeach()
string(REPLACE bundle_ "" bundle_names "${programs}")
configure_file(${CMAKE_CURRENT_LIST_DIR}/bundle_install.cmake.in ${CMAKE_BINARY_DIR}/bundle/install.cmake.in @ONLY)
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/bundle/install.cmake INPUT ${CMAKE_BINARY_DIR}/bundle/install.cmake.in)
install(SCRIPT ${CMAKE_BINARY_DIR}/bundle/install.cmake ${in_bundle})

# The test programs have the same kernels as one another, farther apart than the 8 MiB that xz looks back by itself: with a
# dictionary of 128 MiB the archive is 56 MB and not 68. Unpacking takes as much memory. Preset 3 takes three times as long for 4 % less.
set(stage ${CMAKE_BINARY_DIR}/bundle/stage)
set(COPPICE_BUNDLE_PACK tar --create --sort=name --owner=0 --group=0 --numeric-owner "--use-compress-program=xz --lzma2=preset=1,dict=128MiB")
add_custom_target(bundle
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${stage}
  COMMAND ${CMAKE_COMMAND} --install ${CMAKE_BINARY_DIR} --component bundle --prefix ${stage}/${COPPICE_BUNDLE_NAME}
  COMMAND ${COPPICE_BUNDLE_PACK} --directory=${stage} --file=${CMAKE_BINARY_DIR}/${COPPICE_BUNDLE_NAME}.tar.xz ${COPPICE_BUNDLE_NAME}
  DEPENDS coppice_launcher coppice_bundle_library ${programs} USES_TERMINAL VERBATIM)
foreach(plugin coppice_vdb coppice_window)
  if(TARGET ${plugin})
    add_dependencies(bundle ${plugin})
  endif()
endforeach()
