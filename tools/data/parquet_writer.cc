#include "tools/data/parquet_writer.h"

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/files/printable_name.h"

namespace stoker {
namespace {

// Encodes structs in Thrift's compact protocol, in which Parquet has its headers. The caller gives
// the fields of each struct in the order of their ids, which are at most 15 apart: the protocol's
// long form of a field is not here. A value; one thread at a time.
// Format: apache/thrift, doc/specs/thrift-compact-protocol.md.
class ThriftEncoder {
 public:
  enum class Kind : uint8_t { i32 = 5, i64 = 6, binary = 8, list = 9, structure = 12 };

  // A struct that is no field: the outermost one, or an element of a list.
  void begin_struct() { last_fields_.push_back(0); }
  void end_struct() {
    bytes_ += '\0';
    last_fields_.pop_back();
  }
  void begin_struct(int field) {
    begin_field(field, Kind::structure);
    begin_struct();
  }
  // `count` elements follow. At most 14 of them take one byte, as the protocol says.
  void begin_list(int field, Kind elements, size_t count) {
    begin_field(field, Kind::list);
    const auto kind = static_cast<uint8_t>(elements);
    if (count < 15) {
      put(static_cast<uint8_t>(count << 4 | kind));
    } else {
      put(static_cast<uint8_t>(0xF0 | kind));
      put_varint(count);
    }
  }
  void add_i32(int field, int32_t value) { add_integer(field, Kind::i32, value); }
  void add_i64(int field, int64_t value) { add_integer(field, Kind::i64, value); }
  void add_binary(int field, std::string_view value) {
    begin_field(field, Kind::binary);
    add_element(value);
  }
  void add_element(int32_t value) { put_zigzag(value); }
  void add_element(std::string_view value) {
    put_varint(value.size());
    bytes_ += value;
  }

  const std::string& bytes() const { return bytes_; }

