#include "pipeline/source/format/parquet_pages.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "pipeline/source/format/little_endian.h"
#include "pipeline/source/format/snappy.h"
#include "pipeline/source/format/thrift_reader.h"
#include "pipeline/source/format/unpack.h"

namespace stoker {
namespace {

// The format's numbers.
constexpr int64_t kUncompressed = 0, kSnappy = 1, kZstd = 6;
constexpr std::array<const char*, 8> kCodecNames = {"UNCOMPRESSED", "SNAPPY", "GZIP", "LZO",
                                                    "BROTLI",       "LZ4",    "ZSTD", "LZ4_RAW"};
constexpr int64_t kPlain = 0, kPlainDictionary = 2, kRle = 3, kRleDictionary = 8;
constexpr std::array<const char*, 10> kEncodingNames = {
    "PLAIN",          "encoding 1",          "PLAIN_DICTIONARY",        "RLE",
    "BIT_PACKED",     "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY",
    "RLE_DICTIONARY", "BYTE_STREAM_SPLIT",
};
// More groups of eight values than any page has.
constexpr uint64_t kManyGroups = uint64_t{1} << 40;
constexpr int64_t kDataPage = 0, kDictionaryPage = 2, kDataPageV2 = 3;

template <size_t size>
std::string name_of(const std::array<const char*, size>& names, int64_t number, const char* what) {
  if (number >= 0 && number < std::ssize(names)) return names[static_cast<size_t>(number)];
  return std::string(what) + " " + std::to_string(number);
}

}  // namespace

bool HybridReader::next_run() {
  uint64_t head = 0;
  size_t at = 0;
  for (int shift = 0;; shift += 7, ++at) {
    if (at == bytes_.size() || shift >= 63) return false;
    head |= uint64_t{bytes_[at] & 0x7fu} << shift;
    if (bytes_[at] < 0x80) break;
  }
  bytes_ = bytes_.subspan(at + 1);
  const auto bits = static_cast<size_t>(bits_);
  if (head & 1) {
    // So many groups of eight values; the last may be cut off after the values that count.
    const uint64_t groups = head >> 1;
    const size_t whole = bits == 0 ? 0 : std::min<uint64_t>(groups, bytes_.size() / bits + 1);
    group_ = bytes_.first(std::min(whole * bits, bytes_.size()));
    left_ = bits == 0 ? 8 * std::min(groups, kManyGroups)
                      : std::min<uint64_t>(8 * whole, 8 * group_.size() / bits);
    bit_ = 0;
    repeated_ = 0;
    bytes_ = bytes_.subspan(group_.size());
  } else {
    const size_t width = (bits + 7) / 8;
    if (bytes_.size() < width) return false;
    left_ = head >> 1;
    group_ = {};
    repeated_ = static_cast<uint32_t>(read_little_endian(bytes_.first(width)));
    bytes_ = bytes_.subspan(width);
  }
  return true;
}

bool HybridReader::next(uint32_t& value) {
  while (left_ == 0) {
    if (!next_run()) return false;
  }
  --left_;
  if (group_.empty()) {
    value = repeated_;
    return true;
  }
  const size_t first = bit_ / 8;
  const size_t bytes = std::min<size_t>(group_.size() - first, 5);
  uint64_t word = 0;
  for (size_t i = 0; i < bytes; ++i) word |= uint64_t{group_[first + i]} << (8 * i);
  value = static_cast<uint32_t>(word >> (bit_ % 8) & ((uint64_t{1} << bits_) - 1));
  bit_ += static_cast<uint64_t>(bits_);
  return true;
}

// PageHeader of the format, and the struct inside it that belongs to the page's type.
struct PageReader::Header {
  int64_t type = -1, unpacked = -1, packed = -1;
  int64_t inner_type = -1;  // of the page that the inner struct is for
  int64_t values = 0, encoding = kPlain, level_encoding = kRle, repetition_encoding = kRle;
  int64_t definition_bytes = 0, repetition_bytes = 0;  // v2 only
  bool compressed = true;
};

PageReader::PageReader(BlobReader& blob, const ParquetColumn& column, const ParquetChunk& chunk)
    : blob_(blob),
      column_(column),
      end_(chunk.begin + chunk.bytes),
      at_(chunk.begin),
      codec_(chunk.codec) {
  if (codec_ != kUncompressed && codec_ != kSnappy && codec_ != kZstd) {
    fail(chunk.begin,
         "its pages are packed with " + name_of(kCodecNames, codec_, "codec") +
             ", which is not read: write the file with no compression, SNAPPY or ZSTD");
  }
  if (codec_ == kZstd && !has_zstd()) {
    fail(chunk.begin, "its pages are packed with ZSTD, and this build has no libzstd");
  }
}

void PageReader::fail(int64_t offset, const std::string& reason) const {
  blob_.fail(offset, "column " + column_.name + ": " + reason);
}

PageReader::Header PageReader::read_header() {
  Header header;
  ThriftReader thrift(blob_, at_, end_, "a page header");
  // The numbers of the fields of DataPageHeader, DictionaryPageHeader and DataPageHeaderV2.
  const auto read_inner = [&](ThriftType type, int64_t page_type) {
    header.inner_type = page_type;
    const bool v2 = page_type == kDataPageV2;
    thrift.read_struct(type, [&](int64_t id, ThriftType field) {
      if (id == 1) {
        header.values = thrift.natural(field);
      } else if (id == (v2 ? 4 : 2)) {
        header.encoding = thrift.natural(field);
      } else if (id == 3 && page_type == kDataPage) {
        header.level_encoding = thrift.natural(field);
      } else if (id == 4 && page_type == kDataPage) {
        header.repetition_encoding = thrift.natural(field);
      } else if (id == 5 && v2) {
        header.definition_bytes = thrift.natural(field);
      } else if (id == 6 && v2) {
        header.repetition_bytes = thrift.natural(field);
      } else if (id == 7 && v2) {
        header.compressed = thrift.boolean(field);
      } else {
        return false;
      }
      return true;
    });
    return true;
  };
  thrift.read_struct(ThriftType::structure, [&](int64_t id, ThriftType field) {
    switch (id) {
      case 1:
        header.type = thrift.natural(field);
        return true;
      case 2:
        header.unpacked = thrift.natural(field);
        return true;
      case 3:
        header.packed = thrift.natural(field);
        return true;
      case 5:
        return read_inner(field, kDataPage);
      case 7:
        return read_inner(field, kDictionaryPage);
      case 8:
        return read_inner(field, kDataPageV2);
      default:
        return false;
    }
  });
  at_ = thrift.offset();
  return header;
}

bool PageReader::next(ParquetPage& page) {
  while (at_ < end_) {
    const int64_t begin = at_;
    const Header header = read_header();
    if (header.type < 0 || header.packed < 0 || header.unpacked < 0) {
      fail(begin, "a page header without the page's type and sizes");
    }
    if (header.packed > end_ - at_) {
      fail(begin, "a page of " + std::to_string(header.packed) + " bytes begins at byte " +
                      std::to_string(at_) + ", and the column's bytes end at byte " +
                      std::to_string(end_));
    }
    const bool known =
        header.type == kDataPage || header.type == kDictionaryPage || header.type == kDataPageV2;
    if (known) page = describe(header, begin);
    at_ += header.packed;
    if (known) return true;
  }
  return false;
}

PageEncoding PageReader::encoding_of(const Header& header, int64_t begin) const {
  if (header.encoding == kPlain) return PageEncoding::plain;
  const bool dictionary = header.encoding == kPlainDictionary || header.encoding == kRleDictionary;
  // A dictionary's own values are plain; old files call that PLAIN_DICTIONARY.
  if (dictionary && header.type == kDictionaryPage) return PageEncoding::plain;
  if (dictionary) return PageEncoding::dictionary;
  if (header.encoding == kRle && column_.is_boolean) return PageEncoding::runs_of_booleans;
  fail(begin, "a page is encoded as " + name_of(kEncodingNames, header.encoding, "encoding") +
                  ", which is not read: write the column with PLAIN or RLE_DICTIONARY (pyarrow's "
                  "write_table() does without column_encoding)");
}

ParquetPage PageReader::describe(const Header& header, int64_t begin) {
  if (header.inner_type != header.type) {
    fail(begin, "a page of type " + std::to_string(header.type) + " without that type's header");
  }
  ParquetPage page;
  page.encoding = encoding_of(header, begin);
  page.values = header.values;
  page.offset = at_;
  page.packed = header.packed;
  page.unpacked = header.unpacked;
  bool is_packed = codec_ != kUncompressed;
  if (header.type == kDictionaryPage) {
    page.kind = PageKind::dictionary;
  } else if (header.type == kDataPageV2) {
    page.kind = PageKind::data_v2;
    const int64_t least = std::min(header.packed, header.unpacked);
    if (header.repetition_bytes > least ||
        header.definition_bytes > least - header.repetition_bytes) {
      fail(begin, "levels of " + std::to_string(header.repetition_bytes) + " and " +
                      std::to_string(header.definition_bytes) + " bytes in a page of " +
                      std::to_string(least));
    }
    const int64_t both = header.repetition_bytes + header.definition_bytes;
    page.levels_at = at_ + header.repetition_bytes;
    page.levels = header.definition_bytes;
    page.repetitions = header.repetition_bytes;
    page.offset += both;
    page.packed -= both;
    page.unpacked -= both;
    is_packed = is_packed && header.compressed;
  } else if (column_.max_definition > 0 && header.level_encoding != kRle) {
    fail(begin, "definition levels encoded as " +
                    name_of(kEncodingNames, header.level_encoding, "encoding") +
                    ", which is not read");
  } else if (column_.max_repetition > 0 && header.repetition_encoding != kRle) {
    fail(begin, "repetition levels encoded as " +
                    name_of(kEncodingNames, header.repetition_encoding, "encoding") +
                    ", which is not read");
  }
  if (is_packed) page.storage = codec_ == kSnappy ? BlobStorage::snappy : BlobStorage::zstd;
  if (!is_packed && page.packed != page.unpacked) {
    fail(begin, "a page that is not packed has " + std::to_string(page.packed) +
                    " bytes, and its header says " + std::to_string(page.unpacked));
  }
  return page;
}

void PageReader::check_count(const ParquetPage& page, int64_t most) const {
  if (page.values <= most) return;
  fail(page.offset, "a page of " + std::to_string(page.values) +
                        " values, where there can be no more than " + std::to_string(most));
}

void PageReader::check_defined(const ParquetPage& page, std::span<const uint8_t> levels,
                               int64_t first_row, int64_t offset) const {
  if (column_.max_definition == 0) return;
  const auto most = static_cast<uint32_t>(column_.max_definition);
  HybridReader reader(levels, std::bit_width(most));
  for (int64_t i = 0; i < page.values; ++i) {
    uint32_t level;
    if (!reader.next(level)) {
      fail(offset, "the definition levels of a page end after " + std::to_string(i) + " of " +
                       std::to_string(page.values) + " values");
    }
    if (level != most) {
      fail(offset,
           "row " + std::to_string(first_row + i) + " has no " + column_.missing + " (null)");
    }
  }
}

int64_t PageReader::check_levels(const ParquetPage& page, int64_t first_row) {
  if (page.kind == PageKind::data_v2) {
    check_defined(page, blob_.read(page.levels_at, page.levels, "definition levels"), first_row,
                  page.levels_at);
    return page.offset;
  }
  if (page.kind == PageKind::dictionary || column_.max_definition == 0) return page.offset;
  if (page.packed < 4) fail(page.offset, "a page ends inside its definition levels");
  const auto length =
      static_cast<int64_t>(read_little_endian(blob_.read(page.offset, 4, "a length of levels")));
  if (length > page.packed - 4) fail(page.offset, "a page ends inside its definition levels");
  check_defined(page, blob_.read(page.offset + 4, length, "definition levels"), first_row,
                page.offset);
  return page.offset + 4 + length;
}

std::span<const uint8_t> PageReader::check_levels(const ParquetPage& page,
                                                  std::span<const uint8_t> unpacked,
                                                  int64_t first_row) {
  if (page.kind == PageKind::data_v2) {
    check_defined(page, blob_.read(page.levels_at, page.levels, "definition levels"), first_row,
                  page.levels_at);
    return unpacked;
  }
  if (page.kind == PageKind::dictionary || column_.max_definition == 0) return unpacked;
  if (unpacked.size() < 4) fail(page.offset, "a page ends inside its definition levels");
  const size_t length = read_little_endian(unpacked.first(4));
  if (length > unpacked.size() - 4) fail(page.offset, "a page ends inside its definition levels");
  check_defined(page, unpacked.subspan(4, length), first_row, page.offset);
  return unpacked.subspan(4 + length);
}

void PageReader::split(const ParquetPage& page, std::span<const uint8_t> unpacked,
                       PageParts& parts) {
  const auto set = [](std::vector<uint8_t>& levels, std::span<const uint8_t> bytes) {
    levels.assign(bytes.begin(), bytes.end());
  };
  parts.values = unpacked;
  if (page.kind == PageKind::data_v2) {
    const int64_t at = page.levels_at - page.repetitions;
    set(parts.repetitions, blob_.read(at, page.repetitions, "repetition levels"));
    set(parts.definitions, blob_.read(page.levels_at, page.levels, "definition levels"));
    return;
  }
  for (auto* const levels : {&parts.repetitions, &parts.definitions}) {
    levels->clear();
    const bool is_there =
        levels == &parts.repetitions ? column_.max_repetition > 0 : column_.max_definition > 0;
    if (!is_there) continue;
    if (parts.values.size() < 4) fail(page.offset, "a page ends inside its levels");
    const size_t length = read_little_endian(parts.values.first(4));
    if (length > parts.values.size() - 4) fail(page.offset, "a page ends inside its levels");
    set(*levels, parts.values.subspan(4, length));
    parts.values = parts.values.subspan(4 + length);
  }
}

std::span<const uint8_t> PageReader::snappy_elements(const ParquetPage& page, int64_t& offset) {
  const std::span<const uint8_t> packed = blob_.read(page.offset, page.packed, "a page");
  uint64_t length = 0;
  const size_t head = read_snappy_length(packed, length);
  if (head == 0 || length != static_cast<uint64_t>(page.unpacked)) {
    fail(page.offset, "a page packed with Snappy says that it has " + std::to_string(length) +
                          " bytes, and its header says " + std::to_string(page.unpacked));
  }
  offset = page.offset + static_cast<int64_t>(head);
  return packed.subspan(head);
}

std::span<const uint8_t> PageReader::load(const ParquetPage& page,
                                          std::vector<int64_t>* zstd_needed) {
  const int64_t most = page.storage == BlobStorage::snappy
                           ? std::min(column_.largest_page, most_from_snappy(page.packed))
                           : column_.largest_page;
  if (page.unpacked > most) {
    fail(page.offset, "a page of " + std::to_string(page.packed) + " bytes that unpacks to " +
                          std::to_string(page.unpacked) + ", and " + std::to_string(most) +
                          " is the most that is read: write the file with smaller row groups");
  }
  if (buffer_bytes_ < page.unpacked) {
    buffer_ = std::make_unique_for_overwrite<uint8_t[]>(static_cast<size_t>(page.unpacked));
    buffer_bytes_ = page.unpacked;
  }
  const std::span<uint8_t> out(buffer_.get(), static_cast<size_t>(page.unpacked));
  std::string wrong;
  if (page.storage == BlobStorage::snappy) {
    int64_t ignored;
    wrong = unpack_snappy(snappy_elements(page, ignored), out);
  } else {
    const std::span<const uint8_t> packed = blob_.read(page.offset, page.packed, "a page");
    if (page.storage == BlobStorage::zstd) {
      wrong = unpack_zstd(packed, out, zstd_needed);
    } else if (!packed.empty()) {
      std::memcpy(out.data(), packed.data(), packed.size());
    }
  }
  if (!wrong.empty()) fail(page.offset, "a page cannot be unpacked: " + wrong);
  return out;
}

DictionaryIndexes::DictionaryIndexes(const PageReader& reader, const ParquetPage& page,
                                     std::span<const uint8_t> values, size_t dictionary_size)
    : reader_(reader), offset_(page.offset), dictionary_size_(dictionary_size) {
  if (values.empty()) reader.fail(offset_, "a page of places in a dictionary is empty");
  if (values[0] > 32) {
    reader.fail(offset_, "places in a dictionary that take " + std::to_string(values[0]) +
                             " bits each, and 32 are the most");
  }
  hybrid_ = HybridReader(values.subspan(1), values[0]);
}

size_t DictionaryIndexes::next() {
  uint32_t index;
  if (!hybrid_.next(index)) {
    reader_.fail(offset_, "a page of places in a dictionary ends before its last value");
  }
  if (index >= dictionary_size_) {
    reader_.fail(offset_, "place " + std::to_string(index) + " in a dictionary of " +
                              std::to_string(dictionary_size_) + " values");
  }
  return index;
}

}  // namespace stoker
