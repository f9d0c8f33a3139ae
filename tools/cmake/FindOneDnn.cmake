# Finds oneDNN by header and library: OneDnn_FOUND, OneDnn_VERSION, target OneDnn::dnnl.
# Not by its own package file: Debian's requires OpenCL headers and aborts the configuration without
# them, even under QUIET.
find_path(OneDnn_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
find_library(OneDnn_LIBRARY dnnl)

if(OneDnn_INCLUDE_DIR AND EXISTS ${OneDnn_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h)
  file(STRINGS ${OneDnn_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h onednn_lines
       REGEX "#define DNNL_VERSION_(MAJOR|MINOR|PATCH) +[0-9]+")
  string(REGEX REPLACE "[^0-9;]" "" onednn_numbers "${onednn_lines}")
  list(JOIN onednn_numbers "." OneDnn_VERSION)
endif()

# Under SYCL a primitive may still be running when execute() returns, and the engine does not wait.
# A runtime for GPUs does not matter, because the engine runs on the CPU only.
set(OneDnn_SYNCHRONOUS ON)
set(onednn_reason "")
if(OneDnn_INCLUDE_DIR AND EXISTS ${OneDnn_INCLUDE_DIR}/oneapi/dnnl/dnnl_config.h)
  file(STRINGS ${OneDnn_INCLUDE_DIR}/oneapi/dnnl/dnnl_config.h onednn_sycl
       REGEX "^#define DNNL_CPU_RUNTIME +DNNL_RUNTIME_(SYCL|DPCPP)")
  if(onednn_sycl)
    set(OneDnn_SYNCHRONOUS OFF)
    set(onednn_reason "${OneDnn_INCLUDE_DIR} has a oneDNN for SYCL, which runs asynchronously: stoker \
needs one that is built for OpenMP (libdnnl-dev of Debian and Ubuntu, onednn-devel-cpu-gomp of PyPI).")
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OneDnn
  REQUIRED_VARS OneDnn_LIBRARY OneDnn_INCLUDE_DIR OneDnn_SYNCHRONOUS VERSION_VAR OneDnn_VERSION
  REASON_FAILURE_MESSAGE "${onednn_reason}")
if(OneDnn_FOUND AND NOT TARGET OneDnn::dnnl)
  add_library(OneDnn::dnnl UNKNOWN IMPORTED)
  set_target_properties(OneDnn::dnnl PROPERTIES IMPORTED_LOCATION ${OneDnn_LIBRARY}
                        INTERFACE_INCLUDE_DIRECTORIES ${OneDnn_INCLUDE_DIR})
endif()
mark_as_advanced(OneDnn_INCLUDE_DIR OneDnn_LIBRARY)
