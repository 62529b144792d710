# Precompiled headers: what most files include of the libraries outside, parsed once a build.
#
# A flavour is a set of such headers; fornax_library and fornax_test name one (PRECOMPILED llvm), or have that
# of their kind. None holds a header of ours, so that no change in the tree rebuilds everything. Every file
# still includes what it uses: the build with FORNAX_PRECOMPILE=OFF, and the analysis of ./check, need it.
option(FORNAX_PRECOMPILE "Precompile the headers of other libraries" ON)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # CMake hands the path to the compiler's inner command, where ccache does not make it relative.
    set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -include-pch <PCH_FILE>)
endif()

set(FORNAX_PRECOMPILED_std
    <algorithm> <array> <atomic> <bit> <chrono> <condition_variable> <cstddef> <cstdint> <cstring> <functional>
    <limits> <map> <memory> <mutex> <numeric> <optional> <set> <span> <string> <string_view> <thread>
    <unordered_map> <unordered_set> <utility> <variant> <vector> <fmt/format.h>)
set(FORNAX_PRECOMPILED_test ${FORNAX_PRECOMPILED_std} <gmock/gmock.h> <gtest/gtest.h>)
set(FORNAX_PRECOMPILED_llvm ${FORNAX_PRECOMPILED_std}
    <llvm/IR/IRBuilder.h> <llvm/IR/IntrinsicInst.h> <llvm/IR/Module.h> <llvm/IR/PassManager.h>)
set(FORNAX_PRECOMPILED_llvm_test ${FORNAX_PRECOMPILED_llvm} <gmock/gmock.h> <gtest/gtest.h>)
set(FORNAX_PRECOMPILED_command ${FORNAX_PRECOMPILED_std} <CLI/CLI.hpp> <nlohmann/json.hpp>)
set(FORNAX_PRECOMPILED_onnx ${FORNAX_PRECOMPILED_std} <onnx/onnx_pb.h>)

# What a flavour's headers need beside the standard library.
set(FORNAX_PRECOMPILED_DEPS_llvm fornax::llvm)
set(FORNAX_PRECOMPILED_DEPS_llvm_test fornax::llvm GTest::gmock)
set(FORNAX_PRECOMPILED_DEPS_test GTest::gmock)
set(FORNAX_PRECOMPILED_DEPS_command CLI11::CLI11 nlohmann_json::nlohmann_json)
set(FORNAX_PRECOMPILED_DEPS_onnx fornax::onnx)

# A precompiled header holds the paths of its checkout, so ccache would take the same headers for others in the
# next one. It reads FILE.sum in place of FILE (CCACHE_PCH_EXTSUM): a digest of what the compiler reads.
function(fornax_precompiled_digest holder flavour)
    if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
        set(ending pch)
    else()
        set(ending gch)
    endif()
    set(folder ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${holder}.dir)
    set(sum ${folder}/cmake_pch.hxx.${ending}.sum)
    set(list ${PROJECT_BINARY_DIR}/generated/precompiled/${flavour}.h)
    list(TRANSFORM FORNAX_PRECOMPILED_${flavour} PREPEND "#include " OUTPUT_VARIABLE lines)
    list(JOIN lines "\n" lines)
    file(CONFIGURE OUTPUT ${list} CONTENT "${lines}\n" @ONLY)
    file(MAKE_DIRECTORY ${folder})
    # The compiler has /usr/include anyway, and wants it last.
    set(includes "$<FILTER:$<TARGET_PROPERTY:${holder},INCLUDE_DIRECTORIES>,EXCLUDE,^/usr/include$>")
    set(definitions "$<FILTER:$<TARGET_PROPERTY:${holder},COMPILE_DEFINITIONS>,INCLUDE,.>")
    add_custom_command(
        OUTPUT ${sum}
        COMMAND ${CMAKE_CXX_COMPILER} -std=c++20 "$<$<BOOL:${includes}>:-isystem$<JOIN:${includes},;-isystem>>"
                "$<$<BOOL:${definitions}>:-D$<JOIN:${definitions},;-D>>"
                -x c++ -E -dD -P -MD -MF ${sum}.d -MT ${sum} -o ${sum}.text ${list}
        COMMAND ${CMAKE_COMMAND} -E sha256sum ${sum}.text > ${sum}.path
        COMMAND cut -c1-64 ${sum}.path > ${sum}
        DEPENDS ${list}
        DEPFILE ${sum}.d
        COMMENT "Taking the digest of the headers ${flavour}"
        COMMAND_EXPAND_LISTS VERBATIM)
    add_custom_target(${holder}_digest DEPENDS ${sum})
    add_dependencies(${holder} ${holder}_digest)
endfunction()

# What begins with the headers of the tests: sanitised checks of GoogleTest's macros take the optimiser longer than the
# tests run.
function(fornax_test_options target flavour)
    if(FORNAX_SANITIZE AND flavour MATCHES "test$")
        target_compile_options(${target} PRIVATE -O0)
    endif()
endfunction()

# fornax_precompiled(TARGET FLAVOUR): TARGET's files begin with the headers of the flavour; none for files that
# are compiled for another processor, whose headers are others.
function(fornax_precompiled target flavour)
    fornax_test_options(${target} ${flavour})
    if(NOT FORNAX_PRECOMPILE OR flavour STREQUAL none)
        return()
    endif()
    set(holder fornax_precompiled_${flavour})
    if(NOT TARGET ${holder})
        if(NOT FORNAX_PRECOMPILED_${flavour})
            message(FATAL_ERROR "${target}: there is no flavour \"${flavour}\" of precompiled headers.")
        endif()
        set(source ${PROJECT_BINARY_DIR}/generated/precompiled/${flavour}.cpp)
        file(CONFIGURE OUTPUT ${source} CONTENT "// Holds a precompiled header.\n")
        add_library(${holder} OBJECT ${source})
        # Not from ccache: it could be another checkout's, whose paths may be gone.
        set_target_properties(${holder} PROPERTIES CXX_COMPILER_LAUNCHER "")
        target_link_libraries(${holder} PRIVATE fornax::fmt ${FORNAX_PRECOMPILED_DEPS_${flavour}})
        fornax_test_options(${holder} ${flavour})
        target_precompile_headers(${holder} PRIVATE ${FORNAX_PRECOMPILED_${flavour}})
        fornax_precompiled_digest(${holder} ${flavour})
    endif()
    target_precompile_headers(${target} REUSE_FROM ${holder})
endfunction()
