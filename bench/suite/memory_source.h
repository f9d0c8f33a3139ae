// Holds files of another source in memory, to measure without storage. An epoch has each file many
// times. Threads: as every Source.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/source.h"

namespace stoker {

class MemorySource final : public Source {
 public:
  // Reads the first files: at most 2,000, and at most 256 MiB. Throws std::runtime_error if none
  // can be read.
  explicit MemorySource(const Source& files);

  int64_t size() const override;
  int label(SampleId id) const override { return files_.label(id % count()); }
  std::string name(SampleId id) const override;
  const std::string& root() const override { return files_.root(); }
  const std::vector<std::string>& class_names() const override { return files_.class_names(); }
  SampleEncoding encoding() const override { return files_.encoding(); }
  Size raw_size() const override { return files_.raw_size(); }
  ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                  std::span<const uint8_t>& bytes) const override;
  bool read_cached(SampleId id, std::vector<uint8_t>& buffer,
                   std::span<const uint8_t>& bytes) const override {
    return read(id, buffer, bytes).ok;
  }
  uint64_t fingerprint() const override { return files_.fingerprint(); }

 private:
  int64_t count() const { return std::ssize(bytes_); }

  const Source& files_;
  std::vector<std::vector<uint8_t>> bytes_;  // empty for a file that could not be read
};

}  // namespace stoker
