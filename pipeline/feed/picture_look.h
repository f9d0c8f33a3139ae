// Says what a worker will have for the pictures of a data set, by making rows of a few of them: the
// memory of a row depends on the format, on the size of the picture, on the length of its file and
// on the recipe, and no formula knows all of that as well as the code that allocates it.
//
// It looks at the headers of samples that are spread over the data set, and makes rows of the
// largest; of files that are not in memory it reads a few. A store is asked for nothing, nor is a
// data set that is code of users. Threads: any.
#pragma once

#include <cstdint>
#include <optional>

#include "decode/memory_budget.h"
#include "pipeline/augment.h"
#include "pipeline/source.h"

namespace stoker {

struct PictureLook {
  int64_t row_bytes = 0;   // scratch and the file's buffer, after the largest pictures seen
  int64_t file_bytes = 0;  // of the largest file seen
  bool is_cached = true;   // most of the files were in memory
};

// Takes what it needs from `memory`. nullopt: nothing can be said, because no file can be read
// here, or rows are of several samples.
std::optional<PictureLook> look_at_pictures(const Source& source, const AugmentSpec& augment,
                                            const DecodeOptions& decode, MemoryBudget& memory);

}  // namespace stoker
