#include "pipeline/source/format/tfrecord.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <string>
#include <vector>

#include "pipeline/source/format/crc32c.h"
#include "pipeline/source/format/little_endian.h"
#include "pipeline/source/format/text_value.h"

namespace stoker {
namespace {

using Bytes = std::span<const uint8_t>;

constexpr int64_t kHeaderBytes = 12;  // a length and its checksum
constexpr int64_t kTrailerBytes = 4;  // the data's checksum
constexpr uint64_t kMostRecordBytes = uint64_t{1} << 30;

// Checksums are stored masked, so that the checksum of data with checksums in it stays a good one.
uint32_t masked_checksum(Bytes bytes) { return std::rotr(crc32c(bytes), 15) + 0xa282ead8u; }

std::string hex(uint32_t value) {
  std::array<char, 9> text;
  std::snprintf(text.data(), text.size(), "%08x", value);
  return text.data();
}

// A record whose checksums are right.
struct Record {
  const BlobReader& blob;
  int64_t number;
  int64_t offset;       // in the blob, of its header
  int64_t data_offset;  // in the blob
  Bytes data;

  int64_t offset_of(const uint8_t* byte) const { return data_offset + (byte - data.data()); }
  [[noreturn]] void fail(int64_t at, const std::string& reason) const {
    blob.fail(at, "record " + std::to_string(number) + " " + reason);
  }
};

// ---- Protobuf's wire format

enum class WireType : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

struct WireField {
  uint64_t number = 0;
  WireType type = WireType::varint;
  uint64_t value = 0;  // of a varint
  Bytes bytes;         // of bytes

  bool is_bytes(uint64_t of) const { return number == of && type == WireType::bytes; }
};

// Goes through the fields of one message.
class MessageReader {
 public:
  MessageReader(const Record& record, Bytes message) : record_(record), rest_(message) {}

  bool at_end() const { return rest_.empty(); }

  uint64_t varint() {
    const uint8_t* const begin = rest_.data();
    uint64_t value = 0;
    for (size_t i = 0; i < rest_.size() && i < 10; ++i) {
      value |= uint64_t{rest_[i] & 0x7fu} << (7 * i);
      if (rest_[i] < 0x80) {
        rest_ = rest_.subspan(i + 1);
        return value;
      }
    }
    fail(begin, rest_.size() < 10 ? "a number is cut" : "a number has more than 10 bytes");
  }

  WireField next() {
    const uint8_t* const begin = rest_.data();
    const uint64_t tag = varint();
    WireField field{tag >> 3, static_cast<WireType>(tag & 7), 0, {}};
    if (field.number == 0) fail(begin, "a field has the number 0");
    switch (field.type) {
      case WireType::varint:
        field.value = varint();
        return field;
      case WireType::fixed64:
        take(8, begin);
        return field;
      case WireType::bytes:
        field.bytes = take(varint(), begin);
        return field;
      case WireType::fixed32:
        take(4, begin);
        return field;
    }
    fail(begin, "wire type " + std::to_string(tag & 7) + " is not used there");
  }

 private:
  [[noreturn]] void fail(const uint8_t* at, const std::string& reason) const {
    record_.fail(record_.offset_of(at), "is no tf.train.Example: " + reason);
  }
  Bytes take(uint64_t length, const uint8_t* field) {
    if (length > rest_.size()) {
      fail(field, "a field of " + std::to_string(length) + " bytes is longer than the " +
                      std::to_string(rest_.size()) + " that are left of its message");
    }
    const Bytes taken = rest_.first(static_cast<size_t>(length));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }

