// A source of blobs in a store: their samples are ranges of objects. Threads: as every Source.
// Errors: read() throws StoreError for what is wrong with the store or an object: no sample is bad
// because a network is.
#pragma once

#include <memory>
#include <vector>

#include "pipeline/source/blob/indexed_source.h"
#include "pipeline/source/blob/object_states.h"
#include "pipeline/source/blob/sample_window.h"

namespace stoker {

class StoredSource final : public IndexedSource {
 public:
  // `blobs`: the object of each blob of the index. `files`: of each sample, if the index is that of
  // a list; key_of_listed() returns the key of the one that it names.
  StoredSource(const std::string& root, std::unique_ptr<BlobIndex> index,
               const std::vector<StoredObject>& blobs, ObjectStates files,
               std::function<std::string(const std::string&)> key_of_listed,
               std::shared_ptr<const ObjectStore> store, const StoreOptions& options);

  ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                  std::span<const uint8_t>& bytes) const override;
  bool read_cached(SampleId id, std::vector<uint8_t>& buffer,
                   std::span<const uint8_t>& bytes) const override;
  // The stamp of the sample's object.
  FileStamp stamp(SampleId id) const override;
  bool read_pieces(SampleId id, const FileStamp& stamp, std::span<const BytePiece> pieces,
                   MayWait may_wait) const override;
  std::unique_ptr<LookAhead> look_ahead(SampleSequence next) const override;
  void will_not_read(SampleId id) const override { window_.skip(id); }
  int64_t look_ahead_bytes() const override { return window_.bytes(); }
  std::optional<StoreStats> store_stats() const override { return window_.stats(); }
  std::optional<StoredBytes> stored_bytes() const override { return window_.stored_bytes(); }

 private:
  SampleAddress locate(SampleId id) const;
  int64_t bytes_of(SampleId id) const;
  StoredObject file(SampleId id, const BlobIndex::Found& found) const;
  bool read(SampleId id, MayWait may_wait, std::vector<uint8_t>& buffer,
            std::span<const uint8_t>& bytes, ReadStatus& status) const;

  const std::vector<std::shared_ptr<const StoredObject>> blobs_;
  const ObjectStates files_;
  const std::function<std::string(const std::string&)> key_of_listed_;
  mutable SampleWindow window_;  // what it holds changes no sample
};

}  // namespace stoker
