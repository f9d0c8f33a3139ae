// A folder of images that is always read from storage: each file is evicted from the page cache
// before it is read, so that every epoch is like the first one of a data set larger than memory.
// The file is evicted before the read and not after it, because the kernel may keep pages that were
// read a moment ago. This makes a read some microseconds longer. Threads: as every Source. Throws
// std::invalid_argument that names --cold if samples are not files, or if the files stay in memory
// all the same (tmpfs, a file that another program maps).
#pragma once

#include <string>
#include <vector>

#include "pipeline/source/source.h"

namespace stoker {

class ColdSource final : public Source {
 public:
  // Evicts all files from the page cache. `files` must outlive this.
  explicit ColdSource(const Source& files);

  int64_t size() const override { return files_.size(); }
  int label(SampleId id) const override { return files_.label(id); }
  std::string name(SampleId id) const override { return files_.name(id); }
  const std::string& root() const override { return files_.root(); }
  const std::vector<std::string>& class_names() const override { return files_.class_names(); }
  SampleEncoding encoding() const override { return files_.encoding(); }
  Size raw_size() const override { return files_.raw_size(); }
  // read_cached() returns false for every sample, so that all of them are read from storage.
  ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                  std::span<const uint8_t>& bytes) const override;
  uint64_t fingerprint() const override { return files_.fingerprint(); }

 private:
  const Source& files_;
};

}  // namespace stoker