  const Record& record_;
  Bytes rest_;
};

// ---- tf.train.Example

enum class ListKind : uint8_t { none = 0, bytes = 1, floats = 2, int64 = 3 };

struct Feature {
  ListKind kind = ListKind::none;
  int64_t values = 0;  // how many; floats are not counted
  Bytes bytes;         // the last value
  int64_t number = 0;  // the last value
};

void add_values(const Record& record, Bytes list, Feature& feature) {
  MessageReader reader(record, list);
  while (!reader.at_end()) {
    const WireField field = reader.next();
    if (field.number != 1) continue;
    if (feature.kind == ListKind::bytes && field.type == WireType::bytes) {
      feature.bytes = field.bytes;
      ++feature.values;
    } else if (feature.kind == ListKind::int64 && field.type == WireType::varint) {
      feature.number = static_cast<int64_t>(field.value);
      ++feature.values;
    } else if (feature.kind == ListKind::int64 && field.type == WireType::bytes) {
      MessageReader packed(record, field.bytes);
      for (; !packed.at_end(); ++feature.values) {
        feature.number = static_cast<int64_t>(packed.varint());
      }
    }
  }
}

// Adds to `feature` what `message` says. As protobuf has it, another list of the same kind is
// appended, and one of another kind takes the place of what was there.
void merge_feature(const Record& record, Bytes message, Feature& feature) {
  MessageReader reader(record, message);
  while (!reader.at_end()) {
    const WireField field = reader.next();
    if (field.type != WireType::bytes || field.number > 3) continue;
    const auto kind = static_cast<ListKind>(field.number);
    if (feature.kind != kind) feature = {kind, 0, {}, 0};
    if (kind != ListKind::floats) add_values(record, field.bytes, feature);
  }
}

struct MapEntry {
  std::string_view key;
  Bytes message;  // the whole entry
};

MapEntry read_key(const Record& record, Bytes message) {
  MapEntry entry{"", message};
  MessageReader reader(record, message);
  while (!reader.at_end()) {
    const WireField field = reader.next();
    if (field.is_bytes(1)) entry.key = as_text(field.bytes);
  }
  return entry;
}

// Fills `entries` with the map of the Example, in the order of the record.
void read_entries(const Record& record, std::vector<MapEntry>& entries) {
  entries.clear();
  MessageReader example(record, record.data);
  while (!example.at_end()) {
    const WireField features = example.next();
    if (!features.is_bytes(1)) continue;
    MessageReader map(record, features.bytes);
    while (!map.at_end()) {
      const WireField entry = map.next();
      if (entry.is_bytes(1)) entries.push_back(read_key(record, entry.bytes));
    }
  }
}

// Returns the last entry with that key, which is the one that counts in a map, or null.
const MapEntry* find_entry(const std::vector<MapEntry>& entries, std::string_view key) {
  const auto found = std::find_if(entries.rbegin(), entries.rend(),
                                  [&](const MapEntry& e) { return e.key == key; });
  return found == entries.rend() ? nullptr : &*found;
}

Feature read_feature(const Record& record, const MapEntry& entry) {
  Feature feature;
  MessageReader reader(record, entry.message);
  while (!reader.at_end()) {
    const WireField field = reader.next();
    if (field.is_bytes(2)) merge_feature(record, field.bytes, feature);
  }
  return feature;
}

std::string list_keys(const std::vector<MapEntry>& entries) {
  constexpr size_t kMost = 12;
  if (entries.empty()) return "it has no keys";
  std::string text = "its keys are ";
  for (size_t i = 0; i < std::min(entries.size(), kMost); ++i) {
    text += (i == 0 ? "" : ", ") + quoted_name(entries[i].key);
  }
  if (entries.size() > kMost) text += " and " + std::to_string(entries.size() - kMost) + " more";
  return text;
}

std::string describe(const Feature& feature) {
  const std::string count = std::to_string(feature.values);
  switch (feature.kind) {
    case ListKind::none:
      return "nothing";
    case ListKind::bytes:
      return count + " bytes values";
    case ListKind::floats:
      return "float values";
    case ListKind::int64:
      return count + " int64 values";
  }
  return "";
}

// ---- Which keys to take

constexpr std::array<std::string_view, 3> kImageKeys = {"image/encoded", "image_raw", "image"};
constexpr std::array<std::string_view, 2> kLabelKeys = {"image/class/label", "label"};

// The key of one field, decided by the first record.
class KeyChoice {
 public:
  KeyChoice(const char* what, const std::string& wanted, std::span<const std::string_view> usual)
      : what_(what), key_(wanted), usual_(usual) {}

  const std::string& key() const { return key_; }

  const MapEntry& find(const Record& record, const std::vector<MapEntry>& entries) {
    for (size_t i = 0; key_.empty() && i < usual_.size(); ++i) {
      if (find_entry(entries, usual_[i]) != nullptr) key_ = usual_[i];
    }
    const MapEntry* const entry = key_.empty() ? nullptr : find_entry(entries, key_);
    if (entry == nullptr) fail_missing(record, entries);
    return *entry;
  }

 private:
  [[noreturn]] void fail_missing(const Record& record, const std::vector<MapEntry>& entries) const {
    std::string keys = quoted_name(key_);
    if (key_.empty()) {
      keys = quoted_name(usual_.front());
      for (size_t i = 1; i < usual_.size(); ++i) keys += " or " + quoted_name(usual_[i]);
    }
    record.fail(record.offset,
                "has no key " + keys + " for the " + what_ + ": " + list_keys(entries));
  }

