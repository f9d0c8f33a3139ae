// The index of a data set in blobs (files that hold many samples): where each sample's bytes are,
// its label and its name. It is made by index_writer.h and mapped here. A sealed file
// (pipeline/files/sealed_file.h):
//
//   body      segments, each of at most 8,192 samples of one blob: 24 bytes per sample, then the
//             samples' names, each ended by a NUL, then their targets: for each sample the values
//             of all columns, one behind the other, without padding; then pieces of any length:
//             where each one ends (u32), and these. First a piece for each column that varies and
//             each sample, sample by sample, then the objects of each (annotated/record_code.h)
//   table     blobs, segments, class names, notes, columns of targets, kinds of annotations
//             (files/record_bytes.h)
//
// The seal (XXH3) of a segment is compared when a sample of it is looked up first. What a forged
// index says is checked where it is used: nothing outside of the mapping is read. A sample costs no
// memory until it is looked up.
// Owner: BlobSource. Threads: const calls from any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/files/sealed_file.h"
#include "pipeline/source.h"
#include "pipeline/source/file_stamp.h"
#include "pipeline/source/format/sample_sink.h"

namespace stoker {

struct BlobEntry {
  uint64_t place = 0;  // offset << 8 | BlobStorage
  uint32_t length = 0;
  int32_t label = 0;
  // Packed bytes: their number, and the bytes to skip after unpacking. Else: the place of the name
  // in its segment's names, and 0.
  uint32_t first = 0;
  uint32_t second = 0;

  int64_t offset() const { return static_cast<int64_t>(place >> 8); }
  BlobStorage storage() const { return static_cast<BlobStorage>(place & 0xff); }
  bool is_packed() const {
    return storage() == BlobStorage::snappy || storage() == BlobStorage::zstd;
  }
};
static_assert(sizeof(BlobEntry) == 24);

struct BlobSegment {
  static constexpr int64_t kMaxSamples = 8'192;
  // A segment with more bytes of targets, of values that vary or of objects has a single sample, so
  // that a look-up seals little.
  static constexpr int64_t kMaxValues = 1 << 20;

  int64_t blob = 0;
  int64_t first_id = 0;
  int64_t first_row = 0;  // the number in its blob of the first sample
  int64_t samples = 0;
  int64_t at = 0;             // the entries' offset in the file; names and targets follow them
  int64_t name_bytes = 0;     // 0: the samples have no names, their numbers are used
  int64_t varying_bytes = 0;  // with where they end; 0: no column varies
  int64_t object_bytes = 0;   // with where they end; 0: the data have no objects
  uint64_t seal = 0;          // XXH3 of everything
};

// The contents of the table.
struct BlobTable {
  std::string key;                 // what was asked for: paths, format and fields
  std::vector<std::string> blobs;  // relative to the root
  std::vector<FileStamp> stamps;   // of each blob
  std::vector<BlobSegment> segments;
  std::vector<std::string> class_names;
  std::vector<SourceNote> notes;
  uint64_t fingerprint = 0;
  uint64_t labels_digest = 0;
  std::vector<TargetColumn> targets{};
  uint64_t targets_digest = 0;
  AnnotationInfo annotations{};

  int64_t target_bytes() const;     // of one sample
  int64_t varying_columns() const;  // how many columns vary
};

inline constexpr SealedKind kBlobIndexKind{"stokerbi", 5, uint64_t{1} << 40};

// In where a piece of a varying column ends: the piece is no values, but says why there are none.
inline constexpr uint32_t kNoValues = uint32_t{1} << 31;

std::vector<char> to_bytes(const BlobTable& table);

class BlobIndex {
 public:
  // Returns nullptr if there is no such file, or it is damaged or of another version.
  static std::unique_ptr<BlobIndex> open(const std::string& path);
  BlobIndex(const BlobIndex&) = delete;
  BlobIndex& operator=(const BlobIndex&) = delete;

  const BlobTable& table() const { return table_; }
  const std::string& path() const { return path_; }
  int64_t size() const { return size_; }

  struct Found {
    const BlobSegment* segment =
        nullptr;  // nullptr: the part of the file with this sample is damaged
    BlobEntry entry;
    std::span<const char> targets;  // the values of all columns
    std::string_view objects{};     // a piece of record_code.h
    int64_t place = 0;              // in its segment
  };
  Found find(SampleId id) const;
  // A sample's values of the varying column with this number among these.
  struct Varying {
    std::string_view bytes{};
    bool is_problem = false;  // the bytes say why there are no values
  };
  Varying varying(const Found& found, int64_t column) const;
  // Returns the name inside the blob; "" if samples of this segment have none. It is ended by a
  // NUL.
  std::string_view name(const Found& found) const;

 private:
  BlobIndex(const std::string& path, std::unique_ptr<SealedFile> file)
      : path_(path), sealed_(std::move(file)), file_(sealed_->map()) {}
  bool load();
  bool is_sound() const;
  bool is_sealed(size_t segment) const;
  std::span<const char> names_of(const BlobSegment& segment) const;
  int64_t bytes_of(const BlobSegment& segment) const;
  int64_t varying_at(const BlobSegment& segment) const;
  // Pieces that lie one behind the other, and before them where each ends.
  struct Pieces {
    int64_t at, bytes, count;
  };
  Pieces objects_of(const BlobSegment& segment) const;
  uint32_t end_of(const Pieces& pieces, int64_t number) const;
  std::string_view piece_of(const Pieces& pieces, int64_t number) const;

  const std::string path_;
  const std::unique_ptr<SealedFile> sealed_;
  const std::span<const char> file_;  // its mapping
  BlobTable table_;
  int64_t size_ = 0;
  int64_t target_bytes_ = 0;  // of one sample
  int64_t varying_columns_ = 0;
  std::vector<int64_t> first_ids_;  // of each segment
  enum class Seal : uint8_t { unknown, holds, broken };
  mutable std::vector<std::atomic<Seal>> seals_;  // of each segment
};

}  // namespace stoker
