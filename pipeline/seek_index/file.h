// The seek indexes (decode/jpeg/seek_index.h) of a data set's JPEG files, in one file beside them:
// the images stay as they are. By default it lies in the cache directory, under a name made of the
// data set's root; it may lie anywhere.
//
//   header   32 bytes and the checksum of header and table
//   indexes  one after another
//   table    (count) {u64 XXH3 of the sample's name, u64 offset << 24 | bytes}, sorted
//
// A sample is found by its name, so a file made for all of a data set serves its parts, and what
// was added later simply has no index. Whether an index fits the image's bytes, its seal tells.
//
// Owner: Loader. Threads: const calls from any. Errors: open() says why; a file that changes while
// it is read gives indexes whose seals do not hold. Memory: the table, 16 bytes an image; the
// indexes are read one by one when they are needed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/source/source.h"

namespace stoker {

struct SeekFileHeader {
  char magic[8] = {'s', 't', 'o', 'k', 'e', 'r', 's', 'k'};
  uint32_t version = 1;
  uint32_t byte_order = 0x01020304;
  uint64_t count = 0;     // of indexes
  uint64_t table_at = 0;  // the table's offset; it ends the file
  uint64_t checksum = 0;  // XXH3 of the table, seeded with XXH3 of the fields above
};

struct SeekFileEntry {
  static constexpr int kSizeBits = 24;

  uint64_t name = 0;   // XXH3
  uint64_t place = 0;  // offset << kSizeBits | bytes
  uint64_t offset() const { return place >> kSizeBits; }
  size_t bytes() const { return place & ((1u << kSizeBits) - 1); }
};

uint64_t seek_file_checksum(const SeekFileHeader& header, const std::vector<SeekFileEntry>& table);

// Where the indexes of `source` are looked for: <cache>/seek-<its root>.bin. "": no cache.
std::string default_seek_index_path(const Source& source);

class SeekIndexFile {
 public:
  // nullptr: `problem` says why, without the path; "" if there is no such file.
  static std::unique_ptr<SeekIndexFile> open(const std::string& path, std::string& problem);
  ~SeekIndexFile();
  SeekIndexFile(const SeekIndexFile&) = delete;
  SeekIndexFile& operator=(const SeekIndexFile&) = delete;

  // Sets `index` to the sample's, inside `buffer`; it is empty if there is none.
  void read(std::string_view name, std::vector<uint8_t>& buffer,
            std::span<const uint8_t>& index) const;

  int64_t count() const { return static_cast<int64_t>(table_.size()); }
  int64_t table_bytes() const { return count() * static_cast<int64_t>(sizeof(SeekFileEntry)); }
  int64_t largest_index_bytes() const { return largest_bytes_; }

 private:
  explicit SeekIndexFile(int descriptor) : descriptor_(descriptor) {}
  bool load();

  const int descriptor_;
  std::vector<SeekFileEntry> table_;
  int64_t largest_bytes_ = 0;
};

}  // namespace stoker
