# fornax_library and fornax_test: one line a unit, so that every unit is built alike.

# fornax_library(NAME SOURCES a.cpp ... [DEPS targets ...] [PRECOMPILED flavour])
# A static library that includes from the project's root. Headers live beside their sources. The flavours of
# precompiled headers are in FornaxPrecompiled.cmake.
function(fornax_library name)
    cmake_parse_arguments(ARG "" "PRECOMPILED" "SOURCES;DEPS" ${ARGN})
    if(NOT ARG_PRECOMPILED)
        set(ARG_PRECOMPILED std)
    endif()
    add_library(${name} STATIC ${ARG_SOURCES})
    fornax_precompiled(${name} ${ARG_PRECOMPILED})
    target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
    target_link_libraries(${name} PUBLIC ${ARG_DEPS})
endfunction()

# fornax_test(NAME SOURCES a_test.cpp ... [DEPS targets ...] [ENVIRONMENT VAR=value] [PRECOMPILED flavour] [SLOW]
#             [SANITIZE address thread])
# A GoogleTest program; each of its tests is a test of ctest, NAME.Suite.Test: of tests with the same name in one folder
# the properties of the last would count for all.
#
# SLOW: `./check quick` leaves its tests out (label slow). SANITIZE: ./check also runs it with these sanitisers; in a
# build with one of them the target sanitized_tests builds all such programs, and their tests have the label sanitized.
include(GoogleTest)
add_custom_target(sanitized_tests)
function(fornax_test name)
    cmake_parse_arguments(ARG "SLOW" "PRECOMPILED" "SOURCES;DEPS;ENVIRONMENT;SANITIZE" ${ARGN})
    if(NOT ARG_PRECOMPILED)
        set(ARG_PRECOMPILED test)
    endif()
    add_executable(${name} ${ARG_SOURCES})
    fornax_precompiled(${name} ${ARG_PRECOMPILED})
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
    target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest_main)
    # It takes a list apart, however it is escaped: the first entry would count and the others vanish.
    list(LENGTH ARG_ENVIRONMENT environment_count)
    if(environment_count GREATER 1)
        message(FATAL_ERROR "${name}: gtest_discover_tests can set only one environment variable.")
    endif()
    # For the same reason a test has at most one label, and a property without a value is not passed on.
    set(properties TIMEOUT ${FORNAX_TEST_TIMEOUT})
    if(ARG_ENVIRONMENT)
        list(APPEND properties ENVIRONMENT ${ARG_ENVIRONMENT})
    endif()
    set(label "")
    if(ARG_SLOW)
        set(label slow)
    endif()
    foreach(sanitizer IN LISTS ARG_SANITIZE)
        if(FORNAX_SANITIZE MATCHES ${sanitizer})
            add_dependencies(sanitized_tests ${name})
            set(label sanitized)
        endif()
    endforeach()
    if(label)
        list(APPEND properties LABELS ${label})
    endif()
    gtest_discover_tests(${name} TEST_PREFIX ${name}. DISCOVERY_MODE PRE_TEST PROPERTIES ${properties})
endfunction()
