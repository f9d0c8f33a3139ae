#include "pipeline/source/format/mds.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string_view>

#include "pipeline/files/printable_name.h"
#include "pipeline/source/format/little_endian.h"
#include "pipeline/source/format/mds_target.h"
#include "pipeline/source/format/object_entry.h"
#include "pipeline/source/format/text_value.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using Bytes = std::span<const uint8_t>;
using Json = nlohmann::json;

// ---- Columns

// The kinds of a label's value.
enum class ValueKind : uint8_t { signed_bytes, unsigned_bytes, digits, text };

struct LabelEncoding {
  const char* name;
  ValueKind kind;
  int64_t size;  // 0: any
};

constexpr LabelEncoding kLabelEncodings[] = {{"int", ValueKind::signed_bytes, 8},
                                             {"int8", ValueKind::signed_bytes, 1},
                                             {"int16", ValueKind::signed_bytes, 2},
                                             {"int32", ValueKind::signed_bytes, 4},
                                             {"int64", ValueKind::signed_bytes, 8},
                                             {"uint8", ValueKind::unsigned_bytes, 1},
                                             {"uint16", ValueKind::unsigned_bytes, 2},
                                             {"uint32", ValueKind::unsigned_bytes, 4},
                                             {"uint64", ValueKind::unsigned_bytes, 8},
                                             {"str_int", ValueKind::digits, 0},
                                             {"str", ValueKind::text, 0}};

const LabelEncoding* find_label_encoding(const std::string& name) {
  const auto* const found = std::ranges::find(kLabelEncodings, name, &LabelEncoding::name);
  return found == std::end(kLabelEncodings) ? nullptr : found;
}

bool is_label_encoding(const std::string& name) { return find_label_encoding(name) != nullptr; }

bool is_image_encoding(const std::string& name) {
  return name == "jpeg" || name == "png" || name == "bytes";
}

bool is_list_encoding(const std::string& name) {
  return is_target_encoding(name) || is_array_encoding(name);
}

bool is_json_encoding(const std::string& name) { return name == "json" || name == "str"; }

std::string list_mds_columns(const std::vector<MdsColumn>& columns) {
  constexpr size_t kMax = 12;
  std::string text;
  for (size_t i = 0; i < std::min(columns.size(), kMax); ++i) {
    text += (i == 0 ? "" : ", ") + describe(columns[i]);
  }
  if (columns.size() > kMax) text += " and " + std::to_string(columns.size() - kMax) + " more";
  return text;
}

// Which columns a field can be: those of these names, with an encoding that `fits`.
struct ColumnRule {
  const char* what;
  std::span<const char* const> usual;
  bool (*fits)(const std::string& encoding);
  const char* encodings;  // for an error
};

constexpr std::array kMdsImageNames = {"image", "jpg", "jpeg", "png", "img", "x"};
constexpr std::array kMdsLabelNames = {"label", "labels", "class", "target", "y"};
constexpr ColumnRule kImageRule = {"image", kMdsImageNames, is_image_encoding,
                                   "jpeg, png or bytes"};
constexpr ColumnRule kTargetRule = {
    "target", {}, is_target_encoding, "a number's, str_int, str_float or ndarray:DTYPE:SHAPE"};
constexpr ColumnRule kTextRule = {
    "target", {}, [](const std::string& encoding) { return encoding == "str"; }, "str"};
constexpr ColumnRule kListRule = {
    "target", {}, is_list_encoding, "ndarray, a number's, str_int or str_float"};
constexpr ColumnRule kJsonRule = {"objects", {}, is_json_encoding, "json or str"};
constexpr ColumnRule kArrayRule = {"objects", {}, is_array_encoding, "ndarray"};
constexpr ColumnRule kLabelRule = {"label", kMdsLabelNames, is_label_encoding,
                                   "int, int8 to int64, uint8 to uint64, str_int or str"};

struct MdsHeader {
  std::vector<uint32_t> offsets;  // one more than there are samples
  int64_t columns_at = 0;         // in the blob
  std::vector<MdsColumn> columns;
};

