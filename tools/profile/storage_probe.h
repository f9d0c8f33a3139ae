// The storage alone: samples are read as the feed's I/O threads read them, and nothing is done with
// them. The probe uses the same and twice the threads, to tell storage that is slow from storage
// that too few threads ask. Where the samples are files that can be put out of the page cache, it
// reads them cold, too. Blocks for the times given. Errors: samples that cannot be read count as
// read.
#pragma once

#include "pipeline/source/source.h"

namespace stoker {

struct StorageRates {      // images/s; -1: not measured
  double warm = -1;        // as the page cache (or the source's memory) has them
  double warm_twice = -1;  // with twice the threads
  double cold = -1;        // after the files were put out of the page cache
  double cold_twice = -1;
};

struct StorageProbe {
  int threads = 1;
  double seconds_each = 0.4;
  uint64_t seed = 0;  // which samples
};

StorageRates probe_storage(const Source& source, const StorageProbe& probe);

// Puts a sample's file out of the page cache; false where it is no file, or cannot be.
bool evict_from_cache(const Source& source, SampleId id);

}  // namespace stoker
