#include "tests/support/parquet_maker.h"

#include <algorithm>
#include <map>

#include "tests/support/snappy_maker.h"

namespace stoker {
namespace {

std::string little_endian(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

std::string varint(uint64_t value) {
  std::string text;
  for (; value >= 0x80; value >>= 7) text += static_cast<char>(value | 0x80);
  return text + static_cast<char>(value);
}

std::string zigzag(int64_t value) {
  return varint(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
}

// A struct of Thrift's compact protocol; its fields ascend.
class MadeStruct {
 public:
  MadeStruct& i32(int id, int64_t value) { return add(id, 5, zigzag(value)); }
  MadeStruct& i64(int id, int64_t value) { return add(id, 6, zigzag(value)); }
  MadeStruct& boolean(int id, bool value) { return add(id, value ? 1 : 2, ""); }
  MadeStruct& text(int id, std::string_view value) {
    return add(id, 8, varint(value.size()) + std::string(value));
  }
  MadeStruct& inner(int id, const MadeStruct& value) { return add(id, 12, value.bytes()); }
  MadeStruct& structs(int id, const std::vector<MadeStruct>& values) {
    std::string list = list_head(values.size(), 12);
    for (const MadeStruct& value : values) list += value.bytes();
    return add(id, 9, list);
  }
  // Fields that nobody knows, of every type.
  MadeStruct& unknown(int id) {
    add(id, 3, "\x07");
    add(id + 1, 4, zigzag(-300));
    add(id + 2, 7, "12345678");
    add(id + 3, 9, list_head(20, 1) + std::string(20, '\1'));
    add(id + 4, 10, list_head(2, 8) + "\1a\2bc");
    add(id + 5, 11, varint(2) + '\x85' + "\1a" + zigzag(5) + "\1b" + zigzag(6));
    add(id + 6, 11, varint(0));
    add(id + 7, 13, "0123456789abcdef");
    add(id + 8, 12, MadeStruct().i64(3, 4).inner(5, MadeStruct()).bytes());
    // Far from the last one, so that its number is written out.
    return add(id + 108, 1, "");
  }
  std::string bytes() const { return bytes_ + '\0'; }

 private:
  static std::string list_head(size_t count, int type) {
    if (count < 15)
      return std::string(1, static_cast<char>(count << 4 | static_cast<size_t>(type)));
    return static_cast<char>(0xf0 | type) + varint(count);
  }
  MadeStruct& add(int id, int type, const std::string& value) {
    const int delta = id - last_;
    if (delta >= 1 && delta <= 15) {
      bytes_ += static_cast<char>(delta << 4 | type);
    } else {
      bytes_ += static_cast<char>(type) + zigzag(id);
    }
    bytes_ += value;
    last_ = id;
    return *this;
  }

  std::string bytes_;
  int last_ = 0;
};

int bits_for(uint64_t most) {
  int bits = 0;
  while (most >> bits != 0) ++bits;
  return bits;
}

// Integers as runs and as groups of eight, in turn.
std::string pack_hybrid(const std::vector<uint64_t>& values, int bits) {
  std::string text;
  for (size_t at = 0; at < values.size();) {
    size_t run = 1;
    while (at + run < values.size() && values[at + run] == values[at]) ++run;
    if (run >= 4) {
      text += varint(run << 1) + little_endian(values[at], (bits + 7) / 8);
      at += run;
      continue;
    }
    std::vector<bool> set(static_cast<size_t>(8 * bits));
    for (size_t i = 0; i < 8 && at + i < values.size(); ++i) {
      for (int bit = 0; bit < bits; ++bit) {
        set[i * static_cast<size_t>(bits) + static_cast<size_t>(bit)] =
            (values[at + i] >> bit & 1) != 0;
      }
    }
    text += varint(1 << 1 | 1);
    for (size_t byte = 0; byte < set.size() / 8; ++byte) {
      int value = 0;
      for (size_t bit = 0; bit < 8; ++bit) value |= (set[8 * byte + bit] ? 1 : 0) << bit;
      text += static_cast<char>(value);
    }
    at += std::min<size_t>(8, values.size() - at);
  }
  return text;
}

std::string packed(std::string_view text, int codec) {
  if (codec == kMadeZstd) return pack_zstd(text);
  if (codec != kMadeSnappy) return std::string(text);
  SnappyMaker maker;
  maker.pack(text, 65536);
  return maker.stream();
}

// The rows [begin, end) of a column, as pages and as the footer describes them.
class ChunkMaker {
 public:
  ChunkMaker(const MadeColumn& column, int page_version, std::string& file)
      : column_(column), page_version_(page_version), file_(file) {}

  MadeStruct write(size_t begin, size_t end, size_t rows_per_page) {
    const auto chunk_at = static_cast<int64_t>(file_.size());
    if (column_.dictionary) write_dictionary(begin, end);
    const auto data_at = static_cast<int64_t>(file_.size());
    const std::vector<Entry> all = entries_of(begin, end);
    for (size_t at = begin; at < end; at += rows_per_page) {
      const size_t page_end = std::min(end, at + rows_per_page);
      if (column_.values_per_page > 0) continue;
      write_data(entries_of(at, page_end));
      if (column_.repeats_last_page && page_end == end) write_data(entries_of(at, end));
    }
    for (size_t at = 0; column_.values_per_page > 0 && at < all.size();) {
      const size_t next = std::min(all.size(), at + column_.values_per_page);
      write_data(
          {all.begin() + static_cast<ptrdiff_t>(at), all.begin() + static_cast<ptrdiff_t>(next)});
      at = next;
    }
    MadeStruct metadata;
    metadata.i32(1, column_.type).i32(4, column_.codec);
    metadata.i64(5, static_cast<int64_t>(all.size()) + column_.more_in_footer);
    metadata.i64(7, static_cast<int64_t>(file_.size()) - chunk_at + column_.more_bytes);
    metadata.i64(9, data_at);
    // Without one, some writers say 0.
    metadata.i64(11, column_.dictionary ? chunk_at : 0).unknown(200);
    MadeStruct chunk;
    if (!column_.file.empty()) chunk.text(1, column_.file);
    chunk.i64(2, 0).inner(3, metadata);
    if (column_.encrypted) chunk.inner(8, MadeStruct().inner(1, MadeStruct()));
    return chunk;
  }

 private:
  // A value with its levels.
  struct Entry {
    uint64_t repetition = 0, definition = 0;
    std::optional<std::string> value;
  };

  int levels() const {
    return static_cast<int>(column_.optional ? column_.names.size() : column_.repeated_at.size());
  }

  // Those of the rows [begin, end).
  std::vector<Entry> entries_of(size_t begin, size_t end) const {
    const auto most = static_cast<uint64_t>(levels());
    std::vector<Entry> entries;
    for (size_t row = begin; row < end; ++row) {
      if (column_.repeated_at.empty()) {
        const std::optional<std::string>& value = column_.values[row];
        entries.push_back({0, value ? most : 0, value});
        continue;
      }
      const auto& list = column_.lists[row];
      if (list.empty()) entries.push_back({0, column_.empty_definition, {}});
      for (size_t i = 0; i < list.size(); ++i) {
        const uint64_t goes_on = i % column_.inner == 0 ? 1 : column_.repeated_at.size();
        entries.push_back({i == 0 ? 0 : goes_on, list[i] ? most : most - 1, list[i]});
      }
    }
    if (!entries.empty() && end == column_.lists.size()) {
      entries.back().repetition += static_cast<uint64_t>(column_.more_repetition);
    }
    return entries;
  }

  void write_page(int type, const MadeStruct& inner, const std::string& before,
                  const std::string& content) {
    const bool is_packed = column_.packed || type != 3;
    const std::string bytes = is_packed ? packed(content, column_.codec) : content;
    MadeStruct header;
    header.i32(1, type);
    header.i32(2, static_cast<int64_t>(before.size() + content.size()) + column_.more_unpacked);
    header.i32(3, static_cast<int64_t>(before.size() + bytes.size()));
    header.inner(type == 0 ? 5 : type == 2 ? 7 : 8, inner).unknown(300);
    file_ += header.bytes() + before + bytes;
  }

  void write_dictionary(size_t begin, size_t end) {
    std::string content;
    for (const auto& [repetition, definition, value] : entries_of(begin, end)) {
      if (!value || !places_.try_emplace(*value, places_.size()).second) continue;
      content += *value;
    }
    if (column_.leaves_out_dictionary) return;
    write_page(2, MadeStruct().i32(1, static_cast<int64_t>(places_.size())).i32(2, 0), "", content);
  }

  void write_data(const std::vector<Entry>& entries) {
    std::vector<uint64_t> defined, repeated, indexes, bits_of_booleans;
    std::string values;
    for (const auto& [repetition, definition, value] : entries) {
      repeated.push_back(repetition);
      defined.push_back(definition);
      if (!value) continue;
      if (column_.dictionary) {
        indexes.push_back(places_.at(*value) + static_cast<uint64_t>(column_.more_in_index));
      } else if (column_.type == kMadeBoolean) {
        bits_of_booleans.push_back((*value)[0] != 0 ? 1 : 0);
      } else {
        values += *value;
      }
    }
    if (column_.type == kMadeBoolean) values = pack_booleans(bits_of_booleans);
    if (column_.dictionary) {
      const int bits = bits_for(places_.size() - 1);
      values = static_cast<char>(bits) + pack_hybrid(indexes, bits);
    }
    std::string definition;
    if (levels() > 0) {
      definition = pack_hybrid(defined, bits_for(static_cast<uint64_t>(levels())));
    }
    std::string repetition;
    if (!column_.repeated_at.empty()) {
      repetition = pack_hybrid(repeated, bits_for(column_.repeated_at.size()));
    }
    int encoding = column_.dictionary ? 8 : 0;
    if (column_.encoding >= 0) encoding = column_.encoding;
    const int64_t count = static_cast<int64_t>(entries.size()) + column_.more_in_page;
    if (page_version_ == 2) {
      MadeStruct inner;
      inner.i32(1, count).i32(2, 0).i32(3, count).i32(4, encoding);
      inner.i32(5, static_cast<int64_t>(definition.size()) + column_.more_level_bytes);
      inner.i32(6, static_cast<int64_t>(repetition.size()));
      if (column_.codec == kMadePlain || !column_.packed) inner.boolean(7, false);
      write_page(3, inner, repetition + definition, values);
      return;
    }
    if (levels() > 0) {
      const int64_t length = static_cast<int64_t>(definition.size()) + column_.more_level_bytes;
      definition = little_endian(static_cast<uint64_t>(length), 4) + definition;
    }
    MadeStruct inner;
    inner.i32(1, count).i32(2, encoding).i32(3, column_.level_encoding);
    inner.i32(4, column_.repetition_encoding);
    if (!repetition.empty()) repetition = little_endian(repetition.size(), 4) + repetition;
    write_page(0, inner, "", repetition + definition + values);
  }

  // Eight in a byte, or as runs behind their length.
  std::string pack_booleans(const std::vector<uint64_t>& bits) const {
    constexpr int kRuns = 3;
    if (column_.encoding == kRuns) {
      const std::string runs = pack_hybrid(bits, 1);
      return little_endian(runs.size(), 4) + runs;
    }
    std::string bytes((bits.size() + 7) / 8, '\0');
    for (size_t i = 0; i < bits.size(); ++i) {
      bytes[i / 8] = static_cast<char>(bytes[i / 8] | static_cast<int>(bits[i] << (i % 8)));
    }
    return bytes;
  }

  const MadeColumn& column_;
  const int page_version_;
  std::string& file_;
  std::map<std::string, uint64_t> places_;
};

bool is_repeated(const MadeColumn& column, size_t depth) {
  return std::count(column.repeated_at.begin(), column.repeated_at.end(), depth) > 0;
}

int repetition_of(const MadeColumn& column, size_t depth) {
  return is_repeated(column, depth) ? 2 : column.optional ? 1 : 0;
}

MadeStruct leaf_of_schema(const MadeColumn& column) {
  MadeStruct leaf;
  const size_t depth = column.names.size() - 1;
  leaf.i32(1, column.type).i32(3, column.repeated ? 2 : repetition_of(column, depth));
  leaf.text(4, column.names.back());
  if (column.converted >= 0) leaf.i32(6, column.converted);
  if (column.logical == 10) {
    const MadeStruct integer = MadeStruct().i32(1, 32).boolean(2, !column.is_unsigned);
    leaf.inner(10, MadeStruct().inner(10, integer));
  } else if (column.logical > 0) {
    leaf.inner(10, MadeStruct().inner(column.logical, MadeStruct()));
  }
  return leaf;
}

// Adds the fields of columns [begin, end) whose first `depth` names are the same. Returns how many
// fields are at this depth.
int64_t add_to_schema(const std::vector<MadeColumn>& columns, size_t begin, size_t end,
                      size_t depth, std::vector<MadeStruct>& schema) {
  int64_t fields = 0;
  for (size_t at = begin; at < end; ++fields) {
    if (columns[at].names.size() == depth + 1) {
      schema.push_back(leaf_of_schema(columns[at++]));
      continue;
    }
    const std::string& name = columns[at].names[depth];
    size_t next = at;
    while (next < end && columns[next].names[depth] == name) ++next;
    const size_t place = schema.size();
    schema.emplace_back();
    const int64_t inside = add_to_schema(columns, at, next, depth + 1, schema);
    schema[place].i32(3, repetition_of(columns[at], depth)).text(4, name).i32(5, inside);
    constexpr int kList = 3;
    if (is_repeated(columns[at], depth + 1)) schema[place].i32(6, kList);
    at = next;
  }
  return fields;
}

}  // namespace

std::string plain_int32(int64_t value) { return little_endian(static_cast<uint64_t>(value), 4); }
std::string plain_int64(uint64_t value) { return little_endian(value, 8); }
std::string plain_bytes(std::string_view bytes) {
  return little_endian(bytes.size(), 4) + std::string(bytes);
}

// RFC 8878: one segment, a content size of eight bytes, no checksum, raw blocks.
std::string pack_zstd(std::string_view text) {
  std::string frame = little_endian(0xFD2FB528, 4) + '\xe0' + little_endian(text.size(), 8);
  size_t at = 0;
  do {
    const std::string_view block = text.substr(at, size_t{128} << 10);
    at += block.size();
    const bool is_last = at == text.size();
    frame += little_endian(block.size() << 3 | (is_last ? 1 : 0), 3);
    frame += block;
  } while (at < text.size());
  return frame;
}

std::string parquet_around(std::string_view footer) {
  return "PAR1" + std::string(footer) + little_endian(footer.size(), 4) + "PAR1";
}

std::string MadeParquet::bytes() const {
  std::string file = "PAR1";
  std::vector<MadeStruct> schema(1), groups;
  const int64_t fields = add_to_schema(columns, 0, columns.size(), 0, schema);
  schema[0].text(4, "schema").i32(5, fields);
  const size_t rows = columns.empty() ? 0 : columns[0].values.size();
  for (size_t begin = 0; begin < rows; begin += rows_per_group) {
    const size_t end = std::min(rows, begin + rows_per_group);
    std::vector<MadeStruct> chunks;
    for (const MadeColumn& column : columns) {
      chunks.push_back(ChunkMaker(column, page_version, file).write(begin, end, rows_per_page));
    }
    const int64_t count = static_cast<int64_t>(end - begin) + more_rows;
    groups.push_back(MadeStruct().structs(1, chunks).i64(2, 0).i64(3, count));
  }
  for (int i = 0; i < more_groups; ++i) groups.push_back(groups.back());
  std::vector<MadeStruct> pairs;
  for (const auto& [key, value] : metadata)
    pairs.push_back(MadeStruct().text(1, key).text(2, value));
  MadeStruct footer;
  footer.i32(1, 2).structs(2, schema).i64(3, static_cast<int64_t>(rows)).structs(4, groups);
  footer.structs(5, pairs).text(6, "a test").unknown(40);
  return file + parquet_around(footer.bytes()).substr(4);
}

}  // namespace stoker
