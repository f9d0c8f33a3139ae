// Holds files of another source in memory, to measure without storage. An epoch has each file many
// times. Threads: as every Source.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/source.h"

namespace stoker {

class MemorySource final : public Source, private SampleStorage {
 public:
  // Reads the first files: at most 2,000, and at most 256 MiB. Throws std::runtime_error if none
  // can be read.
  explicit MemorySource(const Source& files);

  const SourceInfo& info() const override { return info_; }
  int label(SampleId id) const override { return files_.label(id % count()); }
  std::string name(SampleId id) const override;
  ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                  std::span<const uint8_t>& bytes) const override;
  const SampleStorage& storage() const override { return *this; }

 private:
  bool read_cached(SampleId id, std::vector<uint8_t>& buffer,
                   std::span<const uint8_t>& bytes) const override {
    return read(id, buffer, bytes).ok;
  }
  int64_t count() const { return std::ssize(bytes_); }

  const Source& files_;
  SourceInfo info_;
  std::vector<std::vector<uint8_t>> bytes_;  // empty for a file that could not be read
};

}  // namespace stoker
