#include "pipeline/source/blob/blob_files.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "pipeline/source/sample_file.h"

namespace stoker {
namespace {

int64_t descriptor_limit() {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 256;
  return static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, 1 << 20));
}

}  // namespace

// A blob's descriptor during one read: a kept one, or one that is closed again.
class BlobFiles::Opened {
 public:
  Opened(const BlobFiles& files, size_t blob, bool cached) {
    std::atomic<int>& kept = files.descriptors_[blob];
    descriptor_ = kept.load(std::memory_order_acquire);
    if (descriptor_ >= 0) return;
    const char* path = files.paths_[blob].c_str();
    descriptor_ =
        cached ? open_sample_file_cached(files.root_, path) : open_sample_file(files.root_, path);
    if (descriptor_ < 0) return;
    own_ = true;
    if (files.open_.fetch_add(1) >= files.most_open_) {
      --files.open_;
      return;
    }
    int none = -1;
    if (kept.compare_exchange_strong(none, descriptor_, std::memory_order_acq_rel)) {
      own_ = false;
    } else {
      --files.open_;  // another thread was faster
    }
  }
  ~Opened() {
    if (own_) close(descriptor_);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_ = -1;
  bool own_ = false;
};

BlobFiles::BlobFiles(const std::string& root, const std::vector<std::string>& paths,
                     const std::vector<FileStamp>& stamps)
    : paths_(paths),
      stamps_(stamps),
      root_(open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
      most_open_(descriptor_limit() / 2),
      descriptors_(paths.size()) {
  if (root_ < 0) throw std::runtime_error(root + ": " + std::strerror(errno));
  for (auto& descriptor : descriptors_) descriptor.store(-1, std::memory_order_relaxed);
}

BlobFiles::~BlobFiles() {
  for (const auto& descriptor : descriptors_) {
    if (descriptor >= 0) close(descriptor);
  }
  close(root_);
}

ReadStatus BlobFiles::check(int descriptor, int64_t blob, uint64_t& device) const {
  struct stat status;
  if (fstat(descriptor, &status) != 0) return system_failure("stat");
  device = status.st_dev;
  if (!S_ISREG(status.st_mode)) return {false, "not a regular file"};
  const FileStamp& listed = stamps_[static_cast<size_t>(blob)];
  if (file_stamp_of(status) == listed) return {};
  const std::string changed = "the file was changed after its samples were listed";
  if (status.st_size == listed.bytes)
    return {false, changed + ", at another time and to the same size"};
  return {false, changed + ": it has " + std::to_string(status.st_size) + " bytes now and had " +
                     std::to_string(listed.bytes)};
}

ReadStatus BlobFiles::read(int64_t blob, int64_t offset, std::span<uint8_t> out) const {
  const Opened file(*this, static_cast<size_t>(blob), false);
  if (file.get() < 0) return system_failure("open");
  uint64_t device = 0;
  if (ReadStatus status = check(file.get(), blob, device); !status.ok) return status;
  const int64_t count = read_piece(file.get(), offset, out);
  if (count < 0) return system_failure("read");
  if (count < std::ssize(out)) {
    return {false, "the file ends " + std::to_string(std::ssize(out) - count) +
                       " bytes before the sample does"};
  }
  return {};
}

bool BlobFiles::read_cached(int64_t blob, int64_t offset, std::span<uint8_t> out) const {
  const Opened file(*this, static_cast<size_t>(blob), true);
  uint64_t device = 0;
  return file.get() >= 0 && check(file.get(), blob, device).ok &&
         read_piece_cached(file.get(), device, offset, out);
}

}  // namespace stoker