[[noreturn]] void fail_column(const BlobReader& blob, const MdsHeader& header,
                              const ColumnRule& rule, const std::string& wanted) {
  std::string names = quoted_name(wanted);
  if (wanted.empty()) {
    names = rule.usual.front();
    for (size_t i = 1; i < rule.usual.size(); ++i) names += std::string(", ") + rule.usual[i];
    names = "of the usual names (" + names + ")";
  }
  blob.fail(header.columns_at, "no column " + names + " for the " + rule.what +
                                   "; the columns are " + list_mds_columns(header.columns));
}

size_t choose_column(const BlobReader& blob, const MdsHeader& header, const ColumnRule& rule,
                     const std::string& wanted) {
  const std::vector<MdsColumn>& columns = header.columns;
  std::vector<std::string> names(rule.usual.begin(), rule.usual.end());
  if (!wanted.empty()) names = {wanted};
  const MdsColumn* unfit = nullptr;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(columns, name, &MdsColumn::name);
    if (found == columns.end()) continue;
    if (rule.fits(found->encoding)) return static_cast<size_t>(found - columns.begin());
    if (unfit == nullptr) unfit = &*found;
  }
  if (unfit == nullptr) fail_column(blob, header, rule, wanted);
  blob.fail(header.columns_at, "column " + describe(*unfit) + " cannot be the " + rule.what +
                                   ": its encoding is not " + rule.encodings);
}

// ---- The header of a shard

// A shard that streaming compressed has the algorithm's name at its end. Of the formats, only
// Zstandard's first bytes (RFC 8878) can be no number of samples, because it is too large.
void refuse_compressed(BlobReader& blob) {
  const bool named = fs::path(blob.path()).stem().extension() == ".mds";
  const uint32_t zstd = 0xFD2FB528;
  const bool marked = blob.size() >= 4 && read_little_endian(blob.read(0, 4, "a number")) == zstd;
  if (named || marked) {
    blob.fail(0, "the shard is compressed; decompress it, or write it without compression");
  }
}

void read_offsets(BlobReader& blob, MdsHeader& header) {
  const auto samples =
      static_cast<int64_t>(read_little_endian(blob.read(0, 4, "the number of samples")));
  if (samples == 0) blob.fail(0, "the shard has no samples");
  if (samples + 1 > (blob.size() - 4) / 4) {
    blob.fail(0, std::to_string(samples) + " samples do not fit a file of " +
                     std::to_string(blob.size()) +
                     " bytes; it is damaged, incomplete or no MDS shard");
  }
  header.columns_at = 4 + 4 * (samples + 1);
  const Bytes bytes = blob.read(4, 4 * (samples + 1), "the offsets of samples");
  header.offsets.reserve(static_cast<size_t>(samples + 1));
  int64_t last = header.columns_at;
  for (int64_t i = 0; i <= samples; ++i) {
    const auto offset =
        static_cast<int64_t>(read_little_endian(bytes.subspan(static_cast<size_t>(4 * i), 4)));
    if (offset < last) {
      blob.fail(4 + 4 * i, "offset " + std::to_string(offset) + " of sample " + std::to_string(i) +
                               " is smaller than " + std::to_string(last) +
                               ", where what is before it ends");
    }
    if (offset > blob.size()) {
      blob.fail(4 + 4 * i, "offset " + std::to_string(offset) + " of sample " + std::to_string(i) +
                               " lies behind the file's end at byte " +
                               std::to_string(blob.size()) + "; it is damaged or incomplete");
    }
    header.offsets.push_back(static_cast<uint32_t>(offset));
    last = offset;
  }
  if (last != blob.size()) {
    blob.fail(last,
              "the samples end here, and the file has " + std::to_string(blob.size()) + " bytes");
  }
}

// The functions parse_...() below throw std::runtime_error with what is wrong.

const Json& parse_member(const Json& object, const char* name) {
  const auto found = object.find(name);  // what is no object has no members
  if (found == object.end()) throw std::runtime_error(std::string("there is no \"") + name + '"');
  return *found;
}

const Json& parse_list(const Json& object, const char* name) {
  const Json& list = parse_member(object, name);
  if (!list.is_array()) throw std::runtime_error('"' + std::string(name) + "\" is no list");
  return list;
}

std::string parse_text(const Json& json, const std::string& what) {
  if (!json.is_string()) throw std::runtime_error(what + " is no text");
  return json;
}

