#include "pipeline/source/blob/stored_source.h"

#include <cstring>

namespace stoker {

StoredSource::StoredSource(const std::string& root, std::unique_ptr<BlobIndex> index,
                           const std::vector<StoredObject>& blobs,
                           std::shared_ptr<const ObjectStore> store, const StoreOptions& options)
    : IndexedSource(root, std::move(index)),
      window_(std::move(store), options, [this](SampleId id) { return locate(id); }) {
  for (const StoredObject& blob : blobs) {
    blobs_.push_back(std::make_shared<const StoredObject>(blob));
  }
}

StoredPlaceOfSample StoredSource::locate(SampleId id) const {
  const BlobIndex::Found found = index().find(id);
  if (found.segment == nullptr) return {};
  const Place place = place_of(found);
  if (!place.ok) return {};
  return {blobs_[static_cast<size_t>(found.segment->blob)], found.entry.offset(),
          static_cast<int64_t>(place.stored)};
}

bool StoredSource::read(SampleId id, MayWait may_wait, std::vector<uint8_t>& buffer,
                        std::span<const uint8_t>& bytes, ReadStatus& status) const {
  const BlobIndex::Found found = index().find(id);
  if (found.segment == nullptr) return false;
  const Place place = place_of(found);
  return place.ok && window_.read(id, may_wait, [&](std::span<const uint8_t> stored) {
    if (buffer.size() < place.stored + place.unpacked) {
      buffer.resize(place.stored + place.unpacked);
    }
    std::memcpy(buffer.data(), stored.data(), stored.size());
    status = finish(found.entry, place, buffer, bytes);
    return true;
  });
}

ReadStatus StoredSource::read(SampleId id, std::vector<uint8_t>& buffer,
                              std::span<const uint8_t>& bytes) const {
  ReadStatus status;
  return read(id, MayWait::yes, buffer, bytes, status) ? status : damaged();
}

bool StoredSource::read_cached(SampleId id, std::vector<uint8_t>& buffer,
                               std::span<const uint8_t>& bytes) const {
  ReadStatus status;
  return read(id, MayWait::no, buffer, bytes, status) && status.ok;
}

FileStamp StoredSource::stamp(SampleId id) const {
  const BlobIndex::Found found = index().find(id);
  const bool is_stored = found.segment != nullptr && found.entry.storage() == BlobStorage::bytes;
  return is_stored ? table().stamps[static_cast<size_t>(found.segment->blob)] : FileStamp{};
}

bool StoredSource::read_pieces(SampleId id, const FileStamp& wanted,
                               std::span<const BytePiece> pieces, MayWait may_wait) const {
  return wanted.is_known() && stamp(id) == wanted && window_.read_pieces(id, may_wait, pieces);
}

std::unique_ptr<LookAhead> StoredSource::look_ahead(SampleSequence next) const {
  return window_.look_ahead(std::move(next));
}

}  // namespace stoker