 private:
  void begin_field(int field, Kind kind) {
    const int step = field - last_fields_.back();
    last_fields_.back() = field;
    put(static_cast<uint8_t>(step << 4 | static_cast<int>(kind)));
  }
  void add_integer(int field, Kind kind, int64_t value) {
    begin_field(field, kind);
    put_zigzag(value);
  }
  void put(uint8_t byte) { bytes_ += static_cast<char>(byte); }
  void put_varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) put(static_cast<uint8_t>(value | 0x80));
    put(static_cast<uint8_t>(value));
  }
  void put_zigzag(int64_t value) {
    put_varint(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
  }

  std::string bytes_;
  std::vector<int> last_fields_;  // of the structs that are open
};

constexpr std::string_view kMagic = "PAR1";
constexpr int kMaxRows = 100;
constexpr int64_t kMaxValues = int64_t{64} << 20;
// More than a page has beside its values (a header and definition levels), and more than the footer
// says of a row group and of the file.
constexpr int64_t kPageOverhead = 64, kGroupOverhead = 512, kFooterOverhead = 512;
constexpr int64_t kMaxPage = std::numeric_limits<int32_t>::max();  // as its header counts it

// Numbers of parquet.thrift.
enum PhysicalType : int32_t { kInt64 = 2, kByteArray = 6 };
enum Encoding : int32_t { kPlain = 0, kRle = 3 };
constexpr int32_t kOptional = 1, kUncompressed = 0, kDataPage = 0, kUtf8 = 0;

template <typename Number>
std::string little_endian(Number value) {
  static_assert(std::endian::native == std::endian::little);
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

// Appends a PLAIN value of type BYTE_ARRAY.
void append_bytes(std::string& values, std::string_view value) {
  values += little_endian(static_cast<uint32_t>(value.size()));
  values += value;
}

std::string_view as_text(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Returns the definition levels of a page: one run of `rows` times the same level, because nothing
// is missing. RLE: twice the length as a varint, then the level in one byte.
std::string equal_levels(int rows, int level) {
  std::string run;
  uint32_t header = static_cast<uint32_t>(rows) << 1;
  for (; header >= 0x80; header >>= 7) run += static_cast<char>(header | 0x80);
  run += static_cast<char>(header);
  run += static_cast<char>(level);
  return little_endian(static_cast<uint32_t>(run.size())) + run;
}

std::string page_header(int rows, int64_t bytes) {
  ThriftEncoder page;
  page.begin_struct();
  page.add_i32(1, kDataPage);
  page.add_i32(2, static_cast<int32_t>(bytes));  // not compressed
  page.add_i32(3, static_cast<int32_t>(bytes));  // compressed
  page.begin_struct(5);
  page.add_i32(1, rows);
  page.add_i32(2, kPlain);
  page.add_i32(3, kRle);  // definition levels
  page.add_i32(4, kRle);  // repetition levels: there are none
  page.end_struct();
  page.end_struct();
  return page.bytes();
}

std::string features_json(const std::vector<std::string>& class_names) {
  nlohmann::ordered_json label = {{"dtype", "int64"}, {"_type", "Value"}};
  if (!class_names.empty()) {
    // JSON is UTF-8, and datasets wants names that differ.
    nlohmann::ordered_json names = nlohmann::ordered_json::array();
    for (const std::string& name : class_names) names.push_back(valid_text(name));
    label = {{"names", names}, {"_type", "ClassLabel"}};
  }
  const nlohmann::ordered_json features = {{"image", {{"_type", "Image"}}}, {"label", label}};
  return nlohmann::ordered_json{{"info", {{"features", features}}}}.dump();
}

void add_schema(ThriftEncoder& out) {
  out.begin_list(2, ThriftEncoder::Kind::structure, 5);
  const auto add_group = [&](std::string_view name, bool is_root) {
    out.begin_struct();
    if (!is_root) out.add_i32(3, kOptional);
    out.add_binary(4, name);
    out.add_i32(5, 2);  // children
    out.end_struct();
  };
  const auto add_leaf = [&](std::string_view name, PhysicalType type, bool is_text) {
    out.begin_struct();
    out.add_i32(1, type);
    out.add_i32(3, kOptional);
    out.add_binary(4, name);
    if (is_text) {
      out.add_i32(6, kUtf8);
      out.begin_struct(10);  // the logical type
      out.begin_struct(1);   // STRING
      out.end_struct();
      out.end_struct();
    }
    out.end_struct();
  };
  add_group("schema", true);
  add_group("image", false);
  add_leaf("bytes", kByteArray, false);
  add_leaf("path", kByteArray, true);
  add_leaf("label", kInt64, false);
}

struct ChunkPlace {
  PhysicalType type;
  std::vector<std::string_view> path;
  int64_t offset, bytes;
  int rows;
};

void add_chunk(ThriftEncoder& out, const ChunkPlace& chunk) {
  out.begin_struct();
  out.add_i64(2, 0);  // no metadata outside of the footer
  out.begin_struct(3);
  out.add_i32(1, chunk.type);
  out.begin_list(2, ThriftEncoder::Kind::i32, 2);
  out.add_element(kPlain);
  out.add_element(kRle);
  out.begin_list(3, ThriftEncoder::Kind::binary, chunk.path.size());
  for (const std::string_view name : chunk.path) out.add_element(name);
  out.add_i32(4, kUncompressed);
  out.add_i64(5, chunk.rows);
  out.add_i64(6, chunk.bytes);  // not compressed
  out.add_i64(7, chunk.bytes);  // compressed
  out.add_i64(9, chunk.offset);
  out.end_struct();
  out.end_struct();
}

}  // namespace

ParquetShardWriter::ParquetShardWriter(const std::string& path,
                                       const std::vector<std::string>& class_names)
    : path_(path), features_(features_json(class_names)), file_(path, 0644) {
  write(kMagic);
}

int64_t ParquetShardWriter::buffered() const {
  return static_cast<int64_t>(images_.values.size() + paths_.values.size() + labels_.values.size());
}

int64_t ParquetShardWriter::bytes_with(const ShardSample& sample) const {
  const auto values = static_cast<int64_t>(sample.image.size() + sample.name.size() +
                                           2 * sizeof(uint32_t) + sizeof(int64_t));
  const auto groups = static_cast<int64_t>(rows_of_groups_.size()) + 2;
  return bytes_ + buffered() + values + 6 * kPageOverhead + groups * kGroupOverhead +
         kFooterOverhead + static_cast<int64_t>(features_.size());
}

void ParquetShardWriter::add(const ShardSample& sample) {
  const auto image_bytes = static_cast<int64_t>(sample.image.size());
  if (image_bytes > kMaxPage - kPageOverhead) {
    throw std::runtime_error(fmt::format("cannot write {}: {} has {} bytes, a page has at most {}",
                                         path_, sample.name, image_bytes, kMaxPage));
  }
  if (rows_ > 0 && buffered() + image_bytes > kMaxValues) write_row_group();
  append_bytes(images_.values, as_text(sample.image));
  append_bytes(paths_.values, sample.name);
  labels_.values += little_endian(int64_t{sample.label});
  if (++rows_ == kMaxRows) write_row_group();
}

void ParquetShardWriter::write_row_group() {
  // A level counts the optional things on the way to a value that are there.
  write_page(images_, 2);
  write_page(paths_, 2);
  write_page(labels_, 1);
  rows_of_groups_.push_back(rows_);
  rows_ = 0;
}

void ParquetShardWriter::write_page(Column& column, int definition_level) {
  const std::string levels = equal_levels(rows_, definition_level);
  const auto content = static_cast<int64_t>(levels.size() + column.values.size());
  const int64_t offset = bytes_;
  write(page_header(rows_, content));
  write(levels);
  write(column.values);
  column.pages.push_back({offset, bytes_ - offset});
  column.values.clear();
}

std::string ParquetShardWriter::footer() const {
  ThriftEncoder out;
  out.begin_struct();
  out.add_i32(1, 1);  // the format's version
  add_schema(out);
  out.add_i64(3, std::accumulate(rows_of_groups_.begin(), rows_of_groups_.end(), int64_t{0}));
  out.begin_list(4, ThriftEncoder::Kind::structure, rows_of_groups_.size());
  for (size_t group = 0; group < rows_of_groups_.size(); ++group) {
    const int rows = rows_of_groups_[group];
    const Column::Page image = images_.pages[group], path = paths_.pages[group],
                       label = labels_.pages[group];
    out.begin_struct();
    out.begin_list(1, ThriftEncoder::Kind::structure, 3);
    add_chunk(out, {kByteArray, {"image", "bytes"}, image.offset, image.bytes, rows});
    add_chunk(out, {kByteArray, {"image", "path"}, path.offset, path.bytes, rows});
    add_chunk(out, {kInt64, {"label"}, label.offset, label.bytes, rows});
    out.add_i64(2, image.bytes + path.bytes + label.bytes);
    out.add_i64(3, rows);
    out.end_struct();
  }
  out.begin_list(5, ThriftEncoder::Kind::structure, 1);
  out.begin_struct();
  out.add_binary(1, "huggingface");
  out.add_binary(2, features_);
  out.end_struct();
  out.add_binary(6, "stoker");
  out.end_struct();
  return out.bytes();
}

void ParquetShardWriter::write(std::string_view bytes) {
  file_.write_at(static_cast<uint64_t>(bytes_), bytes);
  bytes_ += static_cast<int64_t>(bytes.size());
}

int64_t ParquetShardWriter::finish() {
  if (rows_ > 0) write_row_group();
  const std::string end = footer();
  write(end);
  write(little_endian(static_cast<uint32_t>(end.size())));
  write(kMagic);
  file_.finish();
  return bytes_;
}

}  // namespace stoker
