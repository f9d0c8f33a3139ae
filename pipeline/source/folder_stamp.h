// Makes the stamp of a folder from its stat. Internal to the index.
#pragma once

#include <sys/stat.h>

#include <string>

#include "pipeline/source/folder_index.h"

namespace stoker {

inline FolderStamp stamp_of(const std::string& path, const struct stat& status) {
  const auto nanoseconds = [](const timespec& time) {
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  };
  return {path, static_cast<uint64_t>(status.st_ino), nanoseconds(status.st_mtim),
          nanoseconds(status.st_ctim)};
}

}  // namespace stoker
