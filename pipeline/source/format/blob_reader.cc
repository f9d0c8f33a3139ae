#include "pipeline/source/format/blob_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace stoker {
namespace {

// A jump reads one page. Whoever goes on where the last piece ended gets larger and larger pieces.
constexpr int64_t kFirstBlobPiece = 4 << 10;
constexpr int64_t kLargestPiece = 1 << 20;
// For a blob behind a network, where a round costs as much as many bytes: of a tar's member, the
// first piece has the headers before and after a label.
constexpr int64_t kLargestPieceFromAfar = 2 << 20;
// Bytes that lie so little behind the last piece are read together with what is between.
constexpr int64_t kReadThroughFromAfar = 32 << 10;

}  // namespace

BlobError::BlobError(const std::string& path, int64_t offset, const std::string& reason)
    : std::runtime_error(path + ": at byte " + std::to_string(offset) + ": " + reason) {}

BlobReader::BlobReader(const std::string& path) : path_(path) {
  // Without O_NONBLOCK, opening a pipe would wait for its writer.
  descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status;
  if (descriptor_ < 0 || fstat(descriptor_, &status) != 0) {
    const std::string reason = std::strerror(errno);
    if (descriptor_ >= 0) close(descriptor_);
    throw std::runtime_error(path + ": " + reason);
  }
  if (!S_ISREG(status.st_mode)) {
    close(descriptor_);
    throw std::runtime_error(path + ": not a regular file");
  }
  size_ = status.st_size;
}

BlobReader::BlobReader(const std::string& name, int64_t size, ReadAt read_at)
    : path_(name), read_at_(std::move(read_at)), size_(size) {}

BlobReader::BlobReader(const std::string& name, std::span<const uint8_t> bytes)
    : path_(name), size_(static_cast<int64_t>(bytes.size())), memory_(bytes) {}

BlobReader::~BlobReader() {
  if (descriptor_ >= 0) close(descriptor_);
}

void BlobReader::fail(int64_t offset, const std::string& reason) const {
  throw BlobError(path_, offset, reason);
}

std::span<const uint8_t> BlobReader::read(int64_t offset, int64_t length, const char* what) {
  if (offset < 0 || length < 0 || offset > size_ || length > size_ - offset) {
    fail(offset, std::string(what) + " of " + std::to_string(length) +
                     " bytes is needed here, and the file ends at byte " + std::to_string(size_));
  }
  if (descriptor_ < 0 && !read_at_) {
    return memory_.subspan(static_cast<size_t>(offset), static_cast<size_t>(length));
  }
  const int64_t in_window = offset - window_at_;
  if (in_window >= 0 && in_window + length <= window_bytes_) {
    return {window_.data() + in_window, static_cast<size_t>(length)};
  }
  return fill_window(offset, length);
}

std::span<const uint8_t> BlobReader::fill_window(int64_t offset, int64_t length) {
  const int64_t end = window_at_ + window_bytes_;
  const int64_t largest = read_at_ ? kLargestPieceFromAfar : kLargestPiece;
  const int64_t reach = read_at_ ? kReadThroughFromAfar : 0;
  const bool goes_on = window_bytes_ > 0 && offset >= window_at_ && offset <= end + reach;
  const int64_t piece = goes_on ? std::min(2 * window_bytes_, largest) : kFirstBlobPiece;
  const int64_t wanted = std::min(std::max(piece, length), size_ - offset);
  if (std::ssize(window_) < wanted) window_.resize(static_cast<size_t>(wanted));
  if (progress_) progress_(offset);
  window_bytes_ = 0;
  window_at_ = offset;
  if (read_at_) {
    window_bytes_ = read_at_(offset, length, {window_.data(), static_cast<size_t>(wanted)});
  } else {
    read_file(wanted);
  }
  if (window_bytes_ < length) {
    fail(offset,
         "the file became shorter than " + std::to_string(size_) + " bytes while it was read");
  }
  return {window_.data(), static_cast<size_t>(length)};
}

void BlobReader::read_file(int64_t wanted) {
  while (window_bytes_ < wanted) {
    const int64_t at = window_at_ + window_bytes_;
    const ssize_t count = pread(descriptor_, window_.data() + window_bytes_,
                                static_cast<size_t>(wanted - window_bytes_), at);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(at, std::string("read: ") + std::strerror(errno));
    if (count == 0) break;
    window_bytes_ += count;
  }
}

}  // namespace stoker
