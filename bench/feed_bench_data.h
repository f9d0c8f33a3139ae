// What feed_bench feeds: made-up pictures and CIFAR rows on disk, and files held in memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "pipeline/source.h"

namespace stoker {

// What the user gave no data for; removed at the end.
class MadeUpData {
 public:
  MadeUpData();
  ~MadeUpData();
  MadeUpData(const MadeUpData&) = delete;
  MadeUpData& operator=(const MadeUpData&) = delete;
  std::string cifar() const;     // 50,000 records of CIFAR-10's test_batch.bin; returns the folder
  std::string pictures() const;  // 64 JPEGs of 500 x 375 in two class folders; returns the root

 private:
  const std::filesystem::path path_;
};

// The first files of another source (2,000 or 256 MiB), given out without a copy; an epoch names
// each many times. Throws std::runtime_error if none can be read.
class MemorySource final : public Source {
 public:
  explicit MemorySource(const Source& files);
  int64_t size() const override { return std::ssize(files_) * 100; }
  int label(SampleId id) const override { return static_cast<int>(id % 2); }
  std::string name(SampleId id) const override { return std::to_string(id); }
  const std::string& root() const override { return root_; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  SampleEncoding encoding() const override { return SampleEncoding::image_file; }
  Size raw_size() const override { return {}; }
  ReadStatus read(SampleId id, std::vector<uint8_t>&,
                  std::span<const uint8_t>& bytes) const override {
    bytes = files_[static_cast<size_t>(id) % files_.size()];
    return {};
  }
  uint64_t fingerprint() const override { return 1; }

 private:
  const std::string root_;
  const std::vector<std::string> class_names_ = {"a", "b"};
  std::vector<std::vector<uint8_t>> files_;
};

}  // namespace stoker
