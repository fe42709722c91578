# SPDX-License-Identifier: Apache-2.0
# Tests and their labels: unit (pure, fast), scenario (real processes, a fake worker), faults (the same), slurm (the
# same, on a Slurm of two nodes), torch (the real worker), pretend (the same on the pretend GPU), gpu (the same on a real
# one), sanitize and fuzz (see plateau_sanitized_tests).
# Every test has a deadline.
include_guard(GLOBAL)
find_package(GTest REQUIRED)
include(GoogleTest)

# plateau_test(NAME SOURCES... LINK TARGETS... LABELS unit [TIMEOUT 120]): one GoogleTest program, a CTest test per case.
function(plateau_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;LINK;LABELS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE plateau_options ${arg_LINK} GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE PLATEAU_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120
    PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT})
endfunction()

# plateau_pytest(NAME FILE LABELS scenario [TIMEOUT 120] [WORKERS 1]): one pytest file as one CTest test, its tests shared
# out over as many pytest workers (tests that mostly wait). It finds the programs under test in the folder $PLATEAU_BIN,
# and the test's helpers in $PLATEAU_TEST_BIN.
function(plateau_pytest name file)
  cmake_parse_arguments(arg "" "TIMEOUT;WORKERS" "LABELS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  set(share)
  set(processors 1)
  if(arg_WORKERS)
    set(share -n ${arg_WORKERS})
    set(processors 2)
  endif()
  add_test(NAME ${name}
    COMMAND ${PLATEAU_PYTHON} -m pytest -q -p no:cacheprovider ${share} ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT} PROCESSORS ${processors}
    ENVIRONMENT "PLATEAU_BIN=${PROJECT_BINARY_DIR}/bin;PLATEAU_TEST_BIN=${PROJECT_BINARY_DIR}/tests;PYTHONPATH=${PROJECT_SOURCE_DIR}/tests/support;PYTHONDONTWRITEBYTECODE=1")
endfunction()

# plateau_sanitized_tests(): tests that build again below this build folder, with sanitizers, and fuzz. Labels: sanitize,
# fuzz.
function(plateau_sanitized_tests)
  set(environment "BUILD=${PROJECT_BINARY_DIR}")
  add_test(NAME sanitize.memory COMMAND ${PROJECT_SOURCE_DIR}/script/sanitize memory)
  add_test(NAME sanitize.threads COMMAND ${PROJECT_SOURCE_DIR}/script/sanitize threads)
  set_tests_properties(sanitize.memory PROPERTIES LABELS sanitize TIMEOUT 3600 RUN_SERIAL ON ENVIRONMENT "${environment}")
  set_tests_properties(sanitize.threads PROPERTIES LABELS sanitize TIMEOUT 600 RUN_SERIAL ON ENVIRONMENT "${environment}")
  add_test(NAME fuzz.build COMMAND ${PROJECT_SOURCE_DIR}/script/sanitize fuzz)
  set_tests_properties(fuzz.build PROPERTIES LABELS fuzz TIMEOUT 900 RUN_SERIAL ON ENVIRONMENT "${environment}"
    FIXTURES_SETUP fuzz_targets)
  foreach(target job frames raw_result run_file)
    add_test(NAME fuzz.${target} COMMAND ${PROJECT_SOURCE_DIR}/script/fuzz ${target} 30)
    set_tests_properties(fuzz.${target} PROPERTIES LABELS fuzz TIMEOUT 120 ENVIRONMENT "${environment};BUILT=1"
      FIXTURES_REQUIRED fuzz_targets)
  endforeach()
endfunction()
