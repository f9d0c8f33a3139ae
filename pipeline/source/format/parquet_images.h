// Where the images of a Parquet file are: one column of one row group, whose values are the bytes
// of images. What is not packed is not read, only the four bytes before each image that are its
// length; what is packed is unpacked once. Owner: one scan. Threads: one at a time. Errors:
// BlobError.
#pragma once

#include <functional>
#include <vector>

#include "pipeline/source/format/parquet_pages.h"

namespace stoker {

class ParquetImages {
 public:
  // Takes the place of an image, with nothing else.
  using Found = std::function<void(const FoundSample&)>;

  // For the row group that begins with row `first_row` of the file.
  ParquetImages(BlobReader& blob, const ParquetColumn& column, const ParquetChunk& chunk,
                int64_t first_row);

  // Calls found() for each row; throws if there are more than `most_rows`. Returns how many there
  // were.
  int64_t scan(int64_t most_rows, const Found& found);

 private:
  void read_dictionary(const ParquetPage& page);
  void find_plain(const ParquetPage& page, int64_t first_row, const Found& found);
  void find_unpacked(const ParquetPage& page, int64_t values_at, const Found& found);
  void find_packed(const ParquetPage& page, int64_t first_row, const Found& found);
  void find_in_dictionary(const ParquetPage& page, int64_t first_row, const Found& found);

  BlobReader& blob_;
  PageReader pages_;
  const int64_t first_row_;
  bool has_dictionary_ = false;
  std::vector<FoundSample> dictionary_;
};

}  // namespace stoker
