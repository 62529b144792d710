# Precompiled headers: what most files include of the libraries outside, parsed once a build.
#
# A flavour is a set of such headers; fornax_library and fornax_test name one (PRECOMPILED llvm), or have that
# of their kind. None holds a header of ours, so that no change in the tree rebuilds everything. Every file
# still includes what it uses: the build with FORNAX_PRECOMPILE=OFF, and the analysis of ./check, need it.
option(FORNAX_PRECOMPILE "Precompile the headers of other libraries" ON)

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

# fornax_precompiled(TARGET FLAVOUR): TARGET's files begin with the headers of the flavour; none for files that
# are compiled for another processor, whose headers are others.
function(fornax_precompiled target flavour)
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
        target_link_libraries(${holder} PRIVATE fornax::fmt ${FORNAX_PRECOMPILED_DEPS_${flavour}})
        target_precompile_headers(${holder} PRIVATE ${FORNAX_PRECOMPILED_${flavour}})
    endif()
    target_precompile_headers(${target} REUSE_FROM ${holder})
endfunction()
