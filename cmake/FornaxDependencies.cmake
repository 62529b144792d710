# What the project takes from outside, as targets named fornax::* and variables named FORNAX_*.
#
# Two sources: the distribution's packages, and the prefix .deps that tools/setup/prefix.sh fills with
# headers and programs newer than the distribution's. Only headers and data of the prefix are compiled
# in; its programs run at build time; its libraries are never linked. docs/dependencies.md says what
# each one is for.

# The set-up's Python environment, when there is one: tests need its packages.
if(NOT Python3_EXECUTABLE AND EXISTS ${PROJECT_SOURCE_DIR}/.venv/bin/python3)
    set(Python3_EXECUTABLE ${PROJECT_SOURCE_DIR}/.venv/bin/python3)
endif()

find_package(Threads REQUIRED)
find_package(GTest REQUIRED)
find_package(benchmark REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(LLVM 19.1 REQUIRED CONFIG)
find_package(Python3 REQUIRED COMPONENTS Interpreter)

# --- The prefix -----------------------------------------------------------------------------------

set(FORNAX_DEPS "$ENV{FORNAX_DEPS}" CACHE PATH "Prefix filled by tools/setup/prefix.sh")
if(NOT FORNAX_DEPS)
    set(FORNAX_DEPS ${PROJECT_SOURCE_DIR}/.deps)
endif()
if(NOT EXISTS ${FORNAX_DEPS}/stamp)
    message(FATAL_ERROR "The prefix ${FORNAX_DEPS} is not filled; run tools/setup/prefix.sh first.")
endif()

set(FORNAX_VK_XML ${FORNAX_DEPS}/usr/share/vulkan/registry/vk.xml)
set(FORNAX_SPIRV_GRAMMAR_DIR ${FORNAX_DEPS}/usr/include/spirv/unified1)
set(FORNAX_SPIRV_GRAMMAR ${FORNAX_SPIRV_GRAMMAR_DIR}/spirv.core.grammar.json)
set(FORNAX_GLSLANG ${FORNAX_DEPS}/bin/glslang)
set(FORNAX_SPIRV_AS ${FORNAX_DEPS}/bin/spirv-as)
set(FORNAX_SPIRV_DIS ${FORNAX_DEPS}/bin/spirv-dis)
set(FORNAX_SPIRV_VAL ${FORNAX_DEPS}/bin/spirv-val)
set(FORNAX_SPIRV_OPT ${FORNAX_DEPS}/bin/spirv-opt)
# `${FORNAX_WITH_PREFIX} PROGRAM` runs it with the C library and the Vulkan loader of the prefix.
set(FORNAX_WITH_PREFIX ${FORNAX_DEPS}/bin/with-prefix)

# The distribution's own Vulkan headers, if installed, would be found first in /usr/include for a target
# that forgot its dependency; the two never mix in one target because these come with -isystem.
add_library(fornax_vulkan_headers INTERFACE)
target_include_directories(fornax_vulkan_headers SYSTEM INTERFACE ${FORNAX_DEPS}/usr/include)
target_compile_definitions(fornax_vulkan_headers INTERFACE VK_NO_PROTOTYPES)
add_library(fornax::vulkan_headers ALIAS fornax_vulkan_headers)

# `#include <spirv/unified1/spirv.hpp11>`
add_library(fornax_spirv_headers INTERFACE)
target_include_directories(fornax_spirv_headers SYSTEM INTERFACE ${FORNAX_DEPS}/usr/include)
add_library(fornax::spirv_headers ALIAS fornax_spirv_headers)

# `#include <onnxruntime/onnxruntime_c_api.h>`. Nothing of it is linked: who loads a plug-in gives its functions.
add_library(fornax_onnxruntime_headers INTERFACE)
if(FORNAX_ONNXRUNTIME AND NOT EXISTS ${FORNAX_DEPS}/usr/include/onnxruntime/onnxruntime_ep_c_api.h)
    message(FATAL_ERROR "The prefix ${FORNAX_DEPS} lacks onnxruntime's headers; run tools/setup/prefix.sh first.")
endif()
target_include_directories(fornax_onnxruntime_headers SYSTEM INTERFACE ${FORNAX_DEPS}/usr/include)
add_library(fornax::onnxruntime_headers ALIAS fornax_onnxruntime_headers)

# Loads the Vulkan loader at run time; every Vulkan program of ours uses it, the driver does not.
add_library(fornax_volk STATIC ${FORNAX_DEPS}/usr/include/volk.c)
set_source_files_properties(${FORNAX_DEPS}/usr/include/volk.c PROPERTIES COMPILE_OPTIONS -w)
target_link_libraries(fornax_volk PUBLIC fornax::vulkan_headers PRIVATE ${CMAKE_DL_LIBS})
add_library(fornax::volk ALIAS fornax_volk)

# --- Small libraries ------------------------------------------------------------------------------

# fornax_static_library(NAME FILE header): fornax::NAME, the static archive of a distribution package.
# Static, so that the driver needs nothing on the machine it is copied to but the C and C++ libraries.
function(fornax_static_library name archive header)
    find_library(FORNAX_${name}_ARCHIVE ${archive} REQUIRED)
    find_path(FORNAX_${name}_INCLUDE ${header} REQUIRED)
    mark_as_advanced(FORNAX_${name}_ARCHIVE FORNAX_${name}_INCLUDE)
    add_library(fornax::${name} STATIC IMPORTED GLOBAL)
    set_target_properties(fornax::${name} PROPERTIES
        IMPORTED_LOCATION ${FORNAX_${name}_ARCHIVE}
        INTERFACE_INCLUDE_DIRECTORIES ${FORNAX_${name}_INCLUDE})
endfunction()
fornax_static_library(xxhash libxxhash.a xxhash.h)
fornax_static_library(sodium libsodium.a sodium.h)
fornax_static_library(zstd libzstd.a zstd.h)
fornax_static_library(zlib libz.a zlib.h)

# Descriptions of NPUs are TOML. Header-only: one file includes it.
find_path(FORNAX_TOMLPLUSPLUS_INCLUDE toml++/toml.h REQUIRED)
mark_as_advanced(FORNAX_TOMLPLUSPLUS_INCLUDE)
add_library(fornax_tomlplusplus INTERFACE)
target_include_directories(fornax_tomlplusplus SYSTEM INTERFACE ${FORNAX_TOMLPLUSPLUS_INCLUDE})
add_library(fornax::tomlplusplus ALIAS fornax_tomlplusplus)

# fornax::fmt, without its shared library, is in base/: an application may carry another version of it.

# The ONNX file format: the distribution's generated protobuf classes, `#include <onnx/onnx_pb.h>`. Only
# the command and its tests link it, never the driver.
find_package(Protobuf REQUIRED)
find_library(FORNAX_ONNX_LIBRARY onnx REQUIRED)
find_library(FORNAX_ONNX_PROTO_LIBRARY onnx_proto REQUIRED)
add_library(fornax_onnx INTERFACE)
target_compile_definitions(fornax_onnx INTERFACE ONNX_ML=1 ONNX_NAMESPACE=onnx)
target_link_libraries(fornax_onnx INTERFACE
    ${FORNAX_ONNX_LIBRARY} ${FORNAX_ONNX_PROTO_LIBRARY} protobuf::libprotobuf)
add_library(fornax::onnx ALIAS fornax_onnx)

# --- LLVM -----------------------------------------------------------------------------------------

# Statically and hidden: an application may carry another LLVM in the same process (Mesa's drivers do).
# No assembly parser, no disassembler: kernels hold no inline assembly and objects are never printed.
llvm_map_components_to_libnames(FORNAX_LLVM_LIBRARIES
    core support analysis passes nativecodegen orcjit jitlink runtimedyld)
list(REMOVE_DUPLICATES FORNAX_LLVM_LIBRARIES)
foreach(library IN LISTS FORNAX_LLVM_LIBRARIES)
    get_target_property(type ${library} TYPE)
    if(NOT type STREQUAL "STATIC_LIBRARY")
        message(FATAL_ERROR "${library} is not a static library; install the llvm-19-dev package.")
    endif()
endforeach()
# LLVM's export names zstd's shared library and z3, of which nothing that we link is used.
set_target_properties(LLVMSupport PROPERTIES
    INTERFACE_LINK_LIBRARIES "rt;dl;m;fornax::zlib;fornax::zstd;LLVMDemangle")
add_library(fornax_llvm INTERFACE)
target_include_directories(fornax_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
# LLVM_DEFINITIONS (_GNU_SOURCE, __STDC_LIMIT_MACROS, ...) says nothing to a C++20 compiler, and GCC takes no
# precompiled header where they are defined.
target_link_libraries(fornax_llvm INTERFACE ${FORNAX_LLVM_LIBRARIES})
if(FORNAX_LLD)
    # Debian's archives have lost which addresses are compared, and lld warns of each file.
    target_link_options(fornax_llvm INTERFACE -Wl,--icf=none)
endif()
# Not in programs: there it would hide the sanitisers' malloc from the shared libraries as well.
target_link_options(fornax_llvm INTERFACE
    $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,SHARED_LIBRARY>:-Wl,--exclude-libs,ALL>)
add_library(fornax::llvm ALIAS fornax_llvm)
# Only what knows the host's CPU.
add_library(fornax_llvm_target_parser INTERFACE)
target_include_directories(fornax_llvm_target_parser SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
target_link_libraries(fornax_llvm_target_parser INTERFACE LLVMTargetParser)
if(FORNAX_LLD)
    target_link_options(fornax_llvm_target_parser INTERFACE -Wl,--icf=none)
endif()
add_library(fornax::llvm_target_parser ALIAS fornax_llvm_target_parser)
