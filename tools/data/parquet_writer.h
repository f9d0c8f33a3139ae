// Writes a shard as a Parquet file in the layout of the Hugging Face Hub's image data sets: a
// column `image`, a struct of `bytes` and `path`, and a column `label`, int64. The metadata have a
// key "huggingface", from which `datasets` takes that these are an Image and a ClassLabel.
//
// Format: apache/parquet-format, README.md and parquet.thrift, format version 1. Pages are plain
// and not compressed, so that the bytes of an image lie in the file as they are. A row group has at
// most 100 rows and, unless it has one row only, 64 MiB of values; this is what the writer holds.
#pragma once

#include <string>
#include <vector>

#include "pipeline/files/durable_file.h"
#include "tools/data/shard_writer.h"

namespace stoker {

class ParquetShardWriter final : public ShardWriter {
 public:
  // `class_names`: by label; empty: labels are plain numbers.
  ParquetShardWriter(const std::string& path, const std::vector<std::string>& class_names);

  int64_t bytes_with(const ShardSample& sample) const override;
  void add(const ShardSample& sample) override;
  int64_t finish() override;

 private:
  struct Column {
    std::string values;  // of the row group that is being filled, encoded
    // A page of each row group that is written.
    struct Page {
      int64_t offset, bytes;
    };
    std::vector<Page> pages;
  };

  int64_t buffered() const;
  void write_row_group();
  void write_page(Column& column, int definition_level);
  std::string footer() const;
  void write(std::string_view bytes);

  const std::string path_;
  const std::string features_;  // the JSON of "huggingface"
  ReplacedFile file_;
  int64_t bytes_ = 0;  // written so far
  Column images_, paths_, labels_;
  int rows_ = 0;                     // of the row group that is being filled
  std::vector<int> rows_of_groups_;  // of those that are written
};

}  // namespace stoker
