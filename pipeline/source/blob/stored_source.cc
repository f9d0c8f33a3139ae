#include "pipeline/source/blob/stored_source.h"

#include <algorithm>

#include "pipeline/files/file_buffer.h"
#include "pipeline/source/blob/stored_location.h"

namespace stoker {
namespace {

std::vector<std::shared_ptr<const StoredObject>> shared(const std::vector<StoredObject>& objects) {
  std::vector<std::shared_ptr<const StoredObject>> all;
  for (const StoredObject& object : objects) {
    all.push_back(std::make_shared<const StoredObject>(object));
  }
  return all;
}

}  // namespace

StoredSource::StoredSource(const std::string& root, std::unique_ptr<BlobIndex> index,
                           const std::vector<StoredObject>& blobs, ObjectStates files,
                           std::function<std::string(const std::string&)> key_of_listed,
                           std::shared_ptr<const ObjectStore> store, const StoreOptions& options)
    : IndexedSource(root, std::move(index)),
      blobs_(shared(blobs)),
      files_(std::move(files)),
      key_of_listed_(std::move(key_of_listed)),
      window_(store, options,
              {.root = root,
               .queries = store->digest_of_queries(),
               .count = size(),
               .locate = [this](SampleId id) { return locate(id); },
               .bytes_of = [this](SampleId id) { return bytes_of(id); }}) {}

StoredObject StoredSource::file(SampleId id, const BlobIndex::Found& found) const {
  return files_.object(id, key_of_listed_(std::string(index().name(found))));
}

SampleAddress StoredSource::locate(SampleId id) const {
  const BlobIndex::Found found = index().find(id);
  if (found.segment == nullptr) return {};
  if (found.entry.storage() == BlobStorage::file) {
    auto object = std::make_shared<const StoredObject>(file(id, found));
    const int64_t bytes = object->bytes;
    return {std::move(object), 0, bytes};
  }
  const Extent extent = extent_of(found);
  if (!extent.ok) return {};
  return {blobs_[static_cast<size_t>(found.segment->blob)], found.entry.offset(),
          static_cast<int64_t>(extent.stored)};
}

int64_t StoredSource::bytes_of(SampleId id) const {
  const BlobIndex::Found found = index().find(id);
  if (found.segment == nullptr) return 0;
  if (found.entry.storage() == BlobStorage::file) return files_.bytes(id);
  const Extent extent = extent_of(found);
  return extent.ok ? static_cast<int64_t>(extent.stored) : 0;
}

bool StoredSource::read(SampleId id, MayWait may_wait, std::vector<uint8_t>& buffer,
                        std::span<const uint8_t>& bytes, ReadStatus& status) const {
  const BlobIndex::Found found = index().find(id);
  if (found.segment == nullptr) return false;
  const bool is_file = found.entry.storage() == BlobStorage::file;
  const Extent extent = is_file ? Extent{true} : extent_of(found);
  return extent.ok && window_.read(id, may_wait, [&](std::span<const uint8_t> stored) {
    const size_t room = stored.size() + extent.unpacked;
    grow_file_buffer(buffer, room);
    std::ranges::copy(stored, buffer.begin());
    bytes = {buffer.data(), stored.size()};
    if (!is_file) status = finish(found.entry, extent, buffer, bytes);
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
  if (found.segment == nullptr || found.entry.is_packed()) return {};
  if (found.entry.storage() == BlobStorage::file) return stamp_of(file(id, found));
  return table().stamps[static_cast<size_t>(found.segment->blob)];
}

bool StoredSource::read_pieces(SampleId id, const FileStamp& wanted,
                               std::span<const BytePiece> pieces, MayWait may_wait) const {
  return wanted.is_known() && stamp(id) == wanted && window_.read_pieces(id, may_wait, pieces);
}

std::unique_ptr<LookAhead> StoredSource::look_ahead(SampleSequence next) const {
  return window_.look_ahead(std::move(next));
}

}  // namespace stoker
