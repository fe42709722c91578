# SPDX-License-Identifier: Apache-2.0
# How this project's own targets are built: C++20, warnings as errors, includes from the top folder, every header alone.
include_guard(GLOBAL)

set(PLATEAU_PYTHON ${PROJECT_SOURCE_DIR}/.venv/bin/python CACHE FILEPATH "The python whose torch wheel is used")

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()
find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
endif()

add_library(plateau_options INTERFACE)
target_compile_features(plateau_options INTERFACE cxx_std_20)
target_compile_options(plateau_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror>
  $<$<CXX_COMPILER_ID:Clang>:-Wno-sign-conversion> # not a part of GCC's -Wconversion
  -g1) # enough for backtraces; the JSON library's full debug information takes half of the build's time
target_include_directories(plateau_options INTERFACE ${PROJECT_SOURCE_DIR})

option(PLATEAU_HEADERS_ALONE "Compile each header alone, to see that it includes what it needs" ON)

# plateau_library(NAME SOURCES... LINK TARGETS...): a static library whose headers are also compiled alone.
function(plateau_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC plateau_options ${arg_LINK})
  set_target_properties(${name} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  if(NOT PLATEAU_HEADERS_ALONE)
    return()
  endif()
  file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/*.hpp)
  set(units)
  foreach(header IN LISTS headers)
    string(REPLACE "/" "_" unit ${header})
    file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/alone/${unit}.cpp CONTENT "#include \"${header}\"\n" @ONLY)
    list(APPEND units ${CMAKE_CURRENT_BINARY_DIR}/alone/${unit}.cpp)
  endforeach()
  if(units)
    add_library(${name}_headers OBJECT ${units})
    target_link_libraries(${name}_headers PRIVATE ${name})
    target_compile_options(${name}_headers PRIVATE -O0 -g0) # only their compiling matters
  endif()
endfunction()
