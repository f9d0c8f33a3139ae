// A source of blobs in local files. Threads: as every Source.
#pragma once

#include <memory>
#include <string>

#include "pipeline/source/blob/blob_files.h"
#include "pipeline/source/blob/indexed_source.h"

namespace stoker {

class LocalBlobSource final : public IndexedSource {
 public:
  // `root`: the folder that the index's names are relative to.
  LocalBlobSource(const std::string& root, std::unique_ptr<BlobIndex> index)
      : IndexedSource(root, std::move(index)), files_(root, table().blobs, table().stamps) {}

  ReadStatus read(SampleId id, std::vector<uint8_t>& buffer,
                  std::span<const uint8_t>& bytes) const override;
  bool read_cached(SampleId id, std::vector<uint8_t>& buffer,
                   std::span<const uint8_t>& bytes) const override;
  // Samples in a shard have the shard's stamp.
  FileStamp stamp(SampleId id) const override;
  bool read_pieces(SampleId id, const FileStamp& stamp, std::span<const BytePiece> pieces,
                   MayWait may_wait) const override;

 private:
  const BlobFiles files_;
};

}  // namespace stoker