int64_t parse_count(const Json& json, const std::string& what) {
  if (!json.is_number_unsigned() || json.get<uint64_t>() > INT64_MAX) {
    throw std::runtime_error(what + " is no number of bytes");
  }
  return json;
}

std::vector<MdsColumn> parse_columns(const Json& settings) {
  const Json& names = parse_list(settings, "column_names");
  const Json& encodings = parse_list(settings, "column_encodings");
  const Json& sizes = parse_list(settings, "column_sizes");
  if (names.empty()) throw std::runtime_error("there are no columns");
  if (encodings.size() != names.size() || sizes.size() != names.size()) {
    throw std::runtime_error("there are " + std::to_string(names.size()) + " names, " +
                             std::to_string(encodings.size()) + " encodings and " +
                             std::to_string(sizes.size()) + " sizes of columns");
  }
  std::vector<MdsColumn> columns;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string which = " of column " + std::to_string(i);
    MdsColumn column{parse_text(names[i], "the name" + which),
                     parse_text(encodings[i], "the encoding" + which), std::nullopt};
    if (!sizes[i].is_null()) {
      column.size = parse_count(sizes[i], "the size" + which);
      // Streaming's reader takes 0 for "each sample says", and its writer never writes it.
      if (*column.size == 0 || *column.size > UINT32_MAX) {
        throw std::runtime_error("the size" + which + " is " + std::to_string(*column.size));
      }
    }
    columns.push_back(std::move(column));
  }
  return columns;
}

void read_columns(BlobReader& blob, MdsHeader& header) {
  constexpr int64_t kMaxBytes = 1 << 20;
  const int64_t length = header.offsets.front() - header.columns_at;
  if (length > kMaxBytes) {
    blob.fail(header.columns_at, "the writer's settings have " + std::to_string(length) +
                                     " bytes, more than 1 MiB; the file is damaged");
  }
  const Bytes text = blob.read(header.columns_at, length, "the writer's settings");
  const Json json = Json::parse(text.begin(), text.end(), nullptr, false);
  if (json.is_discarded()) {
    blob.fail(header.columns_at, "the writer's settings (" + std::to_string(length) +
                                     " bytes of JSON) cannot be read; the file is damaged");
  }
  try {
    header.columns = parse_columns(json);
  } catch (const std::runtime_error& error) {
    blob.fail(header.columns_at, std::string("the writer's settings are wrong: ") + error.what());
  }
}

// ---- Samples

// Where the values of a shard's samples are.
class SampleReader {
 public:
  SampleReader(BlobReader& blob, const MdsHeader& header)
      : blob_(blob), header_(header), places_(header.columns.size()) {
    for (const MdsColumn& column : header.columns) head_bytes_ += column.size ? 0 : 4;
  }

  // Returns a place for each column, valid until the next call.
  const std::vector<MdsRange>& read(size_t sample) {
    const int64_t begin = header_.offsets[sample], end = header_.offsets[sample + 1];
    if (end - begin < head_bytes_) fail(sample, "the sizes of its values", head_bytes_);
    const Bytes head = blob_.read(begin, head_bytes_, "the sizes of values");
    // A sum of 64 bits cannot overflow: a size has 32, and there are fewer columns than that.
    int64_t at = begin + head_bytes_;
    size_t in_head = 0;
    for (size_t i = 0; i < places_.size(); ++i) {
      const std::optional<int64_t> fixed = header_.columns[i].size;
      int64_t length = fixed.value_or(0);
      if (!fixed) {
        length = static_cast<int64_t>(read_little_endian(head.subspan(in_head, 4)));
        in_head += 4;
      }
      places_[i] = {at, length};
      at += length;
    }
    if (at != end) fail(sample, "its values and their sizes", at - begin);
    return places_;
  }

 private:
  [[noreturn]] void fail(size_t sample, const std::string& what, int64_t bytes) const {
    const int64_t begin = header_.offsets[sample], end = header_.offsets[sample + 1];
    blob_.fail(begin, "sample " + std::to_string(sample) + " has " + std::to_string(end - begin) +
                          " bytes, and " + what + " have " + std::to_string(bytes));
  }

  BlobReader& blob_;
  const MdsHeader& header_;
  int64_t head_bytes_ = 0;
  std::vector<MdsRange> places_;
};

