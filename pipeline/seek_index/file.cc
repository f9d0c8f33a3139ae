#include "pipeline/seek_index/file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "pipeline/files/cache_folder.h"
#include "pipeline/files/digest.h"

namespace stoker {
namespace {

static_assert(sizeof(SeekFileEntry) == 16);

std::span<const SeekFileEntry> entries_of(const SealedFile& file) {
  const std::string_view table = file.table();
  return {reinterpret_cast<const SeekFileEntry*>(table.data()),
          table.size() / sizeof(SeekFileEntry)};
}

std::string_view bytes_of_entries(const std::vector<SeekFileEntry>& table) {
  return {reinterpret_cast<const char*>(table.data()), table.size() * sizeof(SeekFileEntry)};
}

}  // namespace

StoredIndex read_seek_index(int file, const SeekFileEntry& entry, std::vector<uint8_t>& buffer) {
  if (entry.bytes() <= kStampBytes) return {};
  if (buffer.size() < entry.bytes()) buffer.resize(entry.bytes());
  StoredIndex stored;
  const auto offset = static_cast<int64_t>(entry.offset());
  const std::span<uint8_t> stored_bytes(buffer.data(), entry.bytes());
  if (read_piece(file, offset, stored_bytes) != std::ssize(stored_bytes)) buffer[kStampBytes] ^= 1;
  std::memcpy(&stored.stamp, buffer.data(), kStampBytes);
  stored.index = {buffer.data() + kStampBytes, entry.bytes() - kStampBytes};
  return stored;
}

std::string default_seek_index_path(const Source& source) {
  const std::string cache = default_cache_folder();
  if (cache.empty() || source.root().empty()) return "";
  std::error_code ignored;
  // The root of a store is an address, which has one form.
  const std::string root = source.storage().store_stats()
                               ? source.root()
                               : std::filesystem::canonical(source.root(), ignored).string();
  return cache + "/seek-" + hex64(text_digest(root)) + ".bin";
}

std::string auto_seek_index_path(const Source& source) {
  const std::string beside = source.root() + "/" + kSeekIndexName;
  std::error_code ignored;
  const bool is_there = !source.root().empty() && std::filesystem::is_regular_file(beside, ignored);
  return is_there ? beside : default_seek_index_path(source);
}

std::unique_ptr<SeekIndexFile> SeekIndexFile::open(const std::string& path, std::string& problem) {
  auto file = SealedFile::open(path, kSeekFileKind, problem);
  if (!file) return nullptr;
  if (file->table().size() % sizeof(SeekFileEntry) != 0 ||
      file->count() != entries_of(*file).size()) {
    problem = "it is damaged";
    return nullptr;
  }
  return std::unique_ptr<SeekIndexFile>(new SeekIndexFile(std::move(file)));
}

SeekIndexFile::SeekIndexFile(std::unique_ptr<SealedFile> file)
    : file_(std::move(file)), table_(entries_of(*file_)) {
  for (const SeekFileEntry& entry : table_) {
    largest_bytes_ = std::max(largest_bytes_, static_cast<int64_t>(entry.bytes()));
  }
}

StoredIndex SeekIndexFile::read(std::string_view name, std::vector<uint8_t>& buffer) const {
  const uint64_t wanted = text_digest(name);
  const auto entry =
      std::lower_bound(table_.begin(), table_.end(), wanted,
                       [](const SeekFileEntry& a, uint64_t digest) { return a.name < digest; });
  if (entry == table_.end() || entry->name != wanted) return {};
  return read_seek_index(file_->descriptor(), *entry, buffer);
}

void SeekIndexFile::for_each(
    const std::function<void(uint64_t name, const StoredIndex& stored)>& take) const {
  std::vector<uint8_t> buffer;
  for (const SeekFileEntry& entry : table_) {
    take(entry.name, read_seek_index(file_->descriptor(), entry, buffer));
  }
}

SeekIndexWriter::SeekIndexWriter(const std::string& path)
    : file_(path, kSeekFileKind, 0644) {}  // readable by others, who may train on the same data

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
  table_.push_back({name, file_.end() << SeekFileEntry::kSizeBits | bytes});
  file_.append(&stored.stamp, kStampBytes);
  file_.append(stored.index.data(), stored.index.size());
}

void SeekIndexWriter::finish() {
  std::sort(table_.begin(), table_.end(),
            [](const SeekFileEntry& a, const SeekFileEntry& b) { return a.name < b.name; });
  file_.finish(table_.size(), bytes_of_entries(table_));
}

}  // namespace stoker
