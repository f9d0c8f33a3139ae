// Parts of another source: spread evenly over it, or the samples of a list. And the lists: of the
// samples with some labels, and of a random split. Owner: the user; the other source outlives a
// SubsetSource. Threads: any. Errors: std::invalid_argument with the numbers.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "pipeline/order/id_list.h"
#include "pipeline/source/forwarding_source.h"

namespace stoker {

class SubsetSource final : public ForwardingSource {
 public:
  // Spread evenly over the source, in its order. `limit` <= 0 or beyond the source's size: all
  // samples.
  SubsetSource(const Source& source, int64_t limit);
  // These samples, in this order: sample 0 is ids[0]. Throws if there are none, for an id that the
  // source does not have, and for one that is listed twice (names are unique; a SampleOrder can
  // repeat samples).
  SubsetSource(const Source& source, const std::vector<SampleId>& ids);

  const SourceInfo& info() const override { return info_; }
  int label(SampleId id) const override { return source_.label(original(id)); }
  std::string name(SampleId id) const override { return source_.name(original(id)); }
  ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                  std::span<const uint8_t>& bytes) const override {
    return source_.read(original(id), buffer, bytes);
  }
  void read_targets(SampleId id, std::span<const uint8_t> bytes,
                    SampleTargets& out) const override {
    source_.read_targets(original(id), bytes, out);
  }
  ReadStatus read_annotations(SampleId id, std::span<const uint8_t> bytes,
                              Annotations& out) const override {
    return source_.read_annotations(original(id), bytes, out);
  }
  Size picture_size(SampleId id) const override { return source_.picture_size(original(id)); }
  ReadStatus read_picture(SampleId id, size_t number, MayWait may_wait,
                          std::vector<uint8_t>& buffer,
                          std::span<const uint8_t>& bytes) const override {
    return source_.read_picture(original(id), number, may_wait, buffer, bytes);
  }
  uint64_t labels_digest() const override;

 private:
  bool read_cached(SampleId id, std::vector<uint8_t>& buffer,
                   std::span<const uint8_t>& bytes) const override {
    return source_.storage().read_cached(original(id), buffer, bytes);
  }
  FileStamp stamp(SampleId id) const override { return source_.storage().stamp(original(id)); }
  bool read_pieces(SampleId id, const FileStamp& stamp, std::span<const BytePiece> pieces,
                   MayWait may_wait) const override {
    return source_.storage().read_pieces(original(id), stamp, pieces, may_wait);
  }
  std::unique_ptr<LookAhead> look_ahead(SampleSequence next) const override {
    return source_.storage().look_ahead([this, next = std::move(next)](SampleId& id) {
      const NextSample kind = next(id);
      if (kind == NextSample::found) id = original(id);
      return kind;
    });
  }
  void will_not_read(SampleId id) const override { source_.storage().will_not_read(original(id)); }

  void set_digests();
  bool is_whole() const { return ids_.size() == 0 && info_.size == source_.size(); }
  SampleId original(SampleId id) const {
    return ids_.size() > 0 ? ids_[id] : id * source_.size() / info_.size;
  }

  SourceInfo info_;
  const IdList ids_;  // empty: spread evenly
};

// Returns the samples whose label is one of `labels`, in the order of the source. Throws for a
// label that is not one of its classes.
std::vector<SampleId> ids_with_labels(const Source& source, const std::set<int>& labels);

// Deals the samples [0, samples) at random to lists of shares[i] * samples each, which must be
// numbers from 0 to 1 with the sum 1. Each list is in ascending order, so that reading it in order
// reads the source in order. The sizes are those of torch.utils.data.random_split: rounded down,
// and the rest goes to the lists in turn, one each. A function of its arguments alone.
std::vector<std::vector<SampleId>> random_split(int64_t samples, const std::vector<double>& shares,
                                                uint64_t seed);

}  // namespace stoker
