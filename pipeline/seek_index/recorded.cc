#include "pipeline/seek_index/recorded.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "pipeline/digest.h"
#include "pipeline/seek_index/file.h"
#include "pipeline/seek_index/writer.h"

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

bool RecordedIndexes::add(SampleId id, std::span<const uint8_t> index) noexcept {
  const uint64_t offset = end_.fetch_add(index.size(), std::memory_order_relaxed);
  for (size_t done = 0; done < index.size();) {
    const ssize_t count = ::pwrite(file_, index.data() + done, index.size() - done,
                                   static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    done += static_cast<size_t>(count);
  }
  const uint64_t place = offset << SeekFileEntry::kSizeBits | index.size();
  const uint64_t before =
      places_[static_cast<size_t>(id)].exchange(place, std::memory_order_release);
  if (before == 0) count_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

bool RecordedIndexes::read(SampleId id, std::vector<uint8_t>& buffer,
                           std::span<const uint8_t>& index) const {
  const SeekFileEntry entry{0, places_[static_cast<size_t>(id)].load(std::memory_order_acquire)};
  if (entry.place == 0) return false;
  read_seek_index(file_, entry, buffer, index);
  return true;
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
    old->for_each([&](uint64_t name, std::span<const uint8_t> index) {
      if (!std::binary_search(names.begin(), names.end(), name)) writer.add(name, index);
    });
  }
  std::vector<uint8_t> buffer;
  std::span<const uint8_t> index;
  for (SampleId id = 0; id < source.size(); ++id) {
    if (read(id, buffer, index)) writer.add(text_digest(source.name(id)), index);
  }
  writer.finish();
}

}  // namespace stoker
