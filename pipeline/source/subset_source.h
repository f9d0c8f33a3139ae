// A subset of another source, spread evenly over it, in its order.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "pipeline/source/source.h"

namespace stoker {

class SubsetSource final : public Source {
 public:
  // `limit` <= 0 or beyond the source's size: all samples. `source` must outlive this.
  SubsetSource(const Source& source, int64_t limit)
      : source_(source), size_(limit > 0 ? std::min(limit, source.size()) : source.size()) {}

  int64_t size() const override { return size_; }
  int label(SampleId id) const override { return source_.label(original(id)); }
  std::string name(SampleId id) const override { return source_.name(original(id)); }
  const std::string& root() const override { return source_.root(); }
  const std::vector<std::string>& class_names() const override { return source_.class_names(); }
  SampleEncoding encoding() const override { return source_.encoding(); }
  Size raw_size() const override { return source_.raw_size(); }
  ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                  std::span<const uint8_t>& bytes) const override {
    return source_.read(original(id), buffer, bytes);
  }
  bool read_cached(SampleId id, std::vector<uint8_t>& buffer,
                   std::span<const uint8_t>& bytes) const override {
    return source_.read_cached(original(id), buffer, bytes);
  }
  std::vector<SourceNote> notes() const override { return source_.notes(); }
  uint64_t fingerprint() const override {
    const auto left_out = static_cast<uint64_t>(source_.size() - size_);
    return source_.fingerprint() ^ left_out * 0x9e3779b97f4a7c15;
  }
  uint64_t labels_digest() const override {
    return size_ == source_.size() ? source_.labels_digest() : Source::labels_digest();
  }

 private:
  SampleId original(SampleId id) const { return id * source_.size() / size_; }

  const Source& source_;
  const int64_t size_;
};

}  // namespace stoker
