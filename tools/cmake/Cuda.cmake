# The CUDA half: two plugins that the program opens at run time. Two and not one: who only feeds another trainer,
# in somebody's PyTorch say, must not need cuDNN.
#
#   libstoker_cuda.so        staging: devices, pinned memory, streams, events, the normalise kernel. Needs a driver
#                            only (the CUDA runtime is linked statically and hidden).
#   libstoker_cuda_train.so  train: cuDNN, cuBLASLt, NCCL. Only who trains on a GPU opens it.
#
# Sets STOKER_CUDA_FOUND (nvcc: the first plugin) and STOKER_CUDA_TRAIN_FOUND (cuDNN and cuBLASLt too: the
# second); NCCL_FOUND says whether several GPUs can be reduced over. STOKER_OPENS_CUDA and STOKER_OPENS_CUDA_TRAIN say
# which plugins are opened: in a Python wheel also those of another wheel, stoker-cuda. Adds its lines to STOKER_SUMMARY.
# Nothing links the driver library (-lcuda): a program that did would not start without a driver.
set(STOKER_CUDA AUTO CACHE STRING "Build the CUDA plugins: AUTO (where nvcc is found), ON, OFF")
set_property(CACHE STOKER_CUDA PROPERTY STRINGS AUTO ON OFF)
option(STOKER_CUDA_PLUGINS "Open the CUDA plugins that another build has made, where this one makes none" OFF)
set(STOKER_CUDA_FOUND OFF)
set(STOKER_CUDA_TRAIN_FOUND OFF)
# Machine code for these, and PTX of the last one for what comes after it.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 100)
endif()

macro(stoker_enable_cuda)
  if(STOKER_CCACHE AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${STOKER_CCACHE})
  endif()
  enable_language(CUDA)
  # CMake before 3.25.2 does not know that nvcc 12 speaks C++20 and silently compiles C++17 instead.
  if(NOT "cuda_std_20" IN_LIST CMAKE_CUDA_COMPILE_FEATURES)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_COMPILE_FEATURES cuda_std_20)
    list(APPEND CMAKE_CUDA_COMPILE_FEATURES cuda_std_20)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_EXTENSIONS OFF)
  # constexpr functions are for both sides: what a kernel does is tested on the host without a macro.
  string(APPEND CMAKE_CUDA_FLAGS " --expt-relaxed-constexpr")
  # A kernel whose registers do not suffice reads and writes memory instead: an error with STOKER_WERROR.
  string(APPEND CMAKE_CUDA_FLAGS " -Xptxas=--warn-on-spills")
  find_package(CUDAToolkit REQUIRED)
  find_package(cuDNN 9 QUIET)
  find_package(NCCL QUIET)
  set(STOKER_CUDA_FOUND ON)
  if(cuDNN_FOUND AND TARGET CUDA::cublasLt)
    set(STOKER_CUDA_TRAIN_FOUND ON)
  endif()
endmacro()

if(STOKER_CUDA)
  include(CheckLanguage)
  # nvcc need not be on PATH; and one that does not work counts as none.
  find_program(STOKER_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin)
  mark_as_advanced(STOKER_NVCC)
  if(STOKER_NVCC AND NOT DEFINED ENV{CUDACXX})
    set(ENV{CUDACXX} ${STOKER_NVCC})
  endif()
  if(DEFINED ENV{CUDACXX} OR CMAKE_CUDA_COMPILER)
    check_language(CUDA)
  endif()
  set(cuda_problem "there is no working nvcc (PATH, CUDACXX or CUDA_HOME)")
  if(CMAKE_CUDA_COMPILER)
    execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --version OUTPUT_VARIABLE nvcc_text ERROR_QUIET)
    string(REGEX REPLACE ".*release ([0-9.]+).*" "\\1" nvcc_version "${nvcc_text}")
    set(cuda_problem "")
    if(nvcc_version VERSION_LESS 12.8)  # the first that knows the architecture 100
      set(cuda_problem "nvcc ${nvcc_version} is too old: 12.8 it must be, or later")
    endif()
  endif()
  if(cuda_problem STREQUAL "")
    stoker_enable_cuda()
  elseif(STOKER_CUDA STREQUAL AUTO)
    message(STATUS "stoker: without CUDA: ${cuda_problem}")
  else()
    message(FATAL_ERROR "STOKER_CUDA=${STOKER_CUDA}, but ${cuda_problem}")
  endif()
