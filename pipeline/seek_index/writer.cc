#include "pipeline/seek_index/writer.h"

#include <algorithm>
#include <stdexcept>

#include "pipeline/files/digest.h"

namespace stoker {
namespace {

constexpr size_t kSeekPendingBytes = size_t{1} << 20;

std::string_view as_bytes(const void* data, size_t bytes) {
  return {static_cast<const char*>(data), bytes};
}

}  // namespace

SeekIndexWriter::SeekIndexWriter(const std::string& path)
    : file_(path, 0644) {  // readable by others, who may train on the same data
  const SeekFileHeader header;
  write(&header, sizeof header);
}

void SeekIndexWriter::flush() {
  file_.write_at(offset_ - pending_.size(), as_bytes(pending_.data(), pending_.size()));
  pending_.clear();
}

void SeekIndexWriter::write(const void* data, size_t bytes) {
  const char* first = static_cast<const char*>(data);
  pending_.insert(pending_.end(), first, first + bytes);
  offset_ += bytes;
  if (pending_.size() >= kSeekPendingBytes) flush();
}

void SeekIndexWriter::add(std::string_view name, const StoredIndex& stored) {
  if ((kStampBytes + stored.index.size()) >> SeekFileEntry::kSizeBits != 0) {
    throw std::runtime_error("a seek index of " + std::to_string(stored.index.size()) +
                             " bytes for " + std::string(name));
  }
  add(text_digest(name), stored);
}

// REQUIRES: the size fits into an entry.
void SeekIndexWriter::add(uint64_t name, const StoredIndex& stored) {
  const size_t bytes = kStampBytes + stored.index.size();
  table_.push_back({name, offset_ << SeekFileEntry::kSizeBits | bytes});
  write(&stored.stamp, kStampBytes);
  write(stored.index.data(), stored.index.size());
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
  file_.write_at(0, as_bytes(&header, sizeof header));
  file_.finish();
}

}  // namespace stoker
