# fornax_embed_spirv: GLSL kernels, or assembly (.spvasm) of what GLSL cannot say, into the binary, compiled and
# validated at build time.
#
# fornax_embed_spirv(TARGET SHADERS a.comp ... [ENV vulkan1.1] [DEFINES A=1 ...] [VARIANT name]
#                    [SCALAR_LAYOUT] [MAINTENANCE9] [LINES])
#
# Compiles each shader with glslang for the Vulkan version ENV, or assembles it if it is *.spvasm, validates the result with spirv-val (with the
# scalar block layout, or what maintenance9 allows, if so asked; with LINES it says of which lines of the source it is) and
# writes the header generated/<folder>/<stem>[_<variant>].spv.h, which TARGET includes from the root as
# "<folder>/<stem>[_<variant>].spv.h". It defines one array:
#
#     namespace fornax::spirv { constexpr std::uint32_t kMatMulTiled[] = {...}; }  // mat_mul_tiled.comp
#
# The binary itself stands beside the header as <stem>[_<variant>].spv, for tools and for looking at.
function(fornax_embed_spirv target)
    cmake_parse_arguments(ARG "SCALAR_LAYOUT;MAINTENANCE9;LINES" "ENV;VARIANT" "SHADERS;DEFINES" ${ARGN})
    if(NOT ARG_ENV)
        set(ARG_ENV vulkan1.1)
    endif()
    set(defines ${ARG_DEFINES})
    list(TRANSFORM defines PREPEND -D)
    if(ARG_LINES)
        list(APPEND defines -g)
    endif()
    set(layout "")
    if(ARG_SCALAR_LAYOUT)
        set(layout --scalar-block-layout --workgroup-scalar-block-layout)
    endif()
    if(ARG_MAINTENANCE9)
        list(APPEND layout --allow-vulkan-32-bit-bitwise)
    endif()
    # "vulkan1.1spv1.4" is one word to spirv-val and two to glslang.
    string(REGEX REPLACE "spv(.*)" ";--target-env;spirv\\1" glslang_env "${ARG_ENV}")
    file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
    set(script ${PROJECT_SOURCE_DIR}/cmake/embed_spirv.py)
    foreach(shader IN LISTS ARG_SHADERS)
        get_filename_component(source ${shader} ABSOLUTE)
        get_filename_component(stem ${shader} NAME_WLE)
        get_filename_component(shader_folder ${folder}/${shader} DIRECTORY)
        if(ARG_VARIANT)
            set(stem ${stem}_${ARG_VARIANT})
        endif()
        set(base ${PROJECT_BINARY_DIR}/generated/${shader_folder}/${stem}.spv)
        get_filename_component(output_dir ${base} DIRECTORY)
        file(MAKE_DIRECTORY ${output_dir})
        if(shader MATCHES "spvasm$")
            set(compile ${FORNAX_SPIRV_AS} --target-env ${ARG_ENV} -o ${base} ${source})
            set(depfile "")
        else()
            set(compile ${FORNAX_GLSLANG} --quiet -V --target-env ${glslang_env} ${defines}
                        -I${PROJECT_SOURCE_DIR} --depfile ${base}.d -o ${base} ${source})
            set(depfile DEPFILE ${base}.d)
        endif()
        # The first output is the one that glslang's list of dependencies names, or ninja never trusts it.
        add_custom_command(
            OUTPUT ${base} ${base}.h
            COMMAND ${compile}
            COMMAND ${FORNAX_SPIRV_VAL} --target-env ${ARG_ENV} ${layout} ${base}
            COMMAND ${Python3_EXECUTABLE} ${script} ${base} ${stem} ${base}.h
            DEPENDS ${source} ${script} ${FORNAX_DEPS}/stamp
            ${depfile}
            COMMENT "Compiling ${folder}/${shader} to SPIR-V"
            VERBATIM)
        target_sources(${target} PRIVATE ${base}.h)
    endforeach()
    target_include_directories(${target} PRIVATE ${PROJECT_BINARY_DIR}/generated)
endfunction()
