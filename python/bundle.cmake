# Run by the installation of the component `python`: copies the shared libraries of the distribution that the package's
# own need beside them, under the names by which they are looked for, with their licences. Links are not for wheels.
#
# native: the package's folder _native. loader: libvulkan.so.1, or empty. archives: static libraries that are in what is installed.
file(GLOB plugins ${native}/lib/libfornax_ort_ep.so)
file(GET_RUNTIME_DEPENDENCIES
    LIBRARIES ${native}/lib/libfornax.so ${plugins}
    EXECUTABLES ${native}/bin/fornax
    DIRECTORIES ${native}/lib
    RESOLVED_DEPENDENCIES_VAR found
    UNRESOLVED_DEPENDENCIES_VAR missing
    # Every Linux has these; what is there must be at least as new as where the package was built.
    PRE_EXCLUDE_REGEXES "^lib(c|m|dl|rt|pthread|z|stdc\\+\\+|gcc_s)\\.so\\." "^ld-linux" "^libfornax")
if(missing)
    message(FATAL_ERROR "These libraries of the package were not found: ${missing}.")
endif()

# The package that brought a file says what its licence is.
function(copy_licence real)
    execute_process(COMMAND dpkg-query --search ${real} OUTPUT_VARIABLE owner ERROR_QUIET RESULT_VARIABLE failed)
    if(failed)  # packages may own it by the path without /usr
        string(REGEX REPLACE "^/usr" "" short ${real})
        execute_process(COMMAND dpkg-query --search ${short} OUTPUT_VARIABLE owner ERROR_QUIET RESULT_VARIABLE failed)
    endif()
    string(REGEX REPLACE "[:,].*" "" owner "${owner}")
    if(NOT failed AND EXISTS /usr/share/doc/${owner}/copyright)
        get_filename_component(licence /usr/share/doc/${owner}/copyright REALPATH)
        file(MAKE_DIRECTORY ${native}/licenses)
        file(COPY_FILE ${licence} ${native}/licenses/${owner}.txt ONLY_IF_DIFFERENT)
    endif()
endfunction()

function(bundle path folder)
    get_filename_component(name ${path} NAME)
    get_filename_component(real ${path} REALPATH)
    file(MAKE_DIRECTORY ${native}/${folder})
    file(COPY_FILE ${real} ${native}/${folder}/${name} ONLY_IF_DIFFERENT)
    copy_licence(${real})
endfunction()

foreach(library IN LISTS found)
    bundle(${library} lib)
endforeach()
if(loader)
    bundle(${loader} loader)
endif()
foreach(archive IN LISTS archives)
    copy_licence(${archive})
endforeach()
