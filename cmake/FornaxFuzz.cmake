# fornax_fuzz: coverage-guided fuzz targets (libFuzzer), each run as a test.
#
# fornax_fuzz(NAME TEST name SOURCES x_fuzz.cpp ... INSTRUMENT libraries ... [DEPS targets ...] [SEEDS folders ...]
#             [MAX_BYTES n])
#
# INSTRUMENT names the libraries whose coverage guides the target. SEEDS are folders of inputs to begin with; what a run finds
# worth keeping stays in the build folder.
#
# A build with the address sanitiser has the targets (FORNAX_FUZZ), so its tests and they share what is compiled. They are no
# part of `all`: `ninja fuzzers` builds them. `ctest -L fuzz` builds and runs them, each for FORNAX_FUZZ_SECONDS of the
# environment, else a minute, from the seed FORNAX_FUZZ_SEED, else 1: what one clone finds, another finds again. 0 is a seed of
# the time. With FORNAX_FUZZ a build without sanitisers has them, too, for runs of more executions, which crashes, asserts and
# limits still stop: `cmake --preset dev -B build/fuzz -DFORNAX_FUZZ=ON`, of which `fuzzers` is all that can be built.
include(CheckCXXSourceCompiles)

set(CMAKE_REQUIRED_FLAGS -fsanitize=fuzzer)
check_cxx_source_compiles([[
    #include <cstddef>
    #include <cstdint>
    extern "C" int LLVMFuzzerTestOneInput(const uint8_t*, size_t) { return 0; }]] FORNAX_HAS_LIBFUZZER)
unset(CMAKE_REQUIRED_FLAGS)
set(fuzz_by_default OFF)
if(FORNAX_HAS_LIBFUZZER AND FORNAX_SANITIZE MATCHES address)
    set(fuzz_by_default ON)
endif()
option(FORNAX_FUZZ "Fuzz targets, and what guides them in the libraries that they test" ${fuzz_by_default})

if(FORNAX_FUZZ AND NOT FORNAX_HAS_LIBFUZZER)
    message(FATAL_ERROR "FORNAX_FUZZ needs a compiler with libFuzzer (Clang); ${CMAKE_CXX_COMPILER} has none.")
endif()

add_custom_target(fuzzers)
if(FORNAX_FUZZ)
    # So that ctest alone can run what `all` does not build.
    add_test(NAME fuzz.build COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target fuzzers)
    set_tests_properties(fuzz.build PROPERTIES LABELS fuzz FIXTURES_SETUP fuzzers TIMEOUT 3600 PROCESSORS 2)
endif()

# What -fsanitize=fuzzer-no-link adds. By that name, objects could not share precompiled headers with others.
function(fornax_instrument target)
    get_target_property(instrumented ${target} FORNAX_INSTRUMENTED)
    if(NOT instrumented)
        set_target_properties(${target} PROPERTIES FORNAX_INSTRUMENTED ON)
        target_compile_options(${target} PRIVATE
            -fsanitize-coverage=inline-8bit-counters,indirect-calls,trace-cmp,pc-table,stack-depth)
    endif()
endfunction()

function(fornax_fuzz name)
    cmake_parse_arguments(ARG "" "TEST;MAX_BYTES" "SOURCES;INSTRUMENT;DEPS;SEEDS" ${ARGN})
    if(NOT FORNAX_FUZZ)
        # Compiled by nobody but the layers of ./check that look at every source.
        add_library(${name} OBJECT EXCLUDE_FROM_ALL ${ARG_SOURCES})
        target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
        target_link_libraries(${name} PRIVATE ${ARG_INSTRUMENT} ${ARG_DEPS})
        fornax_precompiled(${name} std)
        return()
    endif()
    if(NOT ARG_MAX_BYTES)
        set(ARG_MAX_BYTES 16384)
    endif()
    add_executable(${name} EXCLUDE_FROM_ALL ${ARG_SOURCES})
    add_dependencies(fuzzers ${name})
    fornax_precompiled(${name} std)
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
    # The sanitisers' archives do not say of which functions the address is compared, and lld warns of each of their files.
    target_link_options(${name} PRIVATE -fsanitize=fuzzer -Wl,--icf=none)
    foreach(target IN LISTS name ARG_INSTRUMENT)
        fornax_instrument(${target})
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
