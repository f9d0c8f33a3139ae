// Writes small Parquet files for tests, from the format's documents and not with the code that is
// tested. Wrong files are made by saying what is wrong with them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stoker {

// The format's numbers.
inline constexpr int kMadePlain = 0, kMadeSnappy = 1, kMadeGzip = 2, kMadeZstd = 6;     // codecs
inline constexpr int kMadeBoolean = 0, kMadeInt32 = 1, kMadeInt64 = 2, kMadeFloat = 4;  // types
inline constexpr int kMadeDouble = 5, kMadeBytes = 6, kMadeFixedBytes = 7;              // types

// Values in PLAIN encoding.
std::string plain_int32(int64_t value);
std::string plain_int64(uint64_t value);
std::string plain_bytes(std::string_view bytes);

// A frame of Zstandard that holds `text` as it is, in blocks of at most 128 KiB.
std::string pack_zstd(std::string_view text);

struct MadeColumn {
  std::vector<std::string> names{};  // {"image", "bytes"}: `bytes` in the struct `image`
  int type = kMadeBytes;
  // PLAIN; none: null. A boolean is "\0" or "\1".
  std::vector<std::optional<std::string>> values{};
  int converted = -1;        // ConvertedType
  int logical = 0;           // member of LogicalType
  bool is_unsigned = false;  // in the logical type of an integer
  bool optional = true;      // so are the groups around it
  bool repeated = false;
  // A column of lists has these instead of `values`, for each row its elements. `repeated_at` says
  // which of `names` are repeated ({"tags", "list", "element"}: {1}); the groups around them are
  // lists. With two of them, each inner list has `inner` elements.
  std::vector<std::vector<std::optional<std::string>>> lists = {};
  std::vector<size_t> repeated_at = {};
  size_t inner = 1;
  uint64_t empty_definition = 0;  // the level of a list without elements; 0: it is a null
  size_t values_per_page = 0;     // of lists; 0: pages end where rows do
  bool dictionary = false;
  int codec = kMadePlain;
  bool packed = true;  // false: pages of version 2 are not, whatever the codec

  // Faults of the file.
  int encoding = -1;       // what the pages say
  int level_encoding = 3;  // what pages of version 1 say
  int repetition_encoding = 3;
  int more_repetition = 0;     // added to the level of the last value
  int64_t more_in_footer = 0;  // values, more than there are
  int64_t more_in_page = 0;
  int64_t more_bytes = 0;        // of all pages, in the footer
  int64_t more_unpacked = 0;     // bytes, in the header of each page
  int64_t more_level_bytes = 0;  // in their length
  int64_t more_in_index = 0;     // added to the places in the dictionary
  bool repeats_last_page = false;
  bool leaves_out_dictionary = false;
  bool encrypted = false;
  std::string file{};  // the other file that it is in
};

struct MadeParquet {
  std::vector<MadeColumn> columns;
  int more_groups = 0;    // how often the last row group is there again, with the same pages
  int64_t more_rows = 0;  // in the footer, more than there are in each row group
  size_t rows_per_group = 1000, rows_per_page = 1000;
  int page_version = 1;
  std::vector<std::pair<std::string, std::string>> metadata = {};

  // The file. It also has fields that readers do not know.
  std::string bytes() const;
};

// A file from its footer's bytes, without pages.
std::string parquet_around(std::string_view footer);

}  // namespace stoker
