// Several sources one after the other, as one: the ids of source k follow those of source k - 1.
// Owner: the user; the sources outlive it. Threads: any. Errors: the constructor throws
// std::invalid_argument with what differs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/source.h"

namespace stoker {

class ConcatSource final : public Source, private SampleStorage {
 public:
  // The sources must have the same encoding, size of raw samples, class names, columns of targets
  // and further pictures; there is at least one.
  //
  // Names stay paths where they can: if no root is inside another, root() is the deepest folder
  // that has all of them, and a name is the path from there. Otherwise (equal roots, one inside
  // another, or a source without a root) two sources might have a name in common: root() is "", and
  // the number of the source stands in front of each name, as in "1/cat/7.jpg". A single source
  // keeps its root and names.
  explicit ConcatSource(std::vector<const Source*> sources);

  // The ids of each source begin here; the last entry is size().
  const std::vector<int64_t>& begins() const { return begins_; }

  const SourceInfo& info() const override { return info_; }
  int label(SampleId id) const override;
  std::string name(SampleId id) const override;
  ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                  std::span<const uint8_t>& bytes) const override;
  void read_targets(SampleId id, std::span<const uint8_t> bytes, SampleTargets& out) const override;
  ReadStatus read_annotations(SampleId id, std::span<const uint8_t> bytes,
                              Annotations& out) const override;
  Size picture_size(SampleId id) const override;
  ReadStatus read_picture(SampleId id, size_t number, MayWait may_wait,
                          std::vector<uint8_t>& buffer,
                          std::span<const uint8_t>& bytes) const override;
  const SampleStorage& storage() const override { return *this; }

 private:
  void join_info();

  bool read_cached(SampleId id, std::vector<uint8_t>& buffer,
                   std::span<const uint8_t>& bytes) const override;
  FileStamp stamp(SampleId id) const override;
  bool read_pieces(SampleId id, const FileStamp& stamp, std::span<const BytePiece> pieces,
                   MayWait may_wait) const override;
  // Each source gets its own samples of the sequence.
  std::unique_ptr<LookAhead> look_ahead(SampleSequence next) const override;
  void will_not_read(SampleId id) const override;
  int64_t look_ahead_bytes() const override;
  std::optional<StoreStats> store_stats() const override;
  std::optional<StoredBytes> stored_bytes() const override;
  size_t source_of(SampleId id) const;

  const std::vector<const Source*> sources_;
  std::vector<int64_t> begins_;
  SourceInfo info_;
  std::vector<std::string> prefixes_;  // of the names, one per source
};

}  // namespace stoker
