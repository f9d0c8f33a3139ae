# Writes OUTPUT, a header with the commit that SOURCE_DIR stands at, and only if that changed: run at every build, so
# that results never name an older one. "-dirty": the work tree differs from it; "unknown": no repository.
set(commit unknown)
find_program(GIT git)
if(GIT)
  execute_process(COMMAND ${GIT} -C ${SOURCE_DIR} rev-parse --short=12 HEAD OUTPUT_VARIABLE found
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    set(commit ${found})
    execute_process(COMMAND ${GIT} -C ${SOURCE_DIR} status --porcelain --untracked-files=no OUTPUT_VARIABLE changes
                    ERROR_QUIET)
    if(changes)
      string(APPEND commit -dirty)
    endif()
  endif()
endif()
set(text "// Made by tools/cmake/Commit.cmake.\n#pragma once\n\nnamespace stoker {\n
constexpr const char* kBuildCommit = \"${commit}\";\n\n}  // namespace stoker\n")
set(before "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT before STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
