// What sources of blobs have in common: labels, names and targets, from the index. How the bytes of
// a sample are read is the derived class's. Threads: const calls from any.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pipeline/source.h"
#include "pipeline/source/blob/blob_index.h"

namespace stoker {

class IndexedSource : public Source {
 public:
  IndexedSource(const std::string& root, std::unique_ptr<BlobIndex> index);

  int64_t size() const override { return index_->size(); }
  int label(SampleId id) const override { return label_of(index_->find(id)); }
  std::string name(SampleId id) const override;
  const std::string& root() const override { return root_; }
  const std::vector<std::string>& class_names() const override { return table_.class_names; }
  SampleEncoding encoding() const override { return SampleEncoding::image_file; }
  Size raw_size() const override { return {}; }
  std::vector<SourceNote> notes() const override { return table_.notes; }
  uint64_t fingerprint() const override { return table_.fingerprint; }
  uint64_t labels_digest() const override { return table_.labels_digest; }
  std::span<const TargetColumn> targets() const override { return table_.targets; }
  void read_targets(SampleId id, std::span<const uint8_t> bytes, SampleTargets& out) const override;
  uint64_t targets_digest() const override { return table_.targets_digest; }

 protected:
  // How many bytes of a sample are in its blob, and how many come out of them (0: not packed).
  struct Place {
    bool ok = false;  // false: no blob can hold that, so the index is damaged
    size_t stored = 0, unpacked = 0;
  };
  Place place_of(const BlobIndex::Found& found) const;
  // Unpacks `place.stored` bytes at the begin of `buffer` behind them. REQUIRES: the buffer has
  // room for place.stored + place.unpacked bytes.
  static ReadStatus finish(const BlobEntry& entry, const Place& place, std::vector<uint8_t>& buffer,
                           std::span<const uint8_t>& bytes);
  ReadStatus damaged() const;

  const BlobIndex& index() const { return *index_; }
  const BlobTable& table() const { return table_; }

 private:
  int label_of(const BlobIndex::Found& found) const;

  const std::string root_;
  const std::unique_ptr<const BlobIndex> index_;
  const BlobTable& table_;
};

}  // namespace stoker
