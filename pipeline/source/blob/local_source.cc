#include "pipeline/source/blob/local_source.h"

#include <algorithm>

#include "pipeline/source/sample_file.h"

namespace stoker {

ReadStatus LocalBlobSource::read(SampleId id, std::vector<uint8_t>& buffer,
                                 std::span<const uint8_t>& bytes) const {
  const BlobIndex::Found found = index().find(id);
  if (found.segment == nullptr) return damaged();
  if (found.entry.storage() == BlobStorage::file) {
    const Descriptor file(open_sample_file(files_.root(), index().name(found).data()));
    if (file.get() < 0) return system_failure("open");
    return read_sample_file(file.get(), buffer, bytes);
  }
  const Extent extent = extent_of(found);
  if (!extent.ok) return damaged();
  if (buffer.size() < extent.stored + extent.unpacked)
    buffer.resize(extent.stored + extent.unpacked);
  const std::span stored(buffer.data(), extent.stored);
  const ReadStatus status = files_.read(found.segment->blob, found.entry.offset(), stored);
  return status.ok ? finish(found.entry, extent, buffer, bytes) : status;
}

bool LocalBlobSource::read_cached(SampleId id, std::vector<uint8_t>& buffer,
                                  std::span<const uint8_t>& bytes) const {
  const BlobIndex::Found found = index().find(id);
  if (found.segment == nullptr) return false;
  if (found.entry.storage() == BlobStorage::file) {
    const Descriptor file(open_sample_file_cached(files_.root(), index().name(found).data()));
    return file.get() >= 0 && read_sample_file_cached(file.get(), buffer, bytes);
  }
  const Extent extent = extent_of(found);
  if (!extent.ok) return false;
  if (buffer.size() < extent.stored + extent.unpacked)
    buffer.resize(extent.stored + extent.unpacked);
  const std::span stored(buffer.data(), extent.stored);
  return files_.read_cached(found.segment->blob, found.entry.offset(), stored) &&
         finish(found.entry, extent, buffer, bytes).ok;
}

FileStamp LocalBlobSource::stamp(SampleId id) const {
  const BlobIndex::Found found = index().find(id);
  if (found.segment == nullptr) return {};
  if (found.entry.storage() == BlobStorage::file) {
    return sample_file_stamp(files_.root(), index().name(found).data());
  }
  const bool is_stored = found.entry.storage() == BlobStorage::bytes;
  return is_stored ? table().stamps[static_cast<size_t>(found.segment->blob)] : FileStamp{};
}

bool LocalBlobSource::read_pieces(SampleId id, const FileStamp& stamp,
                                  std::span<const BytePiece> pieces, MayWait may_wait) const {
  const BlobIndex::Found found = index().find(id);
  if (found.segment == nullptr) return false;
  if (found.entry.storage() == BlobStorage::file) {
    return read_file_pieces(files_.root(), index().name(found).data(), stamp, pieces, may_wait);
  }
  const Extent extent = extent_of(found);
  const int64_t blob = found.segment->blob;
  if (!extent.ok || found.entry.is_packed() || table().stamps[static_cast<size_t>(blob)] != stamp) {
    return false;
  }
  return std::all_of(pieces.begin(), pieces.end(), [&](const BytePiece& piece) {
    const int64_t behind = static_cast<int64_t>(extent.stored) - piece.offset;
    const int64_t offset = found.entry.offset() + piece.offset;
    if (std::ssize(piece.out) > behind) return false;
    return may_wait == MayWait::yes ? files_.read(blob, offset, piece.out).ok
                                    : files_.read_cached(blob, offset, piece.out);
  });
}

}  // namespace stoker
