// The pages of one column chunk of a Parquet file (apache/parquet-format: README.md, "Data Pages";
// Encodings.md): their headers, the levels that say which rows are null, what is packed in them.
// Owner: one scan. Threads: one at a time. Errors: BlobError; they name the column.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pipeline/source/format/parquet_footer.h"
#include "pipeline/source/format/sample_sink.h"

namespace stoker {

// A column that is read.
struct ParquetColumn {
  std::string name;          // printable
  std::string missing;       // what a row has not whose value is null: "image bytes"
  int max_definition = 0;    // ParquetField's
  int64_t largest_page = 0;  // unpacked bytes
  int max_repetition = 0;    // the same
  bool is_boolean = false;   // which has an encoding of its own
};

enum class PageKind : uint8_t { dictionary, data_v1, data_v2 };
// The format's encodings that are read.
enum class PageEncoding : uint8_t { plain, dictionary, runs_of_booleans };

struct ParquetPage {
  PageKind kind = PageKind::data_v1;
  PageEncoding encoding = PageEncoding::plain;
  BlobStorage storage = BlobStorage::bytes;  // how the packed part is packed
  int64_t values = 0;
  // The packed part of the page: all of it, or what comes after the levels.
  int64_t offset = 0, packed = 0, unpacked = 0;
  int64_t levels_at = 0, levels = 0;  // v2 only: the definition levels, never packed
  int64_t repetitions = 0;            // v2 only: bytes of repetition levels before them
};

// Reads integers of a few bits each, which lie in runs of equal ones and in groups of eight
// (Encodings.md, "RLE/Bit-Packing Hybrid"). A value; the bytes outlive it.
class HybridReader {
 public:
  HybridReader() = default;
  // `bits`: 0 to 32 per value.
  HybridReader(std::span<const uint8_t> bytes, int bits) : bytes_(bytes), bits_(bits) {}

  // Returns false if the bytes end before the next value.
  bool next(uint32_t& value);

 private:
  bool next_run();

  std::span<const uint8_t> bytes_;  // those behind the current run
  int bits_ = 0;
  uint64_t left_ = 0;  // values of the current run
  uint32_t repeated_ = 0;
  std::span<const uint8_t> group_;  // of a run of values that differ; empty: all are repeated_
  uint64_t bit_ = 0;
};

// The parts of a data page: the levels of HybridReader's form, and the values.
struct PageParts {
  std::vector<uint8_t> repetitions, definitions;
  std::span<const uint8_t> values;
};

class PageReader {
 public:
  // All of these outlive it.
  PageReader(BlobReader& blob, const ParquetColumn& column, const ParquetChunk& chunk);

  // Reads the header of the next page that has data or a dictionary; false at the chunk's end.
  bool next(ParquetPage& page);
  // Throws if the page has more values than there can be.
  void check_count(const ParquetPage& page, int64_t most) const;
  // Throws if a row of this page is null, given its first row's number in the file. Returns
  // where the values begin in the blob. For pages that are not packed.
  int64_t check_levels(const ParquetPage& page, int64_t first_row);
  // The same for `unpacked`, what load() returned. Returns the values.
  std::span<const uint8_t> check_levels(const ParquetPage& page, std::span<const uint8_t> unpacked,
                                        int64_t first_row);
  // Sets `parts` to those of a page with data, given what load() returned for it.
  void split(const ParquetPage& page, std::span<const uint8_t> unpacked, PageParts& parts);
  // Reads and unpacks a page. What it returns is valid until the next call.
  // `zstd_needed`: see unpack_zstd().
  std::span<const uint8_t> load(const ParquetPage& page, std::vector<int64_t>* zstd_needed);
  // The elements of a page that is packed with Snappy, without the length before them, and where
  // they begin. Valid until the blob is read again.
  std::span<const uint8_t> snappy_elements(const ParquetPage& page, int64_t& offset);

  // Throws BlobError about this column.
  [[noreturn]] void fail(int64_t offset, const std::string& reason) const;

 private:
  struct Header;
  Header read_header();
  ParquetPage describe(const Header& header, int64_t begin);
  PageEncoding encoding_of(const Header& header, int64_t begin) const;
  void check_defined(const ParquetPage& page, std::span<const uint8_t> levels, int64_t first_row,
                     int64_t offset) const;

  BlobReader& blob_;
  const ParquetColumn& column_;
  const int64_t end_;  // of the chunk
  int64_t at_;         // the next header
  const int64_t codec_;
  std::unique_ptr<uint8_t[]> buffer_;
  int64_t buffer_bytes_ = 0;
};

inline constexpr const char* kNoDictionary = "a page of places in a dictionary, and no dictionary";

// The values of a page as places in the chunk's dictionary, each smaller than its size.
class DictionaryIndexes {
 public:
  // `values`: of check_levels(). All outlive it.
  DictionaryIndexes(const PageReader& reader, const ParquetPage& page,
                    std::span<const uint8_t> values, size_t dictionary_size);
  // At most as often as the page has values.
  size_t next();

 private:
  const PageReader& reader_;
  const int64_t offset_;  // of the page
  const size_t dictionary_size_;
  HybridReader hybrid_;
};

}  // namespace stoker
