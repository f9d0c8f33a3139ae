// Gives the samples of a source targets besides their labels, from tables in memory. Owner: the
// user; the other source outlives it. Threads: as every Source. Errors: std::invalid_argument with
// the numbers.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "pipeline/source/forwarding_source.h"

namespace stoker {

struct TargetTable {
  TargetColumn column;
  // One sample after the other, each row-major: source.size() * column.bytes() bytes in all. They
  // must not change.
  std::span<const std::byte> values{};
  std::shared_ptr<const void> owner{};  // of the values; it lives as long as the source
};

class TargetSource final : public ForwardingSource {
 public:
  // targets() are those of `source`, then those of the tables. Reads all values once, for the
  // digest.
  TargetSource(const Source& source, std::vector<TargetTable> tables);

  FileStamp stamp(SampleId id) const override { return source_.stamp(id); }
  bool read_pieces(SampleId id, const FileStamp& stamp, std::span<const BytePiece> pieces,
                   MayWait may_wait) const override {
    return source_.read_pieces(id, stamp, pieces, may_wait);
  }
  std::span<const TargetColumn> targets() const override { return columns_; }
  void read_targets(SampleId id, std::span<const uint8_t> bytes, SampleTargets& out) const override;
  uint64_t fingerprint() const override;
  uint64_t targets_digest() const override { return digest_; }

 private:
  const std::vector<TargetTable> tables_;
  std::vector<TargetColumn> columns_;
  uint64_t digest_ = 0;
};

}  // namespace stoker
