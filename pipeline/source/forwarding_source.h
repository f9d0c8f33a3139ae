// A source that shows another one as it is: views derive from it and override what they change.
// It does not read pieces, because a view may change the bytes or take targets from them; one that
// does neither forwards stamp() and read_pieces() itself.
// Owner: the user; the other source outlives it. Threads: as every Source.
#pragma once

#include <string>
#include <vector>

#include "pipeline/source.h"

namespace stoker {

class ForwardingSource : public Source {
 public:
  explicit ForwardingSource(const Source& source) : source_(source) {}

  int64_t size() const override { return source_.size(); }
  int label(SampleId id) const override { return source_.label(id); }
  std::string name(SampleId id) const override { return source_.name(id); }
  const std::string& root() const override { return source_.root(); }
  const std::vector<std::string>& class_names() const override { return source_.class_names(); }
  SampleEncoding encoding() const override { return source_.encoding(); }
  Size raw_size() const override { return source_.raw_size(); }
  ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                  std::span<const uint8_t>& bytes) const override {
    return source_.read(id, buffer, bytes);
  }
  bool read_cached(SampleId id, std::vector<uint8_t>& buffer,
                   std::span<const uint8_t>& bytes) const override {
    return source_.read_cached(id, buffer, bytes);
  }
  std::unique_ptr<LookAhead> look_ahead(SampleSequence next) const override {
    return source_.look_ahead(std::move(next));
  }
  void will_not_read(SampleId id) const override { source_.will_not_read(id); }
  int64_t look_ahead_bytes() const override { return source_.look_ahead_bytes(); }
  std::optional<StoreStats> store_stats() const override { return source_.store_stats(); }
  std::optional<StoredBytes> stored_bytes() const override { return source_.stored_bytes(); }
  std::span<const TargetColumn> targets() const override { return source_.targets(); }
  void read_targets(SampleId id, std::span<const uint8_t> bytes,
                    SampleTargets& out) const override {
    source_.read_targets(id, bytes, out);
  }
  std::vector<SourceNote> notes() const override { return source_.notes(); }
  uint64_t fingerprint() const override { return source_.fingerprint(); }
  bool knows_labels() const override { return source_.knows_labels(); }
  uint64_t labels_digest() const override { return source_.labels_digest(); }
  uint64_t targets_digest() const override { return source_.targets_digest(); }

 protected:
  const Source& source_;
};

}  // namespace stoker
