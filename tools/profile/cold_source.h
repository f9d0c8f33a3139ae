// A folder of images that is always read from storage: each file is evicted from the page cache
// before it is read, so that every epoch is like the first one of a data set larger than memory.
// The file is evicted before the read and not after it, because the kernel may keep pages that were
// read a moment ago. This makes a read some microseconds longer. Threads: as every Source. Throws
// std::invalid_argument that names --cold if samples are not files, or if the files stay in memory
// all the same (tmpfs, a file that another program maps).
#pragma once

#include <vector>

#include "pipeline/source/forwarding_source.h"

namespace stoker {

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
