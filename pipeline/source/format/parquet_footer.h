// The footer of a Parquet file (apache/parquet-format: README.md, src/main/thrift/parquet.thrift):
// which columns it has, and where the pages of each lie. A value. Errors: BlobError.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/source/format/blob_reader.h"

namespace stoker {

// The format's numbers of physical types; `group` is a struct of further fields.
enum class ParquetType : int8_t {
  group = -1,
  boolean = 0,
  int32 = 1,
  int64 = 2,
  int96 = 3,
  float32 = 4,
  float64 = 5,
  byte_array = 6,
  fixed_len_byte_array = 7,
};

// A field of the schema. The fields are in the schema's order: a group's are behind it.
struct ParquetField {
  std::vector<std::string> names;  // from the top: {"image", "bytes"}; any bytes
  ParquetType type = ParquetType::group;
  int64_t converted = -1;         // ConvertedType of the format; -1: none
  int64_t logical = 0;            // which member of the union LogicalType; 0: none
  bool logical_unsigned = false;  // an integer whose logical type says that it has no sign
  int64_t logical_bits = 0;       // of such an integer or one with a sign; 0: it does not say
  bool repeated = false;          // it or a group around it is: a list
  int max_repetition = 0;         // how many of it and the groups around it are repeated
  int max_definition = 0;         // how many of them may be null or repeated
  int64_t column = -1;            // of what is no group: its place in `ParquetRowGroup::columns`

  // The names with dots between them; any bytes.
  std::string path() const;
  // For errors: "INT64", "BYTE_ARRAY (UTF8)", "a list".
  std::string describe() const;
  // Integers without a meaning of their own, which dates and decimals have.
  bool is_plain_integer() const;
  bool is_unsigned() const;
  bool is_text() const;
  bool is_uint8() const;
  bool is_float16() const;
  bool is_list() const;  // a group around a repeated field
};

// The pages of one column in one row group: [begin, begin + bytes) of the file, which holds them.
struct ParquetChunk {
  int64_t begin = 0, bytes = 0;
  int64_t values = 0;      // with nulls
  int64_t codec = 0;       // CompressionCodec of the format
  bool elsewhere = false;  // in another file
  bool encrypted = false;
};

struct ParquetRowGroup {
  int64_t rows = 0;
  std::vector<ParquetChunk> columns;  // one per column of the schema
};

// Rows take next to nothing where all are alike; 8 for each byte of the file is more than data sets
// of images have, and keeps a file from promising any number of them.
inline constexpr int64_t kMaxRowsPerByte = 8;

struct ParquetFooter {
  int64_t begin = 0;  // offset of the footer
  std::vector<ParquetField> fields;
  std::vector<ParquetRowGroup> row_groups;
  // The notes of the library `datasets` about the columns, as JSON; "" if it is not there.
  std::string huggingface;
};

ParquetFooter read_parquet_footer(BlobReader& blob);

}  // namespace stoker
