// A source that shows another one as it is: views derive from it and override what they change.
// It does not read pieces, because a view may change the bytes or take targets from them; one that
// does neither has the other's storage() as its own.
// Owner: the user; the other source outlives it. Threads: as every Source.
#pragma once

#include <string>
#include <vector>

#include "pipeline/source.h"

namespace stoker {

class ForwardingSource : public Source, protected SampleStorage {
 public:
  explicit ForwardingSource(const Source& source) : source_(source) {}

  const SourceInfo& info() const override { return source_.info(); }
  int label(SampleId id) const override { return source_.label(id); }
  std::string name(SampleId id) const override { return source_.name(id); }
  ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                  std::span<const uint8_t>& bytes) const override {
    return source_.read(id, buffer, bytes);
  }
  void read_targets(SampleId id, std::span<const uint8_t> bytes,
                    SampleTargets& out) const override {
    source_.read_targets(id, bytes, out);
  }
  ReadStatus read_annotations(SampleId id, std::span<const uint8_t> bytes,
                              Annotations& out) const override {
    return source_.read_annotations(id, bytes, out);
  }
  Size picture_size(SampleId id) const override { return source_.picture_size(id); }
  ReadStatus read_picture(SampleId id, size_t number, MayWait may_wait,
                          std::vector<uint8_t>& buffer,
                          std::span<const uint8_t>& bytes) const override {
    return source_.read_picture(id, number, may_wait, buffer, bytes);
  }
  uint64_t labels_digest() const override { return source_.labels_digest(); }
  const SampleStorage& storage() const override { return *this; }

  bool read_cached(SampleId id, std::vector<uint8_t>& buffer,
                   std::span<const uint8_t>& bytes) const override {
    return source_.storage().read_cached(id, buffer, bytes);
  }
  std::unique_ptr<LookAhead> look_ahead(SampleSequence next) const override {
    return source_.storage().look_ahead(std::move(next));
  }
  void will_not_read(SampleId id) const override { source_.storage().will_not_read(id); }
  int64_t look_ahead_bytes() const override { return source_.storage().look_ahead_bytes(); }
  std::optional<StoreStats> store_stats() const override { return source_.storage().store_stats(); }
  std::optional<StoredBytes> stored_bytes() const override {
    return source_.storage().stored_bytes();
  }

 protected:
  const Source& source_;
};

}  // namespace stoker
