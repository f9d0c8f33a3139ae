// The numbers of a target in a Parquet file: one column of numbers or of lists of them, one row
// group. A list's rows are put together from repetition levels (apache/parquet-format:
// README.md, "Nested Encoding"). Owner: one scan. Threads: one at a time. Errors: BlobError.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "pipeline/source/format/found_target.h"
#include "pipeline/source/format/number_bytes.h"
#include "pipeline/source/format/parquet_pages.h"

namespace stoker {

// Numbers repeat more than rows do: a mask of zeros, packed. A file may have so many per byte.
inline constexpr int64_t kMaxNumbersPerByte = 1024;

// How a column's values are stored, and what column of targets they make by themselves.
struct ParquetNumberKind {
  NumberForm form;
  TargetType type;
};
// Returns nothing for a column of other values than numbers (dates, decimals, text).
std::optional<ParquetNumberKind> number_kind(const ParquetField& field);

// Counts the elements of lists inside lists, which must be equally long where they are equally
// deep. A value.
class ListShape {
 public:
  // Begins a row with its first value; so many lists are around it.
  void begin(int levels);
  // Adds a value that goes on with the list at level `repetition` (1: the outermost). Returns
  // false if a list that ends there is longer or shorter than the others of its level.
  bool add(uint32_t repetition);
  // The same for the end of the row; sets `shape`.
  bool end(std::vector<int64_t>& shape);

 private:
  bool close_from(size_t level);

  std::vector<int64_t> counts_;  // of the current list of each level
  std::vector<int64_t> shape_;   // 0: no list of this level has ended
};

class ParquetNumbers {
 public:
  // For the row group that has `rows` rows, and begins with row `first_row` of the file. A list
  // column takes its numbers from `budget`.
  ParquetNumbers(BlobReader& blob, const ParquetColumn& column, const ParquetField& field,
                 const ParquetChunk& chunk, int64_t first_row, int64_t rows, int64_t& budget);

  // Sets `out` to the next row's numbers.
  void next(FoundTarget& out);
  // Throws if there are more.
  void expect_end();

 private:
  bool next_page();
  bool find_value();
  void take_value(FoundTarget& out);
  void take_list(FoundTarget& out);
  void read_dictionary(const ParquetPage& page);
  void begin_values();
  void add_stored(FoundTarget& out);
  void add_boolean(FoundTarget& out);
  [[noreturn]] void fail_row(const std::string& reason) const;

  BlobReader& blob_;
  const ParquetColumn& column_;
  PageReader pages_;
  const ParquetNumberKind kind_;
  const int64_t first_row_, rows_;
  int64_t& budget_;
  int64_t done_ = 0;  // rows
  ParquetPage page_;  // the current one
  PageParts parts_;
  HybridReader repetitions_, definitions_;
  int64_t left_ = 0;                          // values of the page
  std::optional<uint32_t> repetition_;        // of a value that was found and not taken
  std::optional<DictionaryIndexes> indexes_;  // or the values are stored in parts_.values
  std::optional<HybridReader> runs_;          // or booleans are in runs
  int bit_ = 0;                               // of a plain boolean in its byte
  FoundTarget dictionary_;
  bool has_dictionary_ = false;
  ListShape shape_;
};

}  // namespace stoker
