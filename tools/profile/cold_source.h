// A folder of images that is always read from storage: each file is put out of the page cache
// before it is read, so that every epoch is as the first one of a data set larger than memory.
// That happens before the read and not after it, because the kernel may keep pages that were read a
// moment ago. It makes a read some microseconds longer. Threads: as every Source.
// Errors: std::invalid_argument, naming --cold, where samples are not files, or where the files
// stay in memory all the same (tmpfs, a file that another program maps).
#pragma once

#include <string>
#include <vector>

#include "pipeline/source/source.h"

namespace stoker {

class ColdSource final : public Source {
 public:
  // Puts all files out of the page cache. `files` must outlive this.
  explicit ColdSource(const Source& files);

  int64_t size() const override { return files_.size(); }
  int label(SampleId id) const override { return files_.label(id); }
  std::string name(SampleId id) const override { return files_.name(id); }
  const std::string& root() const override { return files_.root(); }
  const std::vector<std::string>& class_names() const override { return files_.class_names(); }
  SampleEncoding encoding() const override { return files_.encoding(); }
  Size raw_size() const override { return files_.raw_size(); }
  // read_cached() is false for every sample, so that workers ask storage for all of them.
  ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                  std::span<const uint8_t>& bytes) const override;
  uint64_t fingerprint() const override { return files_.fingerprint(); }

 private:
  const Source& files_;
};

}  // namespace stoker
