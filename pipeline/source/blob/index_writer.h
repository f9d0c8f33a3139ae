// Writes the index of a data set in blobs (blob_index.h), segment by segment, so that it needs no
// memory for samples that have been written. Owner: build_index(). Threads: one at a time. Errors:
// std::runtime_error with the path; an unfinished file is removed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/files/sealed_file.h"
#include "pipeline/source/blob/blob_index.h"

namespace stoker {

// In the place where a piece ends: it says why there are no values (kNoValues of the file).
inline constexpr uint64_t kVaryingProblem = uint64_t{1} << 63;

// Pieces of samples, one behind the other, and where each one ends: objects
// (annotated/record_code.h), one of each sample; or values that vary, one for each column of each.
// An end may have a flag, kVaryingProblem.
struct IndexedPieces {
  std::string_view bytes{};
  std::span<const uint64_t> ends{};
};

class BlobIndexWriter {
 public:
  explicit BlobIndexWriter(const std::string& path) : file_(path, kBlobIndexKind) {}

  // Adds samples of one blob, the next ones in order. In an entry with a name, `first` is the
  // name's place in `names`. `targets` has equally many bytes for each of them; `objects` and
  // `varying` are of none or of all.
  void add(int64_t blob, int64_t first_row, std::span<const BlobEntry> entries,
           std::string_view names, std::span<const std::byte> targets = {},
           IndexedPieces objects = {}, IndexedPieces varying = {});
  int64_t samples() const { return samples_; }
  // Writes an index of the first `samples`, which were added by whole calls of add(), to another
  // path. `table` as in finish(), for them; their labels are final.
  void write_part(const std::string& path, int64_t samples, BlobTable table);
  // Gives the samples their final labels (new_labels[label]; empty: they are final), seals
  // everything and puts the file into its place. `table` has blobs, stamps, class names, notes,
  // key, the columns of targets and the kinds of annotations.
  void finish(BlobTable table, std::span<const int32_t> new_labels);

 private:
  void add_segment(int64_t blob, int64_t first_row, std::span<const BlobEntry> entries,
                   std::string_view names, std::span<const std::byte> targets,
                   IndexedPieces objects, IndexedPieces varying);
  void append(const IndexedPieces& pieces);
  void seal_segments(BlobTable& table, std::span<const int32_t> new_labels);

  SealedWriter file_;
  std::vector<BlobSegment> segments_;
  int64_t samples_ = 0;
};

}  // namespace stoker
