// Makes the stamp of a folder from its stat. Internal to the index.
#pragma once

#include <sys/stat.h>

#include <string>

#include "pipeline/files/file_time.h"
#include "pipeline/source/folder_index.h"

namespace stoker {

inline FolderStamp stamp_of(const std::string& path, const struct stat& status) {
  return {path, static_cast<uint64_t>(status.st_ino), nanoseconds_of(status.st_mtim),
          nanoseconds_of(status.st_ctim)};
}

}  // namespace stoker
