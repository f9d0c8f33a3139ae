// The storage alone: reads samples as the feed's I/O threads do, and does nothing with them. The
// probe uses the same and twice the threads, to distinguish slow storage from too few threads. If
// the samples are files that can be evicted from the page cache, it reads them cold, too. Blocks
// for the given times. Errors: samples that cannot be read count as read.
#pragma once

#include <vector>

#include "pipeline/source.h"
#include "pipeline/source/forwarding_source.h"

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

// A folder of images that is always read from storage: each file is evicted from the page cache
// before it is read, so that every epoch is like the first one of a data set larger than memory.
// The file is evicted before the read and not after it, because the kernel may keep pages that were
// read a moment ago. This makes a read some microseconds longer. Threads: as every Source. Throws
// std::invalid_argument that names --cold if samples are not files, or if the files stay in memory
// all the same (tmpfs, a file that another program maps).
class ColdSource final : public ForwardingSource {
 public:
  // Evicts all files from the page cache. `files` must outlive this.
  explicit ColdSource(const Source& files);

  ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                  std::span<const uint8_t>& bytes) const override;
  FileStamp stamp(SampleId id) const override { return source_.storage().stamp(id); }
  bool read_pieces(SampleId id, const FileStamp& stamp, std::span<const BytePiece> pieces,
                   MayWait may_wait) const override;
  // Returns false for every sample, so that all of them are read from storage.
  bool read_cached(SampleId, std::vector<uint8_t>&, std::span<const uint8_t>&) const override {
    return false;
  }
};

}  // namespace stoker
