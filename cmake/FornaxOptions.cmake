# Language, warnings, sanitisers and linker: what every target of the project is built with.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
# For programs, too (-fPIC, not -fPIE): they share precompiled headers with the libraries.
add_compile_options(-fPIC)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release or RelWithDebInfo" FORCE)
endif()

option(FORNAX_GGML "Build the backend of ggml" ON)
option(FORNAX_ONNXRUNTIME "Build the execution provider of onnxruntime, which takes its headers" ON)
set(FORNAX_SANITIZE "" CACHE STRING "Sanitisers to build with: address,undefined or thread")
# A test that takes longer hangs. Sanitised code takes ten times as long.
set(FORNAX_TEST_TIMEOUT 600)
if(FORNAX_SANITIZE)
    set(FORNAX_TEST_TIMEOUT 6000)
endif()

option(FORNAX_SYNTAX_ONLY "Look at every source without making code of it; the build makes no files that can be used" OFF)
if(FORNAX_SYNTAX_ONLY)
    # Some sources are compiled behind others' libraries and programs.
    foreach(rule CREATE_STATIC_LIBRARY CREATE_SHARED_LIBRARY CREATE_SHARED_MODULE LINK_EXECUTABLE)
        set(CMAKE_C_${rule} "<CMAKE_COMMAND> -E touch <TARGET>")
        set(CMAKE_CXX_${rule} "<CMAKE_COMMAND> -E touch <TARGET>")
    endforeach()
endif()

find_program(FORNAX_CCACHE ccache)
if(FORNAX_CCACHE)
    # Paths count relative to the source tree, so that several checkouts share what they compile.
    # What it has to overlook for precompiled headers is in its manual, section "Precompiled headers".
    set(syntax_only "")
    if(FORNAX_SYNTAX_ONLY)
        set(syntax_only CCACHE_PREFIX=${PROJECT_SOURCE_DIR}/tools/check/syntax_only.sh CCACHE_NAMESPACE=syntax_only)
    endif()
    set(launcher /usr/bin/env ${syntax_only} CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
        CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_PCH_EXTSUM=1 ${FORNAX_CCACHE})
    set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
    set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
elseif(FORNAX_SYNTAX_ONLY)
    set(CMAKE_C_COMPILER_LAUNCHER ${PROJECT_SOURCE_DIR}/tools/check/syntax_only.sh)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_C_COMPILER_LAUNCHER})
endif()

find_program(FORNAX_LLD NAMES ld.lld-19 ld.lld)
if(FORNAX_LLD)
    if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
        add_link_options(--ld-path=${FORNAX_LLD})
    else()
        # GCC only knows linkers by family name; it finds ld.lld beside the versioned one.
        get_filename_component(FORNAX_LLD_REAL ${FORNAX_LLD} REALPATH)
        get_filename_component(FORNAX_LLD_DIR ${FORNAX_LLD_REAL} DIRECTORY)
        add_link_options(-B${FORNAX_LLD_DIR} -fuse-ld=lld)
    endif()
    # Functions of the same code become one, unless their address is compared, and strings that end alike: the libraries of
    # a wheel get smaller.
    # The sanitisers' archives do not say of which functions it is, and lld warns of each of their files.
    if(NOT FORNAX_SANITIZE)
        add_link_options(-Wl,--icf=safe -Wl,-O2)
    endif()
endif()

add_compile_options(-Wall -Wextra -Werror -Wno-missing-field-initializers -ffunction-sections -fdata-sections)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # Without the time in it, a precompiled header of the same contents is the same file.
    add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC 12 sees overlaps and overruns in its own std::string and std::vector once they are inlined (its
    # bug 105651 and relatives). Clang and the sanitisers look for the real ones.
    add_compile_options(-Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread
                        -Wno-maybe-uninitialized)
endif()
add_link_options(-Wl,--gc-sections -Wl,--as-needed)

if(FORNAX_SANITIZE)
    # Of debug information, reports need the lines.
    add_compile_options(-fsanitize=${FORNAX_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -g1)
    add_link_options(-fsanitize=${FORNAX_SANITIZE})
    if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
        # It reads a function's type from the bytes before its code; generated kernels have none.
        add_compile_options(-fno-sanitize=function)
    endif()
endif()
