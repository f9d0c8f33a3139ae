#include "pipeline/source/format/parquet_footer.h"

#include <array>
#include <string_view>

#include "pipeline/files/printable_name.h"
#include "pipeline/source/format/little_endian.h"
#include "pipeline/source/format/thrift_reader.h"

namespace stoker {
namespace {

constexpr std::string_view kParquetMagic = "PAR1";
constexpr std::string_view kMagicEncrypted = "PARE";
// The length of the footer and the magic number behind it.
constexpr int64_t kTailBytes = 8;
constexpr size_t kDeepestField = 32;

constexpr std::array<const char*, 8> kTypeNames = {
    "BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"};
constexpr std::array<const char*, 22> kConvertedNames = {"UTF8",
                                                         "MAP",
                                                         "MAP_KEY_VALUE",
                                                         "LIST",
                                                         "ENUM",
                                                         "DECIMAL",
                                                         "DATE",
                                                         "TIME_MILLIS",
                                                         "TIME_MICROS",
                                                         "TIMESTAMP_MILLIS",
                                                         "TIMESTAMP_MICROS",
                                                         "UINT_8",
                                                         "UINT_16",
                                                         "UINT_32",
                                                         "UINT_64",
                                                         "INT_8",
                                                         "INT_16",
                                                         "INT_32",
                                                         "INT_64",
                                                         "JSON",
                                                         "BSON",
                                                         "INTERVAL"};
// The members of the union LogicalType; 9 is not used.
constexpr std::array<const char*, 16> kLogicalNames = {
    "",          "STRING", "MAP", "LIST",    "ENUM", "DECIMAL", "DATE", "TIME",
    "TIMESTAMP", "",       "INT", "UNKNOWN", "JSON", "BSON",    "UUID", "FLOAT16"};

// Numbers of ConvertedType and LogicalType that mean something here.
constexpr int64_t kUtf8 = 0, kList = 3, kFirstUnsigned = 11, kLastUnsigned = 14, kLastInteger = 18;
constexpr int64_t kLogicalString = 1, kLogicalList = 3, kLogicalInteger = 10, kLogicalFloat16 = 15;
constexpr int64_t kRequired = 0, kRepeated = 2;

struct SchemaElement {
  ParquetField field;
  std::string name;
  bool has_type = false;
  int64_t repetition = kRequired;
  int64_t children = 0;
};

void read_logical_type(ThriftReader& thrift, ThriftType type, ParquetField& field) {
  thrift.read_struct(type, [&](int64_t id, ThriftType member) {
    field.logical = id;
    if (id != kLogicalInteger) return false;
    thrift.read_struct(member, [&](int64_t part, ThriftType part_type) {
      if (part == 1) {
        field.logical_bits = thrift.integer(part_type);
      } else if (part == 2) {
        field.logical_unsigned = !thrift.boolean(part_type);
      } else {
        return false;
      }
      return true;
    });
    return true;
  });
}

SchemaElement read_element(BlobReader& blob, ThriftReader& thrift, ThriftType type) {
  SchemaElement element;
  const int64_t begin = thrift.offset();
  int64_t number = -1;
  thrift.read_struct(type, [&](int64_t id, ThriftType field) {
    switch (id) {
      case 1:
        number = thrift.natural(field);
        element.has_type = true;
        return true;
      case 3:
        element.repetition = thrift.natural(field);
        return true;
      case 4:
        element.name = thrift.binary(field);
        return true;
      case 5:
        element.children = thrift.natural(field);
        return true;
      case 6:
        element.field.converted = thrift.natural(field);
        return true;
      case 10:
        read_logical_type(thrift, field, element.field);
        return true;
      default:
        return false;
    }
  });
  if (number >= std::ssize(kTypeNames) || element.repetition > kRepeated ||
      (element.has_type && element.children > 0)) {
    blob.fail(begin, "the field " + printable_name(element.name) + " of the schema has type " +
                         std::to_string(number) + ", repetition " +
                         std::to_string(element.repetition) + " and " +
                         std::to_string(element.children) + " fields inside it, which cannot be");
  }
  element.field.type = static_cast<ParquetType>(number);
  return element;
}

// Makes a tree of the schema's list, in which a group says how many of the next are inside it.
class SchemaReader {
 public:
  SchemaReader(BlobReader& blob, std::vector<ParquetField>& fields)
      : blob_(blob), fields_(fields) {}

