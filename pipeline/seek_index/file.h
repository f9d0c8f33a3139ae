// The seek indexes (decode/jpeg/seek_index.h) of a data set's JPEG files, in one sealed file
// (pipeline/files/sealed_file.h): the images do not change. By default it is in the cache
// directory, under a name made from the data set's root; it may be anywhere.
//
//   body     indexes, one after another: the stamp of the sample's file (i64 bytes, i64 time of its
//            last change in ns; unknown where the sample is in no file), then the index
//   table    (count) {u64 XXH3 of the sample's name, u64 offset << 24 | bytes}, sorted
//
// A sample is found by its name, so a file made for a whole data set also serves its parts, and
// samples that were added later have no index.
//
// Owner: Loader. Threads: const calls from any. Errors: open() returns the reason; if the file
// changes while it is read, the seals of its indexes do not hold. Memory: the table, 16 bytes per
// image.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/files/sealed_file.h"
#include "pipeline/source.h"

namespace stoker {

// Version 1 had no number of rows in its indexes, 2 no sums and no stamps. There are at most 2^28
// entries.
inline constexpr SealedKind kSeekFileKind{"stokersk", 3, uint64_t{16} << 28};

struct SeekFileEntry {
  static constexpr int kSizeBits = 24;

  uint64_t name = 0;   // XXH3
  uint64_t place = 0;  // offset << kSizeBits | bytes
  uint64_t offset() const { return place >> kSizeBits; }
  size_t bytes() const { return place & ((1u << kSizeBits) - 1); }
};

// The index of a sample, and the stamp of the file that it was made of. A view.
struct StoredIndex {
  FileStamp stamp;
  std::span<const uint8_t> index;  // empty: none
};
inline constexpr size_t kStampBytes = sizeof(FileStamp);  // stored as it is in memory
static_assert(kStampBytes == 16);

// Returns the entry's index, inside `buffer`. One that cannot be read gets a changed byte, so that
// its seal does not hold.
StoredIndex read_seek_index(int file, const SeekFileEntry& entry, std::vector<uint8_t>& buffer);

// Returns the default path of the indexes of `source`: <cache>/seek-<hash of its root>.bin. "": no
// cache.
std::string default_seek_index_path(const Source& source);
// The name of a file of indexes that lies beside the data, in their root, as `stoker pack` makes
// it.
inline constexpr char kSeekIndexName[] = "seek-index.bin";
// Returns the path of the file beside the data if there is one, else the default path.
std::string auto_seek_index_path(const Source& source);

class SeekIndexFile {
 public:
  // Returns nullptr on failure: `problem` has the reason, without the path; "" if there is no such
  // file.
  static std::unique_ptr<SeekIndexFile> open(const std::string& path, std::string& problem);
  SeekIndexFile(const SeekIndexFile&) = delete;
  SeekIndexFile& operator=(const SeekIndexFile&) = delete;

  // Returns the sample's index, inside `buffer`; an empty one if there is none.
  StoredIndex read(std::string_view name, std::vector<uint8_t>& buffer) const;

  // Calls take(XXH3 of the name, index) for every index, in the order of these numbers.
  void for_each(const std::function<void(uint64_t name, const StoredIndex& stored)>& take) const;

  int64_t count() const { return static_cast<int64_t>(table_.size()); }
  int64_t table_bytes() const { return count() * static_cast<int64_t>(sizeof(SeekFileEntry)); }
  int64_t largest_index_bytes() const { return largest_bytes_; }  // with its stamp

 private:
  explicit SeekIndexFile(std::unique_ptr<SealedFile> file);

  const std::unique_ptr<SealedFile> file_;
  const std::span<const SeekFileEntry> table_;
  int64_t largest_bytes_ = 0;
};

// Writes one. Owner: the command. Threads: one at a time. Errors: std::runtime_error with path and
// reason; an unfinished file is removed.
class SeekIndexWriter {
 public:
  explicit SeekIndexWriter(const std::string& path);  // makes its folder

  void add(std::string_view name, const StoredIndex& stored);
  void add(uint64_t name, const StoredIndex& stored);  // by XXH3 of the name
  void finish();  // when this returns, the file is complete and in its place
  int64_t bytes() const { return static_cast<int64_t>(file_.end()); }  // written so far

 private:
  SealedWriter file_;
  std::vector<SeekFileEntry> table_;
};

}  // namespace stoker
