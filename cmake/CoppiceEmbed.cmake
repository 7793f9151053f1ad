# coppice_embed_text(target name file...): embeds text files in the target. Generates `<name>.h`, which declares
#     std::string_view coppice::embedded::<name>(std::string_view file_name);     // empty when there is no such file
# and puts its folder on the target's private include path. Files are embedded again when they change.
if(CMAKE_SCRIPT_MODE_FILE)
  # Run as `cmake -DNAME=... -DOUTPUT=... -DFILES=a;b -P CoppiceEmbed.cmake`.
  set(cases "")
  foreach(file IN LISTS FILES)
    file(READ ${file} text)
    get_filename_component(file_name ${file} NAME)
    string(APPEND cases "  if (file_name == \"${file_name}\") return R\"embedded(${text})embedded\";\n")
  endforeach()
  file(WRITE ${OUTPUT} "// Generated: text files embedded in the program.\n#include \"${NAME}.h\"\n\n"
    "namespace coppice::embedded {\n\nstd::string_view ${NAME}(std::string_view file_name) {\n${cases}  return {};\n}\n\n"
    "}  // namespace coppice::embedded\n")
  return()
endif()

set(COPPICE_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

function(coppice_embed_text target name)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/embedded)
  set(files "")
  foreach(file IN LISTS ARGN)
    get_filename_component(file ${file} ABSOLUTE)
    list(APPEND files ${file})
  endforeach()
  file(CONFIGURE OUTPUT ${folder}/${name}.h CONTENT "// Generated: text files embedded in the program, by name.
#pragma once

#include <string_view>

namespace coppice::embedded {

std::string_view @name@(std::string_view file_name);

}  // namespace coppice::embedded
" @ONLY)
  add_custom_command(OUTPUT ${folder}/${name}.cc
    COMMAND ${CMAKE_COMMAND} -DNAME=${name} -DOUTPUT=${folder}/${name}.cc "-DFILES=${files}" -P ${COPPICE_EMBED_SCRIPT}
    DEPENDS ${files} ${COPPICE_EMBED_SCRIPT} VERBATIM COMMENT "Embed ${name}")
  target_sources(${target} PRIVATE ${folder}/${name}.cc)
  target_include_directories(${target} PRIVATE ${folder})
endfunction()