endif()

set(STOKER_OPENS_CUDA ${STOKER_CUDA_FOUND})
set(STOKER_OPENS_CUDA_TRAIN ${STOKER_CUDA_TRAIN_FOUND})
if(STOKER_CUDA_PLUGINS)
  set(STOKER_OPENS_CUDA ON)
  set(STOKER_OPENS_CUDA_TRAIN ON)
endif()

# For the summary and `stoker info`: LABEL, its version or nothing, and what is missing without it.
macro(stoker_note_cuda label version what)
  set(STOKER_LIBRARY_ROWS "${STOKER_LIBRARY_ROWS}    {\"${label}\", \"${version}\"},\n")
  if(NOT "${version}" STREQUAL "")
    list(APPEND STOKER_SUMMARY "${label}: ${version}")
  elseif(STOKER_CUDA STREQUAL OFF)
    list(APPEND STOKER_SUMMARY "${label}: left out: ${what} (option OFF)")
  else()
    list(APPEND STOKER_SUMMARY "${label}: NOT FOUND: ${what}")
  endif()
endmacro()

set(cublaslt_version "")
if(TARGET CUDA::cublasLt)
  set(cublaslt_version "found")
endif()
stoker_note_cuda(CUDA "${CUDAToolkit_VERSION}" "no GPU can be fed or trained on")
stoker_note_cuda(cuDNN "${cuDNN_VERSION}" "no training on GPUs")
stoker_note_cuda(cuBLASLt "${cublaslt_version}" "no training on GPUs")
stoker_note_cuda(NCCL "${NCCL_VERSION}" "no training on several GPUs at once")

# stoker_cuda_plugin(TARGET SOURCES... [LIBRARIES ...] [RUNTIME TARGET]): builds lib<TARGET>.so next to the
# program. Exports what is marked so (its C entry) and nothing of what it links statically. Finds its libraries
# beside itself, where NVIDIA's Python wheels put them (it in site-packages/stoker or stoker_cuda), and in the build folder where
# they were at build time. The CUDA runtime is linked statically, but for tests that name another to put in its place. Plugin
# and program know by STOKER_BUILD_STAMP that they come from one build.
set(STOKER_BUILD_STAMP "stoker ${PROJECT_VERSION} ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
set(STOKER_CUDA_RUNPATH "$ORIGIN;$ORIGIN/../nvidia/cu13/lib;$ORIGIN/../nvidia/cudnn/lib;$ORIGIN/../nvidia/nccl/lib")
function(stoker_cuda_plugin target)
  cmake_parse_arguments(arg "" "RUNTIME" "LIBRARIES" ${ARGN})
  set(runtime CUDA::cudart_static)
  if(arg_RUNTIME)
    set(runtime ${arg_RUNTIME})
  endif()
  add_library(${target} MODULE ${arg_UNPARSED_ARGUMENTS})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  target_include_directories(${target} SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  target_link_libraries(${target} PRIVATE stoker_flags stoker_plugin_flags ${arg_LIBRARIES} ${runtime} Threads::Threads)
  target_compile_definitions(${target} PRIVATE STOKER_BUILD_STAMP="${STOKER_BUILD_STAMP}")
  target_link_options(${target} PRIVATE LINKER:--exclude-libs,ALL)
  set_target_properties(${target} PROPERTIES
    PREFIX lib
    LINKER_LANGUAGE CUDA
    CUDA_RUNTIME_LIBRARY None  # named above, once
    CXX_VISIBILITY_PRESET hidden
    CUDA_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
    INSTALL_RPATH "${STOKER_CUDA_RUNPATH};${CMAKE_INSTALL_RPATH}")
  if(arg_LIBRARIES)  # nvcc's own folders are none of those that CMake names by itself
    set_target_properties(${target} PROPERTIES BUILD_RPATH "${CUDAToolkit_LIBRARY_DIR}")
  endif()
endfunction()
