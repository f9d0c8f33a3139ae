// The columns of a Parquet file that samples are made of, one row group at a time: images, labels,
// numbers and texts. Owner: one scan. Threads: one at a time. Errors: BlobError.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/source/format/found_objects.h"
#include "pipeline/source/format/found_target.h"
#include "pipeline/source/format/number_bytes.h"
#include "pipeline/source/format/parquet_pages.h"

namespace stoker {

// Where the images are: one column, whose values are the bytes of images. What is not packed is not
// read, only the four bytes before each image that are its length; what is packed is unpacked once.
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

// One column of integers or text.
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

// A column with an entry of each row's objects, or the rows' image_id.
struct ParquetObjectColumn {
  std::optional<ObjectEntry> entry{};  // none: image_id
  const ParquetField* field = nullptr;
  int empty_below = 0;  // ParquetNumbers::next_objects()
};
// Returns the columns of objects, in the order of the schema, by object_columns() or inside of a
// struct of lists or a list of structs. Throws BlobError if they are not there, or are of other
// types.
std::vector<ParquetObjectColumn> choose_objects(const BlobReader& blob, const ParquetFooter& footer,
                                                const ObjectField& wanted);
// For messages: "the columns are 'image' (...), ...".
std::string list_fields(const ParquetFooter& footer);
// Returns whether this is what the groups inside of a list are called, and not a field of a struct.
bool is_list_name(const std::string& name);
const ParquetField* find_field(const ParquetFooter& footer, const std::string& path);
// Returns the names of a field's classes that `datasets` noted; empty if it did not. What cannot be
// understood there does no harm.
std::vector<std::string> class_names_of(const ParquetFooter& footer, const ParquetField& field);

// Numbers repeat more than rows do: a mask of zeros, packed. A file may have so many per byte.
inline constexpr int64_t kMaxNumbersPerByte = 1024;

// How a column's values are stored, and what column of targets they make by themselves.
struct ParquetNumberKind {
  NumberForm form;
  TargetType type;
};
// Returns nothing for a column of other values than numbers (dates, decimals, text).
std::optional<ParquetNumberKind> number_kind(const ParquetField& field);
// Returns the definition level of values that are in the outermost list around a column.
int level_of_list(const ParquetFooter& footer, const ParquetField& column);

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

// The values of a target: one column of numbers or texts, or of lists of them. A list's rows are
// put together from repetition levels (apache/parquet-format: README.md, "Nested Encoding").
class ParquetNumbers {
 public:
  // `field` is of numbers, or else of byte arrays, which are texts. For the row group that has
  // `rows` rows, and begins with row `first_row` of the file. A list column takes its numbers from
  // `budget`.
  ParquetNumbers(BlobReader& blob, const ParquetColumn& column, const ParquetField& field,
                 const ParquetChunk& chunk, int64_t first_row, int64_t rows, int64_t& budget);

  // Sets `out` to the next row's numbers.
  void next(FoundTarget& out);
  // The same for a list of objects: one whose definition level is below `empty_below` is empty, and
  // not wrong. What is wrong with the row's values becomes `problem`, if that is "".
  void next_objects(int empty_below, FoundTarget& out, std::string& problem);
  // The same for a column that varies, where a null is no empty list: what is wrong becomes
  // out.problem.
  void next_varying(int empty_below, FoundTarget& out);
  // Throws if there are more.
  void expect_end();

 private:
  bool next_page();
  bool find_value();
  void take_value(FoundTarget& out);
  void take_list(FoundTarget& out);
  void read_dictionary(const ParquetPage& page);
  void begin_values();
  void add_from_dictionary(FoundTarget& out);
  void add_stored(FoundTarget& out);
  std::string_view take_text();
  void add_boolean(FoundTarget& out);
  [[noreturn]] void fail_row(const std::string& reason) const;
  void refuse_values(const std::string& reason) const;

  BlobReader& blob_;
  const ParquetColumn& column_;
  PageReader pages_;
  const std::optional<ParquetNumberKind> kind_;  // none: texts
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
  std::vector<std::string> dictionary_texts_;
  bool has_dictionary_ = false;
  ListShape shape_;
  // For next_objects() and next_varying() only.
  std::string* problem_ = nullptr;
  uint32_t empty_below_ = 0, null_below_ = 0;
  bool is_empty_ = false;
};

}  // namespace stoker
