// Gives the samples of a source further pictures, which are samples of other sources: an image and
// its control map, before and after, left and right. Owner: the user. Threads: as every Source. A
// sample without one of its pictures says so when that is read. Errors: std::invalid_argument with
// the names and numbers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pipeline/source/forwarding_source.h"

namespace stoker {

struct NamedPictures {
  std::string name;
  std::shared_ptr<const Source> source;
  // The sample of `source` for each sample, -1: none; empty: that with the same number.
  std::vector<SampleId> ids{};
};

class PicturesSource final : public ForwardingSource {
 public:
  // All sources live as long as this. `notes`: besides those of `source`.
  PicturesSource(std::shared_ptr<const Source> source, std::vector<NamedPictures> pictures,
                 const std::vector<SourceNote>& notes = {});

  const SourceInfo& info() const override { return info_; }
  ReadStatus read_picture(SampleId id, size_t number, MayWait may_wait,
                          std::vector<uint8_t>& buffer,
                          std::span<const uint8_t>& bytes) const override;

 private:
  FileStamp stamp(SampleId id) const override { return source_.storage().stamp(id); }
  bool read_pieces(SampleId id, const FileStamp& stamp, std::span<const BytePiece> pieces,
                   MayWait may_wait) const override {
    return source_.storage().read_pieces(id, stamp, pieces, may_wait);
  }
  // Each source gets all samples of the sequence.
  std::unique_ptr<LookAhead> look_ahead(SampleSequence next) const override;
  void will_not_read(SampleId id) const override;
  int64_t look_ahead_bytes() const override;
  std::optional<StoreStats> store_stats() const override;
  std::optional<StoredBytes> stored_bytes() const override;

  const std::shared_ptr<const Source> owned_;
  const std::vector<NamedPictures> pictures_;
  SourceInfo info_;
};

// Throws std::invalid_argument if no picture can be called so.
void check_picture_name(const std::string& name);

}  // namespace stoker
