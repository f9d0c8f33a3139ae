# `cpack` in the build folder: one archive of all, and Debian packages: stoker (the program), libstoker-dev, and the
# plugins stoker-mpi, stoker-cuda and stoker-curl by themselves, for they bring what not everybody wants.
set(CPACK_PACKAGE_VENDOR stoker)
set(CPACK_PACKAGE_CONTACT "The stoker developers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_FILE_NAME "stoker-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}")
set(CPACK_COMPONENTS_ALL runtime development)
foreach(plugin mpi cuda curl)
  if(TARGET stoker_${plugin})
    list(APPEND CPACK_COMPONENTS_ALL ${plugin})
  endif()
endforeach()

# Debian: what the binaries need is read off them, which takes dpkg-shlibdeps.
find_program(STOKER_SHLIBDEPS dpkg-shlibdeps)
mark_as_advanced(STOKER_SHLIBDEPS)
if(STOKER_SHLIBDEPS)
  list(APPEND CPACK_GENERATOR DEB)
else()
  message(STATUS "stoker: no Debian packages: dpkg-shlibdeps was not found (dpkg-dev)")
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(same_version "stoker (= ${PROJECT_VERSION})")

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME stoker)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS "stoker-mpi, stoker-cuda, stoker-curl")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libstoker-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
if(BUILD_SHARED_LIBS)
  set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${same_version}")
else()
  set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
      "pkg-config, libjpeg-dev, libhwy-dev, libtbb-dev, libxxhash-dev, libfmt-dev")
  if(STOKER_HAS_CODECS)
    string(APPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ", libtiff-dev, libwebp-dev")
  endif()
  if(STOKER_HAS_ZSTD)
    string(APPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ", libzstd-dev")
  endif()
  if(STOKER_HAS_ONEDNN)  # of stoker::train only
    set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_RECOMMENDS libdnnl-dev)
  endif()
endif()

set(CPACK_DEBIAN_MPI_PACKAGE_NAME stoker-mpi)
set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "${same_version}")

# Data in object stores.
set(CPACK_DEBIAN_CURL_PACKAGE_NAME stoker-curl)
set(CPACK_DEBIAN_CURL_PACKAGE_DEPENDS "${same_version}")

# cuDNN, cuBLASLt and NCCL come from NVIDIA, in a package of Debian's or in a Python environment.
set(CPACK_DEBIAN_CUDA_PACKAGE_NAME stoker-cuda)
set(CPACK_DEBIAN_CUDA_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "${same_version}")
include(CPack)
