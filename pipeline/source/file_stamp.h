// Stamps of files (source.h).
#pragma once

#include <sys/stat.h>

#include "pipeline/files/file_time.h"
#include "pipeline/source.h"

namespace stoker {

inline FileStamp file_stamp_of(const struct stat& status) {
  return {status.st_size, nanoseconds_of(status.st_mtim)};
}

// Returns the stamp if it can stand for bytes that were read at `seen_ns` (system clock) or later:
// an unknown one if the file changed so shortly before that, or since, that it may change again
// without a new stamp.
inline FileStamp settled_stamp(const FileStamp& stamp, int64_t seen_ns) {
  return stamp.modified_ns <= seen_ns - kSettleNs ? stamp : FileStamp{};
}

}  // namespace stoker
