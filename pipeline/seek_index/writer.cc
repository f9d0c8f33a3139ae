#include "pipeline/seek_index/writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "pipeline/digest.h"

namespace stoker {
namespace {

constexpr size_t kPendingBytes = size_t{1} << 20;

bool write_at(int descriptor, uint64_t offset, const char* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t count = pwrite(descriptor, data, bytes, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    data += count;
    offset += static_cast<uint64_t>(count);
    bytes -= static_cast<size_t>(count);
  }
  return true;
}

}  // namespace

SeekIndexWriter::SeekIndexWriter(const std::string& path)
    : path_(path), temporary_(path + ".XXXXXX") {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error)) {
    throw std::runtime_error("cannot write " + path + ": it is no regular file");
  }
  descriptor_ = mkstemp(temporary_.data());
  if (descriptor_ < 0) fail();
  fchmod(descriptor_, 0644);  // others may train on the same data; failing costs only that
  const SeekFileHeader header;
  write(&header, sizeof header);
}

SeekIndexWriter::~SeekIndexWriter() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  unlink(temporary_.c_str());
}

void SeekIndexWriter::fail() const {
  throw std::runtime_error("cannot write " + path_ + ": " + std::strerror(errno));
}

void SeekIndexWriter::flush() {
  const uint64_t from = offset_ - pending_.size();
  if (!write_at(descriptor_, from, pending_.data(), pending_.size())) fail();
  pending_.clear();
}

void SeekIndexWriter::write(const void* data, size_t bytes) {
  const char* first = static_cast<const char*>(data);
  pending_.insert(pending_.end(), first, first + bytes);
  offset_ += bytes;
  if (pending_.size() >= kPendingBytes) flush();
}

void SeekIndexWriter::add(std::string_view name, std::span<const uint8_t> index) {
  if (index.size() >> SeekFileEntry::kSizeBits != 0) {
    throw std::runtime_error("a seek index of " + std::to_string(index.size()) + " bytes for " +
                             std::string(name));
  }
  table_.push_back({text_digest(name), offset_ << SeekFileEntry::kSizeBits | index.size()});
  write(index.data(), index.size());
}

void SeekIndexWriter::finish() {
  std::sort(table_.begin(), table_.end(),
            [](const SeekFileEntry& a, const SeekFileEntry& b) { return a.name < b.name; });
  SeekFileHeader header;
  header.count = table_.size();
  header.table_at = offset_;
  header.checksum = seek_file_checksum(header, table_);
  write(table_.data(), table_.size() * sizeof(SeekFileEntry));
  flush();
  if (!write_at(descriptor_, 0, reinterpret_cast<const char*>(&header), sizeof header) ||
      fsync(descriptor_) != 0 || rename(temporary_.c_str(), path_.c_str()) != 0) {
    fail();
  }
  close(descriptor_);
  descriptor_ = -1;
}

}  // namespace stoker