class LabelReader {
 public:
  LabelReader(BlobReader& blob, const MdsColumn& column)
      : blob_(blob), column_(column), encoding_(*find_label_encoding(column.encoding)) {}

  // The label is valid until the blob is read again.
  BlobLabel read(size_t sample, MdsRange place) const {
    if (encoding_.size != 0 && place.length != encoding_.size) {
      fail(sample, place, "has " + std::to_string(place.length) + " bytes");
    }
    const Bytes bytes = blob_.read(place.offset, place.length, "a label");
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (encoding_.kind == ValueKind::text) return text;
    if (encoding_.kind == ValueKind::digits) {
      int64_t value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc() || end != text.data() + text.size()) {
        fail(sample, place, "is " + quoted_name(text) + ", no 64-bit number");
      }
      return value;
    }
    const uint64_t bits = read_little_endian(bytes);
    if (encoding_.kind == ValueKind::unsigned_bytes) {
      if (bits > INT64_MAX) fail(sample, place, "is " + std::to_string(bits) + ", too large");
      return static_cast<int64_t>(bits);
    }
    // The highest bit of the value becomes the sign.
    const int unused = 64 - 8 * static_cast<int>(bytes.size());
    return static_cast<int64_t>(bits << unused) >> unused;
  }

 private:
  [[noreturn]] void fail(size_t sample, MdsRange place, const std::string& reason) const {
    blob_.fail(place.offset, "the label of sample " + std::to_string(sample) + ", column " +
                                 describe(column_) + ", " + reason);
  }

  BlobReader& blob_;
  const MdsColumn& column_;
  const LabelEncoding& encoding_;
};

// The objects of samples: JSON in one column, or a column of numbers for each entry.
class MdsObjects {
 public:
  MdsObjects(BlobReader& blob, const MdsHeader& header, const ObjectField& wanted)
      : blob_(blob), is_wanted_(wanted.is_wanted()) {
    if (!is_wanted_) return;
    const std::vector<ObjectColumn> columns = object_columns(wanted.field);
    for (const ObjectColumn& each : columns) {
      const size_t place = choose_column(blob, header, kArrayRule, each.name);
      columns_.push_back({place, header.columns[place]});
      found_.columns.push_back({.entry = each.entry});
    }
    if (!columns.empty()) return;
    const size_t place = choose_column(blob, header, kJsonRule, wanted.field);
    columns_.push_back({place, header.columns[place]});
  }

  // Returns the objects of a sample, valid until the next call; null if none are wanted.
  const FoundObjects* read(const std::vector<MdsRange>& places) {
    if (!is_wanted_) return nullptr;
    found_.problem.clear();
    for (size_t i = 0; i < columns_.size(); ++i) {
      const MdsRange& place = places[columns_[i].place];
      const Bytes bytes = blob_.read(place.offset, place.length, "objects");
      if (found_.columns.empty()) {
        found_.json = as_text(bytes);
        if (bytes.empty()) found_.problem = "column " + describe(columns_[i].column) + " is empty";
        break;
      }
      const std::string problem =
          read_mds_array(columns_[i].column.encoding, bytes, found_.columns[i].numbers);
      if (problem.empty()) continue;
      found_.problem = "column " + describe(columns_[i].column) + " " + problem;
      break;
    }
    return &found_;
  }

 private:
  struct Column {
    size_t place;
    MdsColumn column;
  };

  BlobReader& blob_;
  const bool is_wanted_;
  std::vector<Column> columns_;
  FoundObjects found_;
};

// ---- The index of a folder

struct ShardEntry {
  std::string basename;  // relative to the folder
  int64_t bytes = 0;
  std::string zip_basename;  // "" if the shard was not compressed
};

// A basename may have folders before it, because indexes of folders can be merged into one; it
// never leaves the index's folder.
std::string parse_basename(const Json& file) {
  std::string name = parse_text(parse_member(file, "basename"), "\"basename\"");
  const fs::path path(name);
  const bool leaves = path.is_absolute() || std::ranges::find(path, "..") != path.end();
  if (name.empty() || leaves || name.find('\0') != std::string::npos) {
    throw std::runtime_error("basename " + quoted_name(name) + " is no name inside of the folder");
  }
  return name;
}

void check_version(const Json& json) {
  if (parse_member(json, "version") != 2) throw std::runtime_error("\"version\" is not 2");
}

