# What `cmake --install` gives: the libraries with their public headers, a CMake package and pkg-config files
# (component `development`), the program, its recipes and, in a shared build, the libraries (`runtime`), the plugins
# (`mpi`, `cuda`, `openjpeg`, `avif`, `curl`).
#
# Public headers are those that a consumer needs, and what they include. In the tree they include each other as
# "decode/image.h"; installed they lie in include/stoker/ and say "stoker/decode/image.h", so that a consumer's include
# path holds one name of ours. They are rewritten into the build folder, at configuration time.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(STOKER_HEADER_DIR ${PROJECT_BINARY_DIR}/include)
set(STOKER_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/stoker)
set(STOKER_PLUGIN_DIR ${CMAKE_INSTALL_LIBDIR}/stoker)
# Where plugins are looked for (staging/plugin.cc), besides beside the program.
set(STOKER_PLUGIN_FOLDER ${CMAKE_INSTALL_FULL_LIBDIR}/stoker)
file(RELATIVE_PATH STOKER_PLUGINS_FROM_PROGRAM ${CMAKE_INSTALL_FULL_BINDIR} ${STOKER_PLUGIN_FOLDER})
if(SKBUILD)  # a Python wheel: the package stoker opens those of the package stoker_cuda, wherever the environment lies
  set(STOKER_PLUGIN_DIR stoker_cuda)
  set(STOKER_PLUGIN_FOLDER "")
  set(STOKER_PLUGINS_FROM_PROGRAM ../stoker_cuda)
endif()
set_property(GLOBAL PROPERTY STOKER_COMPONENTS "")

configure_file(${PROJECT_SOURCE_DIR}/tools/cmake/version.h.in ${STOKER_HEADER_DIR}/stoker/version.h @ONLY)

