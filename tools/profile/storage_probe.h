// The storage alone: reads samples as the feed's I/O threads do, and does nothing with them. The
// probe uses the same and twice the threads, to distinguish slow storage from too few threads. If
// the samples are files that can be evicted from the page cache, it reads them cold, too. Blocks
// for the given times. Errors: samples that cannot be read count as read.
#pragma once

#include "pipeline/source.h"

namespace stoker {

struct StorageRates {      // images/s; -1: not measured
  double warm = -1;        // from the page cache (or the source's memory)
  double warm_twice = -1;  // with twice the threads
  double cold = -1;        // after the files were evicted from the page cache
  double cold_twice = -1;
};

struct StorageProbe {
  int threads = 1;
  double seconds_each = 0.4;
  uint64_t seed = 0;  // decides which samples
};

StorageRates probe_storage(const Source& source, const StorageProbe& probe);

// Evicts a sample's file from the page cache; returns false if it is not a file or cannot be
// evicted.
bool evict_from_cache(const Source& source, SampleId id);

}  // namespace stoker
