#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "pipeline/files/file_buffer.h"
#include "pipeline/source/blob/blob_files.h"
#include "pipeline/source/blob/blob_location.h"
#include "pipeline/source/blob/indexed_source.h"
#include "pipeline/source/file_stamp.h"
#include "pipeline/source/sample_file.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

// More than cores: a cold disk or a network file system lets the threads wait.
constexpr int kLocalScans = 8;

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
  grow_file_buffer(buffer, extent.stored + extent.unpacked);
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
  grow_file_buffer(buffer, extent.stored + extent.unpacked);
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

class LocalLocation final : public BlobLocation {
 public:
  explicit LocalLocation(const std::string& root) : root_(root) {}

  const std::string& root() const override { return root_; }

  BlobListing list(const std::string& folder) const override {
    BlobListing listing;
    each_entry(folder, [&](const fs::directory_entry& entry, const std::string& name) {
      // The folder itself mostly knows this of an entry; status() would ask for each file's state.
      std::error_code ignored;
      if (entry.is_directory(ignored)) listing.folders.push_back(name);
      if (entry.is_regular_file(ignored)) listing.files.push_back(name);
      return true;
    });
    std::sort(listing.files.begin(), listing.files.end());
    std::sort(listing.folders.begin(), listing.folders.end());
    return listing;
  }

  bool has_file(const std::string& folder,
                const std::function<bool(const std::string& name)>& wanted) const override {
    bool found = false;
    each_entry(folder, [&](const fs::directory_entry&, const std::string& name) {
      found = wanted(name);
      return !found;
    });
    return found;
  }

  std::vector<std::string> missing(const std::vector<std::string>& names) const override {
    std::vector<std::string> missing;
    for (const std::string& name : names) {
      if (bytes_of(name) < 0) missing.push_back(name);
    }
    return missing;
  }

  std::vector<FileStamp> stamps(const std::vector<std::string>& names) const override {
    std::vector<FileStamp> stamps;
    for (const std::string& name : names) {
      const std::string path = path_of(name);
      struct stat status;
      if (::stat(path.c_str(), &status) != 0) {
        throw std::runtime_error(path + ": " + std::strerror(errno));
      }
      if (!S_ISREG(status.st_mode)) throw std::runtime_error(path + ": not a regular file");
      stamps.push_back(file_stamp_of(status));
    }
    return stamps;
  }

  int64_t bytes_of(const std::string& name) const override {
    std::error_code error;
    const std::string path = path_of(name);
    return fs::is_regular_file(path, error) ? static_cast<int64_t>(fs::file_size(path)) : -1;
  }

  std::unique_ptr<BlobReader> open(const std::string& name) const override {
    return std::make_unique<BlobReader>(path_of(name));
  }

  int scans_at_once() const override { return kLocalScans; }

  std::string identity() const override {
    std::error_code ignored;
    return fs::canonical(root_, ignored).string();
  }

  std::unique_ptr<Source> make_source(std::unique_ptr<BlobIndex> index) const override {
    return std::make_unique<LocalBlobSource>(root_, std::move(index));
  }

 private:
  // Calls `take` until it returns false.
  template <typename Take>
  void each_entry(const std::string& folder, const Take& take) const {
    const std::string path = path_of(folder);
    std::error_code error;
    for (fs::directory_iterator entry(path, error), end; !error && entry != end;
         entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      if (!name.starts_with('.') && !take(*entry, name)) return;
    }
    if (error) throw std::runtime_error(path + ": " + error.message());
  }

  const std::string root_;
};

}  // namespace

std::shared_ptr<const BlobLocation> local_location(const std::string& root) {
  return std::make_shared<LocalLocation>(root);
}

std::string BlobLocation::path_of(const std::string& name) const {
  if (name.empty()) return root();
  if (name.starts_with('/')) return name;  // in a list
  return root() == "/" ? "/" + name : root() + "/" + name;
}

std::string BlobLocation::read_whole(const std::string& name) const {
  const std::unique_ptr<BlobReader> blob = open(name);
  const auto bytes = blob->read(0, blob->size(), "the whole file");
  return {bytes.begin(), bytes.end()};
}

}  // namespace stoker
