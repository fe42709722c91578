# SPDX-License-Identifier: Apache-2.0
include_guard(GLOBAL)

# plateau_embed(TARGET FILE NAME): the text of FILE as `std::string_view const NAME` in namespace plateau, so that the
# program needs no file beside it. Declare it `extern std::string_view const NAME;` where it is used.
function(plateau_embed target file name)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  file(READ ${source} text)
  set(unit ${CMAKE_CURRENT_BINARY_DIR}/embedded/${name}.cpp)
  string(CONCAT content
    "#include <string_view>\nnamespace plateau {\nextern std::string_view const ${name};\n"
    "std::string_view const ${name} = R\"embedded(${text})embedded\";\n} // namespace plateau\n")
  file(CONFIGURE OUTPUT ${unit} CONTENT "@content@" @ONLY)
  target_sources(${target} PRIVATE ${unit})
endfunction()