  void add(int64_t offset, SchemaElement element) {
    if (!has_root_) {
      has_root_ = true;
      open_.push_back({ParquetField(), element.children});
      return;
    }
    while (!open_.empty() && open_.back().left == 0) open_.pop_back();
    if (open_.empty()) blob_.fail(offset, "the schema has more fields than its groups count");
    --open_.back().left;
    const ParquetField& around = open_.back().field;
    ParquetField field = std::move(element.field);
    field.names = around.names;
    field.names.push_back(std::move(element.name));
    field.repeated = around.repeated || element.repetition == kRepeated;
    field.max_repetition = around.max_repetition + (element.repetition == kRepeated ? 1 : 0);
    field.max_definition = around.max_definition + (element.repetition != kRequired ? 1 : 0);
    if (element.has_type) field.column = columns_++;
    if (field.names.size() > kDeepestField) {
      blob_.fail(offset, "the schema has fields inside fields, more than " +
                             std::to_string(kDeepestField) + " levels");
    }
    fields_.push_back(field);
    if (element.children > 0) open_.push_back({std::move(field), element.children});
  }
  int64_t columns() const { return columns_; }

 private:
  struct OpenGroup {
    ParquetField field;
    int64_t left;  // fields of it that are still to come
  };
  BlobReader& blob_;
  std::vector<ParquetField>& fields_;
  std::vector<OpenGroup> open_;
  bool has_root_ = false;
  int64_t columns_ = 0;
};

void read_column_metadata(ThriftReader& thrift, ThriftType type, ParquetChunk& chunk) {
  int64_t dictionary = 0;
  thrift.read_struct(type, [&](int64_t id, ThriftType field) {
    switch (id) {
      case 4:
        chunk.codec = thrift.natural(field);
        return true;
      case 5:
        chunk.values = thrift.natural(field);
        return true;
      case 7:
        chunk.bytes = thrift.natural(field);
        return true;
      case 9:
        chunk.begin = thrift.natural(field);
        return true;
      case 11:
        dictionary = thrift.natural(field);
        return true;
      default:
        return false;
    }
  });
  // Some writers say 0 where there is no dictionary.
  if (dictionary > 0 && dictionary < chunk.begin) chunk.begin = dictionary;
}

ParquetChunk read_chunk(ThriftReader& thrift, ThriftType type) {
  ParquetChunk chunk;
  bool has_metadata = false;
  thrift.read_struct(type, [&](int64_t id, ThriftType field) {
    switch (id) {
      case 1:
        chunk.elsewhere = !thrift.binary(field).empty();
        return true;
      case 3:
        read_column_metadata(thrift, field, chunk);
        has_metadata = true;
        return true;
      case 8:
        chunk.encrypted = true;
        return false;
      default:
        return false;
    }
  });
  // Without them nothing says where the pages are; only encrypted columns may lack them.
  chunk.encrypted = chunk.encrypted || !has_metadata;
  return chunk;
}

ParquetRowGroup read_row_group(ThriftReader& thrift, ThriftType type) {
  ParquetRowGroup group;
  thrift.read_struct(type, [&](int64_t id, ThriftType field) {
    switch (id) {
      case 1:
        thrift.read_list(field, [&](ThriftType element) {
          group.columns.push_back(read_chunk(thrift, element));
        });
        return true;
      case 3:
        group.rows = thrift.natural(field);
        return true;
      default:
        return false;
    }
  });
  return group;
}

void read_key_value(ThriftReader& thrift, ThriftType type, ParquetFooter& footer) {
  std::string key;
  thrift.read_struct(type, [&](int64_t id, ThriftType field) {
    if (id == 1) {
      key = thrift.binary(field);
      return true;
    }
    if (id != 2 || key != "huggingface") return false;
    footer.huggingface = thrift.binary(field);
    return true;
  });
}

// Returns where the footer begins, and checks both ends of the file.
int64_t find_footer(BlobReader& blob) {
  constexpr int64_t kMagicBytes = std::ssize(kParquetMagic);
  const auto text_at = [&blob](int64_t offset, int64_t length) {
    const std::span<const uint8_t> bytes = blob.read(offset, length, "a part of the footer");
    return std::string(bytes.begin(), bytes.end());
  };
  constexpr std::string_view kPointer = "version https://git-lfs";
  if (blob.size() >= std::ssize(kPointer) && text_at(0, std::ssize(kPointer)) == kPointer) {
    blob.fail(0, "this is a pointer of Git LFS, not the file itself (git lfs pull gets it)");
  }
  if (blob.size() < kMagicBytes + kTailBytes) {
    blob.fail(0, "no Parquet file is as short as " + std::to_string(blob.size()) + " bytes");
  }
  const std::string head = text_at(0, kMagicBytes);
  const int64_t tail_at = blob.size() - kTailBytes;
  const std::string tail = text_at(tail_at, kTailBytes);
  const std::string_view end = std::string_view(tail).substr(4);
  if (head == kMagicEncrypted || end == kMagicEncrypted) {
    blob.fail(tail_at + 4, "the footer is encrypted (PARE), and encrypted files are not read");
  }
  if (head != kParquetMagic) {
    blob.fail(
        0, "this is no Parquet file: it begins with " + printable_name(head) + " instead of PAR1");
  }
  if (end != kParquetMagic) {
    blob.fail(tail_at + 4, "the file ends with " + printable_name(std::string(end)) +
                               " instead of PAR1: a part of it is missing");
  }
  const auto length =
      static_cast<int64_t>(read_little_endian({reinterpret_cast<const uint8_t*>(tail.data()), 4}));
  if (length > tail_at - kMagicBytes) {
    blob.fail(tail_at, "the footer has " + std::to_string(length) + " bytes, and only " +
                           std::to_string(tail_at - kMagicBytes) + " are before this");
  }
  return tail_at - length;
}

void check_row_groups(const BlobReader& blob, const ParquetFooter& footer, int64_t columns) {
  int64_t rows_left = blob.size() * kMaxRowsPerByte;
  for (size_t i = 0; i < footer.row_groups.size(); ++i) {
    const ParquetRowGroup& group = footer.row_groups[i];
    if (std::ssize(group.columns) != columns) {
      blob.fail(footer.begin, "row group " + std::to_string(i) + " has " +
                                  std::to_string(group.columns.size()) +
                                  " columns, and the schema has " + std::to_string(columns));
    }
    if (group.rows > rows_left) {
      blob.fail(footer.begin, "the footer counts more rows than a file of " +
                                  std::to_string(blob.size()) +
                                  " bytes can hold: " + std::to_string(group.rows) +
                                  " in row group " + std::to_string(i));
    }
    rows_left -= group.rows;
  }
}

}  // namespace

std::string ParquetField::path() const {
  std::string path;
  for (const std::string& name : names) path += (path.empty() ? "" : ".") + name;
  return path;
}

std::string ParquetField::describe() const {
  if (repeated) return "a list";
  if (type == ParquetType::group) {
    if (is_list()) return "a list";
    // Maps, as lists, are groups around a repeated field.
    return converted == 1 || converted == 2 || logical == 2 ? "a map" : "a struct";
  }
  std::string text = kTypeNames[static_cast<size_t>(type)];
  if (converted >= 0 && converted < std::ssize(kConvertedNames)) {
    text += std::string(" (") + kConvertedNames[static_cast<size_t>(converted)] + ")";
  } else if (logical > 0 && logical < std::ssize(kLogicalNames)) {
    text += std::string(" (") + kLogicalNames[static_cast<size_t>(logical)] + ")";
  }
  return text;
}

bool ParquetField::is_plain_integer() const {
  if (type != ParquetType::int32 && type != ParquetType::int64) return false;
  const bool converted_fits =
      converted < 0 || (converted >= kFirstUnsigned && converted <= kLastInteger);
  return converted_fits && (logical == 0 || logical == kLogicalInteger);
}

bool ParquetField::is_unsigned() const {
  return logical_unsigned || (converted >= kFirstUnsigned && converted <= kLastUnsigned);
}

bool ParquetField::is_text() const {
  return type == ParquetType::byte_array && (converted == kUtf8 || logical == kLogicalString);
}

bool ParquetField::is_uint8() const {
  return converted == kFirstUnsigned || (logical_unsigned && logical_bits == 8);
}

bool ParquetField::is_float16() const {
  return type == ParquetType::fixed_len_byte_array && logical == kLogicalFloat16;
}

bool ParquetField::is_list() const {
  return type == ParquetType::group && (converted == kList || logical == kLogicalList);
}

ParquetFooter read_parquet_footer(BlobReader& blob) {
  ParquetFooter footer;
  footer.begin = find_footer(blob);
  ThriftReader thrift(blob, footer.begin, blob.size() - kTailBytes, "the footer");
  SchemaReader schema(blob, footer.fields);
  thrift.read_struct(ThriftType::structure, [&](int64_t id, ThriftType type) {
    switch (id) {
      case 2:
        thrift.read_list(type, [&](ThriftType element) {
          const int64_t offset = thrift.offset();
          schema.add(offset, read_element(blob, thrift, element));
        });
        return true;
      case 4:
        thrift.read_list(type, [&](ThriftType element) {
          footer.row_groups.push_back(read_row_group(thrift, element));
        });
        return true;
      case 5:
        thrift.read_list(type,
                         [&](ThriftType element) { read_key_value(thrift, element, footer); });
        return true;
      default:
        return false;
    }
  });
  check_row_groups(blob, footer, schema.columns());
  return footer;
}

}  // namespace stoker
