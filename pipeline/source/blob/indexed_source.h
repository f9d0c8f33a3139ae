// Shared by sources of blobs: labels, names and targets, from the index. How the bytes of
// a sample are read is the derived class's. Threads: const calls from any.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pipeline/source.h"
#include "pipeline/source/blob/blob_index.h"

namespace stoker {

class IndexedSource : public Source, protected SampleStorage {
 public:
  IndexedSource(const std::string& root, std::unique_ptr<BlobIndex> index);

  const SourceInfo& info() const override { return info_; }
  int label(SampleId id) const override { return label_of(index_->find(id)); }
  std::string name(SampleId id) const override;
  uint64_t labels_digest() const override { return table_.labels_digest; }
  void read_targets(SampleId id, std::span<const uint8_t> bytes, SampleTargets& out) const override;
  ReadStatus read_annotations(SampleId id, std::span<const uint8_t> bytes,
                              Annotations& out) const override;
  const SampleStorage& storage() const override { return *this; }

 protected:
  // How many bytes of a sample are in its blob, and how many come out of them (0: not packed).
  struct Extent {
    bool ok = false;  // false: no blob can hold that, so the index is damaged
    size_t stored = 0, unpacked = 0;
  };
  Extent extent_of(const BlobIndex::Found& found) const;
  // Unpacks `extent.stored` bytes at the begin of `buffer` behind them. REQUIRES: the buffer has
  // room for extent.stored + extent.unpacked bytes.
  static ReadStatus finish(const BlobEntry& entry, const Extent& extent,
                           std::vector<uint8_t>& buffer, std::span<const uint8_t>& bytes);
  ReadStatus damaged() const;

  const BlobIndex& index() const { return *index_; }
  const BlobTable& table() const { return table_; }

 private:
  int label_of(const BlobIndex::Found& found) const;
  void read_varying(const BlobIndex::Found& found, int64_t column,
                    std::span<const std::byte>& values, std::string& problem) const;

  const std::unique_ptr<const BlobIndex> index_;
  const BlobTable& table_;
  const SourceInfo info_;
};

}  // namespace stoker
