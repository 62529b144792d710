# fornax_fuzz: coverage-guided fuzz targets (libFuzzer), each built with the sanitisers and run as a test.
#
# fornax_fuzz(NAME TEST name SOURCES x_fuzz.cpp ... INSTRUMENT libraries ... [DEPS targets ...] [SEEDS folders ...]
#             [MAX_BYTES n])
#
# INSTRUMENT names the libraries whose sources are compiled once more, for coverage, with the address and
# undefined-behaviour sanitisers and asserts; whatever else they need is linked as it is. So a build for use has its fuzz
# targets beside it, and nothing else is built twice. SEEDS are folders of inputs to begin with; what a run finds worth
# keeping stays in the build folder.
#
# The targets are no part of `all`: `ninja fuzzers` builds them. `ctest -L fuzz` builds and runs them, each for
# FORNAX_FUZZ_SECONDS of the environment, else a minute, from the seed FORNAX_FUZZ_SEED, else 1: what one clone finds,
# another finds again. 0 is a seed of the time.
include(CheckCXXSourceCompiles)

set(FORNAX_FUZZ_SANITIZERS address,undefined CACHE STRING
    "Sanitizers of the fuzz targets; empty for runs of more executions, which crashes, asserts and limits still stop")
if(FORNAX_FUZZ_SANITIZERS)
    set(FORNAX_FUZZ_CHECKS ,${FORNAX_FUZZ_SANITIZERS})
endif()
if(NOT FORNAX_SANITIZE)
    set(CMAKE_REQUIRED_FLAGS -fsanitize=fuzzer${FORNAX_FUZZ_CHECKS})
    check_cxx_source_compiles([[
        #include <cstddef>
        #include <cstdint>
        extern "C" int LLVMFuzzerTestOneInput(const uint8_t*, size_t) { return 0; }]] FORNAX_HAS_LIBFUZZER)
    unset(CMAKE_REQUIRED_FLAGS)
endif()
add_custom_target(fuzzers)
if(FORNAX_HAS_LIBFUZZER)
    # So that ctest alone can run what `all` does not build.
    add_test(NAME fuzz.build COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target fuzzers)
    set_tests_properties(fuzz.build PROPERTIES LABELS fuzz FIXTURES_SETUP fuzzers TIMEOUT 3600 PROCESSORS 2)
endif()

# What a target and the libraries that it instruments are compiled with.
function(fornax_fuzz_options target)
    target_compile_options(${target} PRIVATE
        -O1 -UNDEBUG -D_GLIBCXX_ASSERTIONS -fsanitize=fuzzer-no-link${FORNAX_FUZZ_CHECKS}
        -fno-sanitize=function -fno-sanitize-recover=all)
endfunction()

# ${library}_fuzzed: the library's objects, compiled once more.
function(fornax_instrument library)
    if(TARGET ${library}_fuzzed)
        return()
    endif()
    get_target_property(sources ${library} SOURCES)
    get_target_property(folder ${library} SOURCE_DIR)
    list(TRANSFORM sources PREPEND ${folder}/ REGEX "^[^/]")
    add_library(${library}_fuzzed OBJECT EXCLUDE_FROM_ALL ${sources})
    # As the library itself sees them, with what only it needs.
    target_include_directories(${library}_fuzzed SYSTEM PRIVATE $<TARGET_PROPERTY:${library},INCLUDE_DIRECTORIES>)
    target_compile_definitions(${library}_fuzzed PRIVATE $<TARGET_PROPERTY:${library},COMPILE_DEFINITIONS>)
    fornax_fuzz_options(${library}_fuzzed)
    # For the headers that its folder generates.
    add_dependencies(${library}_fuzzed ${library})
endfunction()

function(fornax_fuzz name)
    cmake_parse_arguments(ARG "" "TEST;MAX_BYTES" "SOURCES;INSTRUMENT;DEPS;SEEDS" ${ARGN})
    if(NOT FORNAX_HAS_LIBFUZZER)
        return()
    endif()
    if(NOT ARG_MAX_BYTES)
        set(ARG_MAX_BYTES 16384)
    endif()
    add_executable(${name} EXCLUDE_FROM_ALL ${ARG_SOURCES})
    add_dependencies(fuzzers ${name})
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
    fornax_fuzz_options(${name})
    # The sanitisers' archives do not say of which functions the address is compared, and lld warns of each of their files.
    target_link_options(${name} PRIVATE -fsanitize=fuzzer${FORNAX_FUZZ_CHECKS} -Wl,--icf=none)
    # The instrumented objects come first, so the linker finds nothing missing that these libraries also define.
    foreach(library IN LISTS ARG_INSTRUMENT)
        fornax_instrument(${library})
        target_sources(${name} PRIVATE $<TARGET_OBJECTS:${library}_fuzzed>)
    endforeach()
    target_link_libraries(${name} PRIVATE ${ARG_INSTRUMENT} ${ARG_DEPS})

    set(kept ${CMAKE_CURRENT_BINARY_DIR}/${name}_corpus)
    file(MAKE_DIRECTORY ${kept} ${ARG_SEEDS})
    add_test(NAME ${ARG_TEST}
        COMMAND sh -c "exec \"$0\" -max_total_time=\${FORNAX_FUZZ_SECONDS:-60} -seed=\${FORNAX_FUZZ_SEED:-1} \"$@\"" $<TARGET_FILE:${name}>
                -timeout=60 -rss_limit_mb=4096 -max_len=${ARG_MAX_BYTES} -detect_leaks=0 -print_final_stats=1
                -verbosity=0 -artifact_prefix=${CMAKE_CURRENT_BINARY_DIR}/ ${kept} ${ARG_SEEDS})
    set_tests_properties(${ARG_TEST} PROPERTIES
        LABELS fuzz FIXTURES_REQUIRED fuzzers TIMEOUT ${FORNAX_TEST_TIMEOUT})
endfunction()
