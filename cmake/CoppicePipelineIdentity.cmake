# coppice_pipeline_identity(out file...): generates a source that defines coppice::jit::pipeline_identity(), a hash of the
# files' text, and sets ${out} to it. The cache of kernels takes it for the version of our own passes: a number that is
# raised by hand would be forgotten, and the program's own build id would empty the cache with every build of a model.
if(CMAKE_SCRIPT_MODE_FILE)
  # Run as `cmake -DOUTPUT=... -DFILES=a;b -P CoppicePipelineIdentity.cmake`.
  set(hashes "")
  foreach(file IN LISTS FILES)
    file(SHA256 ${file} hash)
    get_filename_component(name ${file} NAME)
    string(APPEND hashes "${name} ${hash}\n")
  endforeach()
  string(SHA256 identity "${hashes}")
  file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "// Generated: the identity of the code that specializes kernels.
#include \"gpu/jit/specialization_key.h\"

namespace coppice::jit {

std::string_view pipeline_identity() { return \"${identity}\"; }

}  // namespace coppice::jit
")
  return()
endif()

set(COPPICE_PIPELINE_IDENTITY_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

function(coppice_pipeline_identity out)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/pipeline_identity.cc)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} "-DFILES=${ARGN}" -P ${COPPICE_PIPELINE_IDENTITY_SCRIPT}
    DEPENDS ${ARGN} ${COPPICE_PIPELINE_IDENTITY_SCRIPT} VERBATIM COMMENT "Identity of the kernels' pipeline")
  set(${out} ${output} PARENT_SCOPE)
endfunction()
