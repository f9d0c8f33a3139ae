#include "pipeline/seek_index/recorded.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "pipeline/files/digest.h"
#include "pipeline/seek_index/file.h"

namespace stoker {
namespace {

// Waits until no other process of this machine has one for the folder. Where the file system has no
// such locks, nobody waits.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder)
      : folder_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    while (folder_ >= 0 && ::flock(folder_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~FolderLock() {
    if (folder_ >= 0) ::close(folder_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  const int folder_;
};

// Opens a file that no name leads to: it is gone when it is closed.
int open_unnamed(const std::string& folder) {
  const int file = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0 || errno == ENOENT) return file;
  // Not every file system has files without names.
  std::string name = folder + "/recorded.XXXXXX";
  const int named = ::mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(name.c_str());
  return named;
}

}  // namespace

RecordedIndexes::RecordedIndexes(const std::string& folder, int64_t samples)
    : places_(static_cast<size_t>(samples)) {
  std::error_code shows_below;
  std::filesystem::create_directories(folder, shows_below);
  file_ = open_unnamed(folder);
  if (file_ < 0)
    throw std::runtime_error("cannot write in " + folder + ": " + std::strerror(errno));
}

RecordedIndexes::~RecordedIndexes() { ::close(file_); }

bool RecordedIndexes::add(SampleId id, const StoredIndex& stored) noexcept {
  FileStamp stamp = stored.stamp;
  // writev() takes no constant bytes, and does not change them.
  const iovec parts[] = {{&stamp, kStampBytes},
                         {const_cast<uint8_t*>(stored.index.data()), stored.index.size()}};
  const size_t bytes = kStampBytes + stored.index.size();
  const uint64_t offset = end_.fetch_add(bytes, std::memory_order_relaxed);
  ssize_t count = -1;
  do {
    count = ::pwritev(file_, parts, 2, static_cast<off_t>(offset));
  } while (count < 0 && errno == EINTR);
  // A write is cut short where the space ends.
  if (count >= 0 && static_cast<size_t>(count) < bytes) errno = ENOSPC;
  if (count != static_cast<ssize_t>(bytes)) return false;
  const uint64_t place = offset << SeekFileEntry::kSizeBits | bytes;
  const uint64_t before =
      places_[static_cast<size_t>(id)].exchange(place, std::memory_order_release);
  if (before == 0) count_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

StoredIndex RecordedIndexes::read(SampleId id, std::vector<uint8_t>& buffer) const {
  const SeekFileEntry entry{0, places_[static_cast<size_t>(id)].load(std::memory_order_acquire)};
  return read_seek_index(file_, entry, buffer);
}

void RecordedIndexes::save(const Source& source, const std::string& path) const {
  const FolderLock lock(std::filesystem::path(path).parent_path().string());
  std::vector<uint64_t> names;
  for (SampleId id = 0; id < source.size(); ++id) {
    if (places_[static_cast<size_t>(id)].load(std::memory_order_relaxed) == 0) continue;
    names.push_back(text_digest(source.name(id)));
  }
  std::sort(names.begin(), names.end());
  SeekIndexWriter writer(path);
  std::string problem;
  if (const auto old = SeekIndexFile::open(path, problem)) {
    old->for_each([&](uint64_t name, const StoredIndex& stored) {
      if (!std::binary_search(names.begin(), names.end(), name)) writer.add(name, stored);
    });
  }
  std::vector<uint8_t> buffer;
  for (SampleId id = 0; id < source.size(); ++id) {
    const StoredIndex stored = read(id, buffer);
    if (!stored.index.empty()) writer.add(text_digest(source.name(id)), stored);
  }
  writer.finish();
}

}  // namespace stoker
