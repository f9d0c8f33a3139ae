#include "pipeline/source/format/little_endian.h"
#include "pipeline/source/format/parquet_columns.h"
#include "pipeline/source/format/snappy.h"
#include "pipeline/source/format/unpack.h"

namespace stoker {
namespace {

// Before each value of bytes.
constexpr int64_t kLengthBytes = 4;

int64_t read_image_length(std::span<const uint8_t> bytes) {
  return static_cast<int64_t>(read_little_endian(bytes));
}

std::string ends_inside(int64_t value, const ParquetPage& page) {
  return "a page ends inside value " + std::to_string(value) + " of " + std::to_string(page.values);
}

FoundSample place_in_zstd(const ParquetPage& page, const SnappyRange& range,
                          const std::vector<int64_t>& needed) {
  FoundSample place;
  place.offset = page.offset;
  place.length = range.end - range.begin;
  if (place.length == 0) return place;
  place.storage = BlobStorage::zstd;
  place.packed_length = needed[static_cast<size_t>((range.end - 1) / kZstdStep)];
  place.skip = range.begin;
  return place;
}

FoundSample place_in_snappy(int64_t elements_at, const SnappyRange& range,
                            const SnappyPart& found) {
  FoundSample place;
  place.offset = elements_at + found.offset;
  place.length = range.end - range.begin;
  if (found.as_it_is) return place;
  place.storage = BlobStorage::snappy;
  place.packed_length = found.length;
  place.skip = found.skip;
  return place;
}

}  // namespace

ParquetImages::ParquetImages(BlobReader& blob, const ParquetColumn& column,
                             const ParquetChunk& chunk, int64_t first_row)
    : blob_(blob), pages_(blob, column, chunk), first_row_(first_row) {}

int64_t ParquetImages::scan(int64_t most_rows, const Found& found) {
  int64_t rows = 0;
  ParquetPage page;
  while (pages_.next(page)) {
    if (page.kind == PageKind::dictionary) {
      read_dictionary(page);
      continue;
    }
    pages_.check_count(page, most_rows - rows);
    if (page.values == 0) continue;
    if (page.encoding == PageEncoding::dictionary) {
      find_in_dictionary(page, first_row_ + rows, found);
    } else {
      find_plain(page, first_row_ + rows, found);
    }
    rows += page.values;
  }
  return rows;
}

void ParquetImages::read_dictionary(const ParquetPage& page) {
  pages_.check_count(page, blob_.size() * kMaxRowsPerByte);
  dictionary_.clear();
  find_plain(page, 0, [this](const FoundSample& place) { dictionary_.push_back(place); });
  has_dictionary_ = true;
}

void ParquetImages::find_plain(const ParquetPage& page, int64_t first_row, const Found& found) {
  if (page.storage != BlobStorage::bytes) return find_packed(page, first_row, found);
  find_unpacked(page, pages_.check_levels(page, first_row), found);
}

void ParquetImages::find_unpacked(const ParquetPage& page, int64_t values_at, const Found& found) {
  const int64_t end = page.offset + page.packed;
  for (int64_t at = values_at, i = 0; i < page.values; ++i) {
    if (end - at < kLengthBytes) pages_.fail(at, ends_inside(i, page));
    FoundSample place;
    place.length = read_image_length(blob_.read(at, kLengthBytes, "a length"));
    place.offset = at + kLengthBytes;
    if (place.length > end - place.offset) pages_.fail(at, ends_inside(i, page));
    at = place.offset + place.length;
    found(place);
  }
}

void ParquetImages::find_packed(const ParquetPage& page, int64_t first_row, const Found& found) {
  std::vector<int64_t> zstd_needed;
  const std::span<const uint8_t> all = pages_.load(page, &zstd_needed);
  const std::span<const uint8_t> values = pages_.check_levels(page, all, first_row);
  const auto size = static_cast<int64_t>(all.size());
  std::vector<SnappyRange> ranges;
  for (int64_t at = size - static_cast<int64_t>(values.size()), i = 0; i < page.values; ++i) {
    if (size - at < kLengthBytes) pages_.fail(page.offset, ends_inside(i, page));
    const int64_t begin = at + kLengthBytes;
    const int64_t length = read_image_length(all.subspan(static_cast<size_t>(at), kLengthBytes));
    if (length > size - begin) pages_.fail(page.offset, ends_inside(i, page));
    ranges.push_back({begin, begin + length});
    at = begin + length;
  }
  if (page.storage == BlobStorage::zstd) {
    for (const SnappyRange& range : ranges) found(place_in_zstd(page, range, zstd_needed));
    return;
  }
  int64_t elements_at;
  const std::span<const uint8_t> elements = pages_.snappy_elements(page, elements_at);
  const std::vector<SnappyPart> places = find_in_snappy(elements, ranges);
  // It was read twice: once to unpack it.
  if (places.size() != ranges.size()) pages_.fail(page.offset, "a page changed while it was read");
  for (size_t i = 0; i < places.size(); ++i) {
    found(place_in_snappy(elements_at, ranges[i], places[i]));
  }
}

void ParquetImages::find_in_dictionary(const ParquetPage& page, int64_t first_row,
                                       const Found& found) {
  if (!has_dictionary_) pages_.fail(page.offset, kNoDictionary);
  const std::span<const uint8_t> values =
      pages_.check_levels(page, pages_.load(page, nullptr), first_row);
  DictionaryIndexes indexes(pages_, page, values, dictionary_.size());
  for (int64_t i = 0; i < page.values; ++i) found(dictionary_[indexes.next()]);
}

}  // namespace stoker
