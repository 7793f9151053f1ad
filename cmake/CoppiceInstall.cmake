# What `cmake --install build/release --prefix P` puts into P, wherever P is and is moved to later:
#
#     bin/coppice                         the program; it finds its assets and its plugin from where it lies
#     lib/libcoppice_{core,gpu,executor,sparse,output,viewer,apps}.a  the library, its writers of files, the viewer, and the solver
#     lib/coppice/libcoppice_{vdb,window}.so   the plugins that write .vdb files and show the viewer's window
#     lib/libcoppice_mpi.a                remote references over MPI, where the build had one
#     include/coppice/{coppice,core,gpu,executor,sparse}/   headers; include/coppice is what is put on the include path
#     lib/cmake/coppice/                  find_package(coppice): the target coppice::coppice, coppice_add_kernels(); with
#                                         COMPONENTS output viewer solver, which need libpng: coppice::output, coppice::viewer,
#                                         coppice::solver; and mpi, which needs MPI: coppice::mpi
#     libexec/coppice/coppice-kernelgen   used by coppice_add_kernels()
#     share/coppice/{assets,examples}/, share/doc/coppice/
#
# Folder names are fixed, not GNUInstallDirs': the program and the CMake files find each other by them.
include(CMakePackageConfigHelpers)
set(COPPICE_CMAKE_DIR lib/cmake/coppice)

# The one target that users link.
add_library(coppice_library INTERFACE)
add_library(coppice::coppice ALIAS coppice_library)
set_target_properties(coppice_library PROPERTIES EXPORT_NAME coppice)
target_link_libraries(coppice_library INTERFACE coppice_sparse)
target_compile_features(coppice_library INTERFACE cxx_std_20)
target_include_directories(coppice_library INTERFACE $<INSTALL_INTERFACE:include/coppice>)
# Headers that count objects, and instrumented libraries, need the same of whoever uses them.
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  target_compile_definitions(coppice_library INTERFACE COPPICE_DEBUG=1)
endif()
if(COPPICE_SANITIZE)
  target_compile_options(coppice_library INTERFACE -fsanitize=${COPPICE_SANITIZE})
  target_link_options(coppice_library INTERFACE -fsanitize=${COPPICE_SANITIZE})
endif()

foreach(name core gpu executor sparse)
  set_target_properties(coppice_${name} PROPERTIES EXPORT_NAME ${name})
endforeach()
set_target_properties(coppice-kernelgen PROPERTIES EXPORT_NAME kernelgen)
set_target_properties(coppice coppice-kernelgen PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)  # LLVM's folder
install(TARGETS coppice_library coppice_sparse coppice_executor coppice_gpu coppice_core coppice-kernelgen EXPORT coppice
  ARCHIVE DESTINATION lib RUNTIME DESTINATION libexec/coppice)
install(EXPORT coppice NAMESPACE coppice:: FILE coppiceTargets.cmake DESTINATION ${COPPICE_CMAKE_DIR})

# Writers of files. Plugins, the viewer's window too, are found by the program's run path, wherever that program is.
set_target_properties(coppice_output PROPERTIES EXPORT_NAME output)
target_link_libraries(coppice_output PUBLIC coppice_library)
target_link_options(coppice_output INTERFACE "$<INSTALL_INTERFACE:LINKER:-rpath,$<INSTALL_PREFIX>/lib/coppice>")
install(TARGETS coppice_output EXPORT coppice_output ARCHIVE DESTINATION lib)
install(EXPORT coppice_output NAMESPACE coppice:: FILE coppiceOutputTargets.cmake DESTINATION ${COPPICE_CMAKE_DIR})

set_target_properties(coppice_viewer PROPERTIES EXPORT_NAME viewer)
install(TARGETS coppice_viewer EXPORT coppice_viewer ARCHIVE DESTINATION lib)
install(EXPORT coppice_viewer NAMESPACE coppice:: FILE coppiceViewerTargets.cmake DESTINATION ${COPPICE_CMAKE_DIR})

# The solver, for programs that put stages of their own into it.
set_target_properties(coppice_apps PROPERTIES EXPORT_NAME solver)
install(TARGETS coppice_apps EXPORT coppice_solver ARCHIVE DESTINATION lib)
install(EXPORT coppice_solver NAMESPACE coppice:: FILE coppiceSolverTargets.cmake DESTINATION ${COPPICE_CMAKE_DIR})

# Remote references over MPI.
set(COPPICE_HAS_MPI FALSE)
if(TARGET coppice_mpi)
  set(COPPICE_HAS_MPI TRUE)
  set_target_properties(coppice_mpi PROPERTIES EXPORT_NAME mpi)
  target_link_libraries(coppice_mpi INTERFACE $<INSTALL_INTERFACE:coppice::coppice>)
  add_dependencies(coppice coppice_mpi)  # who builds the program can install it
  install(TARGETS coppice_mpi EXPORT coppice_mpi ARCHIVE DESTINATION lib)
  install(EXPORT coppice_mpi NAMESPACE coppice:: FILE coppiceMpiTargets.cmake DESTINATION ${COPPICE_CMAKE_DIR})
endif()

configure_package_config_file(cmake/coppiceConfig.cmake.in ${CMAKE_BINARY_DIR}/cmake/coppiceConfig.cmake
  INSTALL_DESTINATION ${COPPICE_CMAKE_DIR} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/cmake/coppiceConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/cmake/coppiceConfig.cmake ${CMAKE_BINARY_DIR}/cmake/coppiceConfigVersion.cmake
  cmake/CoppiceKernels.cmake cmake/CoppiceEmbed.cmake DESTINATION ${COPPICE_CMAKE_DIR})

# LLVM's headers are none of a user's business.
install(DIRECTORY coppice core gpu executor sparse DESTINATION include/coppice
  FILES_MATCHING PATTERN "*.h" PATTERN "llvm_module.h" EXCLUDE)
# Of apps, what coppice/output.h, coppice/viewer.h and coppice/solver.h include and no more.
install(FILES apps/output/grid_vti.h apps/output/growing_file.h apps/output/particle_ply.h apps/output/particle_vtu.h apps/output/pvd_log.h apps/output/vdb_writer.h
  apps/output/write_ply.h apps/output/write_png.h apps/output/write_vdb.h apps/output/write_vti.h apps/output/write_vtu.h
  DESTINATION include/coppice/apps/output)
install(FILES apps/viewer/viewer.h DESTINATION include/coppice/apps/viewer)
install(FILES apps/geometry/stroke.h DESTINATION include/coppice/apps/geometry)
install(DIRECTORY apps/mpm apps/scene DESTINATION include/coppice/apps FILES_MATCHING PATTERN "*.h")
install(FILES apps/render/color_map.h apps/render/image.h apps/render/packed_points.h apps/render/volume_style.h DESTINATION include/coppice/apps/render)

install(TARGETS coppice RUNTIME DESTINATION bin)
install(DIRECTORY assets DESTINATION share/coppice)
install(DIRECTORY examples DESTINATION share/coppice PATTERN ".clang-format" EXCLUDE)
# The pages lie to each other as in the sources, and what they link to beside them is linked to.
install(DIRECTORY docs DESTINATION share/doc/coppice)
install(FILES README.md CONTRIBUTING.md LICENSE CHANGELOG.md DESTINATION share/doc/coppice)
foreach(folder assets examples)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/links)
  file(CREATE_LINK ../../coppice/${folder} ${CMAKE_BINARY_DIR}/links/${folder} SYMBOLIC)
  install(FILES ${CMAKE_BINARY_DIR}/links/${folder} DESTINATION share/doc/coppice)
endforeach()
