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
  std::span<const int64_t> ends{};      // where the values of each sample end, if the column varies
};

class TargetSource final : public ForwardingSource {
 public:
  // The targets are those of `source`, then those of the tables. Reads all values once, for the
  // digest.
  TargetSource(const Source& source, std::vector<TargetTable> tables);

  const SourceInfo& info() const override { return info_; }
  const SampleStorage& storage() const override { return source_.storage(); }
  void read_targets(SampleId id, std::span<const uint8_t> bytes, SampleTargets& out) const override;

 private:
  static std::span<const std::byte> piece_of(const TargetTable& table, int64_t sample);

  const std::vector<TargetTable> tables_;
  SourceInfo info_;
};

}  // namespace stoker