  const char* what_;
  std::string key_;
  std::span<const std::string_view> usual_;
};

// ---- Records

// Explains a first length that makes no sense, "" if nothing is known.
std::string compression_of(Bytes header) {
  const char* kind = nullptr;
  if (header[0] == 0x1f && header[1] == 0x8b) kind = "gzip";
  // The first two bytes of zlib's format are a multiple of 31 (RFC 1950).
  if (header[0] == 0x78 && (header[0] * 256 + header[1]) % 31 == 0) kind = "zlib";
  return kind == nullptr ? ""
                         : std::string("the file is compressed with ") + kind +
                               "; write its records without compression, or unpack it";
}

int64_t read_length(BlobReader& blob, int64_t number, int64_t at) {
  const std::string record = "record " + std::to_string(number) + " ";
  if (blob.size() - at < kHeaderBytes) {
    blob.fail(at, record + "is cut: its header of 12 bytes ends behind the file's end at byte " +
                      std::to_string(blob.size()) + "; the file is probably incomplete");
  }
  const Bytes header = blob.read(at, kHeaderBytes, "a record's header");
  const uint64_t length = read_little_endian(header.first(8));
  const auto stored = static_cast<uint32_t>(read_little_endian(header.subspan(8)));
  const uint32_t computed = masked_checksum(header.first(8));
  if (stored != computed) {
    const std::string compression = at == 0 ? compression_of(header) : "";
    if (!compression.empty()) blob.fail(at, compression);
    blob.fail(at, record + "has a wrong checksum of its length: " + hex(stored) +
                      " in the file, computed " + hex(computed) +
                      "; the file is damaged, or no TFRecord file");
  }
  if (length > kMostRecordBytes) {
    blob.fail(at, record + "has " + std::to_string(length) + " bytes, more than 1 GiB");
  }
  const auto bytes = static_cast<int64_t>(length);
  if (blob.size() - at - kHeaderBytes < bytes + kTrailerBytes) {
    blob.fail(at, record + "is cut: its " + std::to_string(bytes) +
                      " bytes and their checksum end behind the file's end at byte " +
                      std::to_string(blob.size()) + "; the file is probably incomplete");
  }
  return bytes;
}

Record read_record(BlobReader& blob, int64_t number, int64_t at) {
  const int64_t length = read_length(blob, number, at);
  const Bytes bytes = blob.read(at + kHeaderBytes, length + kTrailerBytes, "a record");
  const Record record{blob, number, at, at + kHeaderBytes,
                      bytes.first(static_cast<size_t>(length))};
  const auto stored = static_cast<uint32_t>(read_little_endian(bytes.subspan(record.data.size())));
  const uint32_t computed = masked_checksum(record.data);
  if (stored != computed) {
    record.fail(at, "has a wrong checksum of its " + std::to_string(length) +
                        " bytes: " + hex(stored) + " in the file, computed " + hex(computed) +
                        "; the file is damaged");
  }
  return record;
}

Bytes find_image(const Record& record, const std::vector<MapEntry>& entries, KeyChoice& choice) {
  const Feature feature = read_feature(record, choice.find(record, entries));
  if (feature.kind != ListKind::bytes || feature.values != 1) {
    record.fail(record.offset, "has " + describe(feature) + " at " + quoted_name(choice.key()) +
                                   ", and an image is one bytes value");
  }
  return feature.bytes;
}

BlobLabel find_label(const Record& record, const std::vector<MapEntry>& entries,
                     KeyChoice& choice) {
  const Feature feature = read_feature(record, choice.find(record, entries));
  const bool is_number = feature.kind == ListKind::int64;
  if ((!is_number && feature.kind != ListKind::bytes) || feature.values != 1) {
    record.fail(record.offset, "has " + describe(feature) + " at " + quoted_name(choice.key()) +
                                   ", and a label is one int64 or bytes value");
  }
  if (is_number) return feature.number;
  return as_text(feature.bytes);
}

}  // namespace

void scan_tfrecord(BlobReader& blob, const FieldChoice& fields, SampleSink& out) {
  if (blob.size() == 0) blob.fail(0, "the file has no records");
  KeyChoice image_key("image", fields.image, kImageKeys);
  KeyChoice label_key("label", fields.label, kLabelKeys);
  std::vector<MapEntry> entries;
  int64_t at = 0;
  for (int64_t number = 0; at < blob.size(); ++number) {
    const Record record = read_record(blob, number, at);
    read_entries(record, entries);
    const Bytes image = find_image(record, entries, image_key);
    FoundSample sample;
    sample.offset = record.offset_of(image.data());
    sample.length = std::ssize(image);
    if (!fields.no_labels()) sample.label = find_label(record, entries, label_key);
    out.add(sample);
    at += kHeaderBytes + std::ssize(record.data) + kTrailerBytes;
  }
}

}  // namespace stoker