ShardEntry parse_shard(const Json& json) {
  const std::string format = parse_text(parse_member(json, "format"), "\"format\"");
  if (format != "mds") {
    throw std::runtime_error("its format is " + quoted_name(format) + ", and only \"mds\" is read");
  }
  check_version(json);
  const Json& raw = parse_member(json, "raw_data");
  ShardEntry entry{parse_basename(raw), parse_count(parse_member(raw, "bytes"), "\"bytes\""), ""};
  const Json& zip = parse_member(json, "zip_data");
  if (!zip.is_null()) entry.zip_basename = parse_basename(zip);
  return entry;
}

std::vector<ShardEntry> parse_index(const Json& json) {
  check_version(json);
  const Json& shards = parse_list(json, "shards");
  if (shards.empty()) throw std::runtime_error("it lists no shards");
  std::vector<ShardEntry> entries;
  std::set<std::string> names;
  for (const Json& shard : shards) {
    const std::string which = "shard " + std::to_string(entries.size()) + ": ";
    try {
      entries.push_back(parse_shard(shard));
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(which + error.what());
    }
    const std::string& name = entries.back().basename;
    if (!names.insert(fs::path(name).lexically_normal().string()).second) {
      throw std::runtime_error(which + quoted_name(name) + " is listed twice");
    }
  }
  return entries;
}

using BytesOf = std::function<int64_t(const std::string& name)>;

void check_shard(const std::string& folder, const ShardEntry& shard, const BytesOf& bytes_of) {
  const std::string shown = folder + "/" + printable_name(shard.basename);
  const int64_t bytes = bytes_of(shard.basename);
  if (bytes < 0) {
    if (!shard.zip_basename.empty() && bytes_of(shard.zip_basename) >= 0) {
      throw std::runtime_error(folder + "/" + printable_name(shard.zip_basename) +
                               ": the shard is compressed; decompress it, or write it without "
                               "compression");
    }
    throw std::runtime_error(shown + ": index.json lists this shard, and it is not there");
  }
  if (bytes != shard.bytes) {
    throw std::runtime_error(shown + ": has " + std::to_string(bytes) +
                             " bytes, and index.json says " + std::to_string(shard.bytes) +
                             "; it is incomplete, or another shard");
  }
}

}  // namespace

void scan_mds(BlobReader& blob, const FieldChoice& fields, SampleSink& out) {
  refuse_compressed(blob);
  MdsHeader header;
  read_offsets(blob, header);
  read_columns(blob, header);
  const size_t image = choose_column(blob, header, kImageRule, fields.image);
  const bool has_labels = !fields.no_labels();
  const size_t label = has_labels ? choose_column(blob, header, kLabelRule, fields.label) : 0;
  std::optional<LabelReader> labels;
  if (has_labels) labels.emplace(blob, header.columns[label]);
  MdsTargets targets(blob, fields);
  for (const TargetField& target : fields.targets) {
    const ColumnRule& rule = target.is_text() ? kTextRule : target.varies ? kListRule : kTargetRule;
    targets.add(header.columns, choose_column(blob, header, rule, target.field));
  }
  MdsObjects objects(blob, header, fields.objects);
  SampleReader samples(blob, header);
  for (size_t i = 0; i + 1 < header.offsets.size(); ++i) {
    const std::vector<MdsRange>& places = samples.read(i);
    FoundSample found;
    found.offset = places[image].offset;
    found.length = places[image].length;
    if (labels) found.label = labels->read(i, places[label]);
    found.targets = targets.read(i, places);
    found.objects = objects.read(places);
    out.add(found);
  }
}

std::vector<std::string> mds_shards(const std::string& folder, const std::string& index,
                                    const BytesOf& bytes_of) {
  const std::string path = folder + "/index.json";
  const Json json = Json::parse(index, nullptr, false);
  if (json.is_discarded()) throw std::runtime_error(path + ": cannot be read as JSON");
  std::vector<ShardEntry> entries;
  try {
    entries = parse_index(json);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(path + ": " + error.what());
  }
  std::vector<std::string> shards;
  for (const ShardEntry& entry : entries) {
    check_shard(folder, entry, bytes_of);
    shards.push_back(entry.basename);
  }
  return shards;
}

}  // namespace stoker
