// The labels in a Parquet file: one column of integers or text, one row group. Owner: one scan.
// Threads: one at a time. Errors: BlobError.
#pragma once

#include <optional>
#include <vector>

#include "pipeline/source/format/parquet_pages.h"

namespace stoker {

class ParquetLabels {
 public:
  // For the row group that has `rows` rows, and begins with row `first_row` of the file. `field` is
  // the column's, of integers or text.
  ParquetLabels(BlobReader& blob, const ParquetColumn& column, const ParquetField& field,
                const ParquetChunk& chunk, int64_t first_row, int64_t rows);

  // Returns the next row's label; a text in it is valid until the next call.
  BlobLabel next();
  // Throws if there are more.
  void expect_end();

 private:
  bool next_page();
  void read_dictionary(const ParquetPage& page);
  BlobLabel read_value();
  std::span<const uint8_t> take(size_t bytes);

  BlobReader& blob_;
  PageReader pages_;
  const ParquetType type_;
  const bool is_unsigned_;
  const int64_t first_row_, rows_;
  int64_t done_ = 0;                          // rows
  ParquetPage page_;                          // the current one
  int64_t left_ = 0;                          // values of it
  std::span<const uint8_t> values_;           // those of it that were not read yet
  std::optional<DictionaryIndexes> indexes_;  // or those, as places in the dictionary
  std::vector<uint8_t> dictionary_bytes_;
  std::vector<BlobLabel> dictionary_;
  bool has_dictionary_ = false;
};

}  // namespace stoker