# The program finds shared libraries of ours wherever the whole is moved to.
if(BUILD_SHARED_LIBS AND NOT DEFINED CMAKE_INSTALL_RPATH)
  file(RELATIVE_PATH to_libraries ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  set(CMAKE_INSTALL_RPATH "$ORIGIN;$ORIGIN/${to_libraries}")
endif()

# stoker_runpath(TARGET FOLDER [options of install()]): where a target that is installed in FOLDER looks for libraries. In the
# build folder that is its INSTALL_RPATH, its BUILD_RPATH and the folders of what it is linked with, installed the first alone. CMake's
# own way is to fill up the first with ":" so that it can be changed, and an empty element is the current directory: a program
# that is started in somebody else's folder would load that folder's libraries.
function(stoker_runpath target folder)
  get_target_property(folders ${target} INSTALL_RPATH)
  if(NOT folders)  # there is no such property
    set(folders "")
  endif()
  get_target_property(of_build ${target} BUILD_RPATH)
  if(NOT of_build)
    set(of_build "")
  endif()
  set(all_folders ${folders} ${of_build})  # an empty element is left out
  list(FILTER folders EXCLUDE REGEX "^$")
  set_target_properties(${target} PROPERTIES INSTALL_RPATH "${all_folders}" INSTALL_RPATH_USE_LINK_PATH ON BUILD_WITH_INSTALL_RPATH ON)
  if(CMAKE_INSTALL_RPATH_USE_LINK_PATH OR CMAKE_SKIP_RPATH OR CMAKE_SKIP_INSTALL_RPATH)
    return()
  endif()
  list(JOIN folders ":" folders)
  install(CODE "cmake_path(SET file \"${folder}/$<TARGET_FILE_NAME:${target}>\")
    cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY \"\${CMAKE_INSTALL_PREFIX}\")
    file(RPATH_SET FILE \"\$ENV{DESTDIR}\${file}\" NEW_RPATH \"${folders}\")" ${ARGN})
endfunction()

# stoker_library(stoker_NAME HEADERS ...): what all libraries of ours have in common. To a consumer it is stoker::NAME.
function(stoker_library target)
  cmake_parse_arguments(arg "" "" "HEADERS" ${ARGN})
  string(REPLACE stoker_ "" name ${target})
  add_library(stoker::${name} ALIAS ${target})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                             $<BUILD_INTERFACE:${STOKER_HEADER_DIR}>)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:stoker_flags>)
  # Before 1.0 every minor version may change what is in a library. Shared ones lie where the plugins do: those are
  # looked for beside the library that opens them.
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} VERSION ${PROJECT_VERSION}
                        SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
                        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  foreach(header IN LISTS arg_HEADERS)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${header})
    file(READ ${header} text)
    string(REGEX REPLACE "#include \"(decode|staging|pipeline|train)/" "#include \"stoker/\\1/" text "${text}")
    file(CONFIGURE OUTPUT ${STOKER_HEADER_DIR}/stoker/${name}/${header} CONTENT "${text}" @ONLY)
  endforeach()

  if(SKBUILD)  # a Python wheel: it holds the package in python/ and nothing else
    return()
  endif()
  set_property(GLOBAL APPEND PROPERTY STOKER_COMPONENTS ${name})
  install(TARGETS ${target} EXPORT stoker-${name}
          ARCHIVE COMPONENT development
          LIBRARY COMPONENT runtime NAMELINK_COMPONENT development
          INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  if(BUILD_SHARED_LIBS)
    stoker_runpath(${target} ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
  endif()
  install(EXPORT stoker-${name} NAMESPACE stoker:: DESTINATION ${STOKER_PACKAGE_DIR} COMPONENT development)
endfunction()

# stoker_pc(NAME REQUIRES "..." REQUIRES_PRIVATE "..." LIBS_PRIVATE "..."): stoker-NAME.pc. What is private is asked for by
# pkg-config --static, which consumers of static libraries need.
function(stoker_pc name)
  cmake_parse_arguments(pc "" "REQUIRES;REQUIRES_PRIVATE;LIBS_PRIVATE" "" ${ARGN})
  set(pc_name ${name})
  file(RELATIVE_PATH pc_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
  string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
  configure_file(${PROJECT_SOURCE_DIR}/tools/cmake/stoker.pc.in ${PROJECT_BINARY_DIR}/pkgconfig/stoker-${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/pkgconfig/stoker-${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
          COMPONENT development)
endfunction()

function(stoker_install_pkgconfig)
  set(codecs "")
  if(STOKER_HAS_CODECS)
    set(codecs " libtiff-4 libwebp")
  endif()
  set(zstd "")
  if(STOKER_HAS_ZSTD)
    set(zstd " libzstd")
  endif()
  set(onednn "")
  if(STOKER_HAS_ONEDNN)
    set(onednn "-ldnnl")
  endif()
  stoker_pc(decode REQUIRES_PRIVATE "libjpeg libhwy${codecs}" LIBS_PRIVATE "-ldl")
  stoker_pc(staging LIBS_PRIVATE "-ldl -lpthread")
  stoker_pc(pipeline REQUIRES "stoker-decode stoker-staging" REQUIRES_PRIVATE "tbb libxxhash${zstd}" LIBS_PRIVATE "-ldl")
  if(TARGET stoker_train)
    stoker_pc(train REQUIRES "stoker-pipeline" REQUIRES_PRIVATE "fmt libhwy" LIBS_PRIVATE "${onednn} -ldl")
  endif()
endfunction()

# A public header includes public headers only: who adds an include hears of it here.
function(stoker_check_headers)
  file(GLOB_RECURSE headers ${STOKER_HEADER_DIR}/stoker/*.h)
  foreach(header IN LISTS headers)
    file(STRINGS ${header} lines REGEX "^#include \"stoker/")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "#include \"([^\"]+)\".*" "\\1" included "${line}")
      if(NOT EXISTS ${STOKER_HEADER_DIR}/${included})
        message(FATAL_ERROR "stoker: the public header ${header} includes ${included}, which is not public: name it "
                            "in its folder's stoker_library(... HEADERS ...)")
      endif()
    endforeach()
  endforeach()
endfunction()

function(stoker_install_cuda_plugins)  # [EXCLUDE_FROM_ALL]
  foreach(plugin stoker_cuda stoker_cuda_train)
    if(TARGET ${plugin})
      install(TARGETS ${plugin} LIBRARY DESTINATION ${STOKER_PLUGIN_DIR} COMPONENT cuda ${ARGN})
      stoker_runpath(${plugin} ${STOKER_PLUGIN_DIR} COMPONENT cuda ${ARGN})
    endif()
  endforeach()
endfunction()

# Everything but the libraries, after all folders.
function(stoker_install_package)
  if(SKBUILD)
    stoker_install_cuda_plugins(EXCLUDE_FROM_ALL)  # python/cuda asks for them by name
    return()
  endif()
  stoker_check_headers()
  get_property(STOKER_COMPONENTS GLOBAL PROPERTY STOKER_COMPONENTS)
  install(DIRECTORY ${STOKER_HEADER_DIR}/stoker DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
  install(FILES ${PROJECT_SOURCE_DIR}/tests/consumer/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME cpp.md
          COMPONENT development)

  configure_package_config_file(${PROJECT_SOURCE_DIR}/tools/cmake/stoker-config.cmake.in
                                ${PROJECT_BINARY_DIR}/stoker-config.cmake INSTALL_DESTINATION ${STOKER_PACKAGE_DIR}
                                NO_CHECK_REQUIRED_COMPONENTS_MACRO)
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/stoker-config-version.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/stoker-config.cmake ${PROJECT_BINARY_DIR}/stoker-config-version.cmake
          ${PROJECT_SOURCE_DIR}/tools/cmake/FindOneDnn.cmake DESTINATION ${STOKER_PACKAGE_DIR} COMPONENT development)
  stoker_install_pkgconfig()

  if(TARGET stoker)
    install(TARGETS stoker RUNTIME COMPONENT runtime)
    stoker_runpath(stoker ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/train/recipes DESTINATION ${CMAKE_INSTALL_DATADIR}/stoker
            COMPONENT runtime)
  endif()
  foreach(plugin mpi openjpeg avif curl)
    if(TARGET stoker_${plugin})
      install(TARGETS stoker_${plugin} LIBRARY DESTINATION ${STOKER_PLUGIN_DIR} COMPONENT ${plugin})
      stoker_runpath(stoker_${plugin} ${STOKER_PLUGIN_DIR} COMPONENT ${plugin})
    endif()
  endforeach()
  stoker_install_cuda_plugins()
endfunction()
