# Which libraries this build is made of, for `stoker info` and for the summary at the end of configuring.
# Finding is done again, with what is required, by the folders that use them.

# stoker_note_library(LABEL PACKAGE WANTED WHAT [find_package arguments]): appends to STOKER_LIBRARY_ROWS
# (C++ initialisers) and STOKER_SUMMARY. WHAT says what is missing without it.
function(stoker_note_library label package wanted what)
  set(version "")
  set(line "left out: ${what} (option OFF)")
  if(wanted)
    find_package(${package} QUIET ${ARGN})
    set(line "NOT FOUND: ${what}")
    if(${package}_FOUND)
      set(version "${${package}_VERSION}${${package}_VERSION_STRING}")
      if(NOT version)
        set(version "found")
      endif()
      set(line "${version}")
    endif()
  endif()
  set(STOKER_LIBRARY_ROWS "${STOKER_LIBRARY_ROWS}    {\"${label}\", \"${version}\"},\n" PARENT_SCOPE)
  set(STOKER_SUMMARY ${STOKER_SUMMARY} "${label}: ${line}" PARENT_SCOPE)
endfunction()

# The same for a version that is known already.
function(stoker_note_version label version)
  set(STOKER_LIBRARY_ROWS "${STOKER_LIBRARY_ROWS}    {\"${label}\", \"${version}\"},\n" PARENT_SCOPE)
  set(STOKER_SUMMARY ${STOKER_SUMMARY} "${label}: ${version}" PARENT_SCOPE)
endfunction()

# libjpeg-turbo has a package file only where its TurboJPEG API is installed; its version is in a header.
find_path(STOKER_JCONFIG_DIR jconfig.h)
mark_as_advanced(STOKER_JCONFIG_DIR)
if(STOKER_JCONFIG_DIR)
  file(STRINGS ${STOKER_JCONFIG_DIR}/jconfig.h jpeg_line REGEX "#define LIBJPEG_TURBO_VERSION ")
  string(REGEX MATCH "[0-9][0-9.]*" STOKER_JPEG_VERSION "${jpeg_line}")
endif()

set(STOKER_LIBRARY_ROWS "")
set(STOKER_SUMMARY "")
stoker_note_library(oneDNN OneDnn "${STOKER_ONEDNN}" "the CPU engine, so no training on this machine's cores")
stoker_note_library(oneTBB TBB ON "required")
stoker_note_version(libjpeg-turbo "${STOKER_JPEG_VERSION}")
stoker_note_library(libtiff TIFF "${STOKER_CODECS}" "PNG, WebP and TIFF are refused, JPEG and BMP are not")
find_package(PkgConfig QUIET)
if(STOKER_CODECS AND PKG_CONFIG_FOUND)
  pkg_check_modules(WEBP QUIET libwebp)
endif()
if(WEBP_VERSION)
  stoker_note_version(libwebp "${WEBP_VERSION}")
else()
  stoker_note_version(libwebp "")
endif()
set(MPI_CXX_SKIP_MPICXX ON)  # its C functions are all that is used
stoker_note_library(MPI MPI "${STOKER_MPI}" "no training over several processes on CPUs" COMPONENTS CXX)
stoker_note_library(Highway hwy ON "required")
stoker_note_library(libpng PNG ON "required")

function(stoker_print_summary)
  message(STATUS "stoker ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}")
  foreach(line IN LISTS STOKER_SUMMARY)
    message(STATUS "  ${line}")
  endforeach()
  message(STATUS "  tests ${STOKER_TESTS}, benchmarks ${STOKER_BENCH}, sanitizers '${STOKER_SANITIZE}'")
endfunction()
