// A blob as it was when its samples were listed.
#pragma once

#include <sys/stat.h>

#include <cstdint>

#include "pipeline/source/file_time.h"

namespace stoker {

struct BlobStamp {
  int64_t bytes = 0;
  int64_t modified_ns = 0;
  bool operator==(const BlobStamp&) const = default;
};

inline BlobStamp blob_stamp_of(const struct stat& status) {
  return {status.st_size, nanoseconds_of(status.st_mtim)};
}

}  // namespace stoker
