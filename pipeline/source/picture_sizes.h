// The sizes of all pictures of a source, read from their headers in one pass, which is kept in the
// cache directory under a name made from the list of samples: for aspect buckets (step_shapes.h).
// In files of this machine the first kilobytes of each picture are read; a store is read as a
// whole. Kept sizes hold as long as the names are the same, and the stamps of 1,000 files that are
// spread evenly. A file that changed unnoticed keeps its bucket: its row is still resized to cover
// the size and cropped.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "decode/image_decoder.h"
#include "pipeline/files/cache_folder.h"
#include "pipeline/source.h"

namespace stoker {

struct PictureSizeOptions {
  DecodeOptions decode{};                          // the EXIF policy and max_pixels count
  int workers = -1;                                // threads; -1: one per core
  std::string cache_dir = default_cache_folder();  // "" keeps nothing
  // Called now and then on one of the threads, one call at a time. Return false to stop:
  // picture_sizes() throws std::runtime_error then.
  std::function<bool(int64_t done, int64_t total)> go_on{};
};

// Returns one for each sample, as it is decoded; {} where that is unknown, because the file cannot
// be read or is damaged: its row says why. Throws what reading a store throws.
std::vector<Size> picture_sizes(const Source& source, const PictureSizeOptions& options = {});

}  // namespace stoker
