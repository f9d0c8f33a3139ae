#include "pipeline/seek_index/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "pipeline/files/cache_folder.h"
#include "pipeline/files/digest.h"

namespace stoker {
namespace {

static_assert(sizeof(SeekFileEntry) == 16);

constexpr uint64_t kMaxCount = uint64_t{1} << 28;  // bounds the table of a malicious file

bool read_at(int descriptor, uint64_t offset, void* to, size_t bytes) {
  auto* next = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t count = pread(descriptor, next, bytes, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    next += count;
    offset += static_cast<uint64_t>(count);
    bytes -= static_cast<size_t>(count);
  }
  return true;
}

}  // namespace

StoredIndex read_seek_index(int file, const SeekFileEntry& entry, std::vector<uint8_t>& buffer) {
  if (entry.bytes() <= kStampBytes) return {};
  if (buffer.size() < entry.bytes()) buffer.resize(entry.bytes());
  StoredIndex stored;
  if (!read_at(file, entry.offset(), buffer.data(), entry.bytes())) buffer[kStampBytes] ^= 1;
  std::memcpy(&stored.stamp, buffer.data(), kStampBytes);
  stored.index = {buffer.data() + kStampBytes, entry.bytes() - kStampBytes};
  return stored;
}

uint64_t seek_file_checksum(const SeekFileHeader& header, const std::vector<SeekFileEntry>& table) {
  return XXH3_64bits_withSeed(table.data(), table.size() * sizeof(SeekFileEntry),
                              XXH3_64bits(&header, offsetof(SeekFileHeader, checksum)));
}

std::string default_seek_index_path(const Source& source) {
  const std::string cache = default_cache_folder();
  if (cache.empty() || source.root().empty()) return "";
  std::error_code ignored;
  // The root of a store is an address, which has one form.
  const std::string root = source.store_stats()
                               ? source.root()
                               : std::filesystem::canonical(source.root(), ignored).string();
  char name[40];
  std::snprintf(name, sizeof name, "seek-%016llx.bin",
                static_cast<unsigned long long>(text_digest(root)));
  return cache + "/" + name;
}

std::string auto_seek_index_path(const Source& source) {
  const std::string beside = source.root() + "/" + kSeekIndexName;
  std::error_code ignored;
  const bool is_there = !source.root().empty() && std::filesystem::is_regular_file(beside, ignored);
  return is_there ? beside : default_seek_index_path(source);
}

std::unique_ptr<SeekIndexFile> SeekIndexFile::open(const std::string& path, std::string& problem) {
  problem.clear();
  // Without O_NONBLOCK a pipe would block the reader.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    if (errno != ENOENT) problem = std::strerror(errno);
    return nullptr;
  }
  std::unique_ptr<SeekIndexFile> file(new SeekIndexFile(descriptor));
  if (file->load()) return file;
  problem = file->is_older() ? "it is of an older version of stoker"
                             : "it is damaged, or no file of seek indexes";
  return nullptr;
}

SeekIndexFile::~SeekIndexFile() { close(descriptor_); }

bool SeekIndexFile::is_older() const {
  SeekFileHeader header;
  const SeekFileHeader expected;
  return read_at(descriptor_, 0, &header, sizeof header) &&
         std::memcmp(header.magic, expected.magic, sizeof header.magic) == 0 &&
         header.version < expected.version;
}

bool SeekIndexFile::load() {
  struct stat status;
  SeekFileHeader header;
  const SeekFileHeader expected;
  if (fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode) ||
      !read_at(descriptor_, 0, &header, sizeof header) ||
      std::memcmp(&header, &expected, offsetof(SeekFileHeader, count)) != 0) {
    return false;
  }
  const auto size = static_cast<uint64_t>(status.st_size);
  if (header.table_at < sizeof header || header.table_at > size || header.count > kMaxCount ||
      (size - header.table_at) % sizeof(SeekFileEntry) != 0 ||
      (size - header.table_at) / sizeof(SeekFileEntry) != header.count) {
    return false;
  }
  table_.resize(header.count);
  if (!read_at(descriptor_, header.table_at, table_.data(), size - header.table_at) ||
      seek_file_checksum(header, table_) != header.checksum) {
    return false;
  }
  for (const SeekFileEntry& entry : table_) {
    largest_bytes_ = std::max(largest_bytes_, static_cast<int64_t>(entry.bytes()));
  }
  return true;
}

StoredIndex SeekIndexFile::read(std::string_view name, std::vector<uint8_t>& buffer) const {
  const uint64_t wanted = text_digest(name);
  const auto entry =
      std::lower_bound(table_.begin(), table_.end(), wanted,
                       [](const SeekFileEntry& a, uint64_t digest) { return a.name < digest; });
  if (entry == table_.end() || entry->name != wanted) return {};
  return read_seek_index(descriptor_, *entry, buffer);
}

void SeekIndexFile::for_each(
    const std::function<void(uint64_t name, const StoredIndex& stored)>& take) const {
  std::vector<uint8_t> buffer;
  for (const SeekFileEntry& entry : table_) {
    take(entry.name, read_seek_index(descriptor_, entry, buffer));
  }
}

}  // namespace stoker
