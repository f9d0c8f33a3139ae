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
#include "pipeline/source/format/tfrecord_example.h"
#include "pipeline/source/format/tfrecord_objects.h"

namespace stoker {
namespace {

using Bytes = std::span<const uint8_t>;

constexpr int64_t kHeaderBytes = 12;  // a length and its checksum
constexpr int64_t kTrailerBytes = 4;  // the data's checksum
constexpr uint64_t kMaxRecordBytes = uint64_t{1} << 30;

// Checksums are stored masked, so that the checksum of data with checksums in it stays a good one.
uint32_t masked_checksum(Bytes bytes) { return std::rotr(crc32c(bytes), 15) + 0xa282ead8u; }

std::string hex(uint32_t value) {
  std::array<char, 9> text;
  std::snprintf(text.data(), text.size(), "%08x", value);
  return text.data();
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

  const ExampleEntry& find(const ExampleRecord& record, const std::vector<ExampleEntry>& entries) {
    for (size_t i = 0; key_.empty() && i < usual_.size(); ++i) {
      if (find_entry(entries, usual_[i]) != nullptr) key_ = usual_[i];
    }
    const ExampleEntry* const entry = key_.empty() ? nullptr : find_entry(entries, key_);
    if (entry == nullptr) fail_missing(record, entries);
    return *entry;
  }

 private:
  [[noreturn]] void fail_missing(const ExampleRecord& record,
                                 const std::vector<ExampleEntry>& entries) const {
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
std::string compression_of_header(Bytes header) {
  const char* kind = nullptr;
  if (header[0] == 0x1f && header[1] == 0x8b) kind = "gzip";
  // The first two bytes of zlib's format are a multiple of 31 (RFC 1950).
  if (header[0] == 0x78 && (header[0] * 256 + header[1]) % 31 == 0) kind = "zlib";
  return kind == nullptr ? ""
                         : std::string("the file is compressed with ") + kind +
                               "; write its records without compression, or unpack it";
}

int64_t read_record_length(BlobReader& blob, int64_t number, int64_t at) {
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
    const std::string compression = at == 0 ? compression_of_header(header) : "";
    if (!compression.empty()) blob.fail(at, compression);
    blob.fail(at, record + "has a wrong checksum of its length: " + hex(stored) +
                      " in the file, computed " + hex(computed) +
                      "; the file is damaged, or no TFRecord file");
  }
  if (length > kMaxRecordBytes) {
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

ExampleRecord read_record(BlobReader& blob, int64_t number, int64_t at) {
  const int64_t length = read_record_length(blob, number, at);
  const Bytes bytes = blob.read(at + kHeaderBytes, length + kTrailerBytes, "a record");
  const ExampleRecord record{blob, number, at, at + kHeaderBytes,
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

Bytes find_image(const ExampleRecord& record, const std::vector<ExampleEntry>& entries,
                 KeyChoice& choice) {
  const ExampleFeature feature = read_feature(record, choice.find(record, entries));
  if (feature.kind != FeatureKind::bytes || feature.values != 1) {
    record.fail(record.offset, "has " + describe(feature) + " at " + quoted_name(choice.key()) +
                                   ", and an image is one bytes value");
  }
  return feature.bytes;
}

BlobLabel find_label(const ExampleRecord& record, const std::vector<ExampleEntry>& entries,
                     KeyChoice& choice) {
  const ExampleFeature feature = read_feature(record, choice.find(record, entries));
  const bool is_number = feature.kind == FeatureKind::int64;
  if ((!is_number && feature.kind != FeatureKind::bytes) || feature.values != 1) {
    record.fail(record.offset, "has " + describe(feature) + " at " + quoted_name(choice.key()) +
                                   ", and a label is one int64 or bytes value");
  }
  if (is_number) return feature.number;
  return as_text(feature.bytes);
}

// The values of the targets of one record after the other.
class TargetScan {
 public:
  explicit TargetScan(const FieldChoice& fields) : fields_(fields), found_(fields.targets.size()) {
    for (const TargetField& target : fields.targets) {
      choices_.emplace_back("target", target.field, std::span<const std::string_view>());
    }
  }

  std::span<const FoundTarget> read(const ExampleRecord& record,
                                    const std::vector<ExampleEntry>& entries) {
    for (size_t i = 0; i < choices_.size(); ++i) {
      if (fields_.targets[i].varies) {
        read_varying(record, entries, fields_.targets[i], found_[i]);
        continue;
      }
      const ExampleEntry& entry = choices_[i].find(record, entries);
      read_numbers(record, entry, found_[i]);
      found_[i].offset = record.offset;
      if (found_[i].size() > 0) continue;
      const ExampleFeature feature = read_feature(record, entry);
      const bool has_bytes = feature.kind == FeatureKind::bytes;
      record.fail(record.offset, "has " + (has_bytes ? describe(feature) : "no values") + " at " +
                                     quoted_name(choices_[i].key()) +
                                     ", and a target is int64 or float values");
    }
    return found_;
  }

 private:
  // A record without such values is one bad sample. A list of no values has no kind.
  void read_varying(const ExampleRecord& record, const std::vector<ExampleEntry>& entries,
                    const TargetField& field, FoundTarget& out) {
    out.clear();
    const ExampleEntry* const entry = find_entry(entries, field.field);
    if (entry == nullptr) {
      out.problem = "is not there: no key " + quoted_name(field.field);
      return;
    }
    const ExampleFeature feature = read_feature(record, *entry);
    const bool has_texts = feature.kind == FeatureKind::bytes;
    if (feature.kind != FeatureKind::none && has_texts != field.is_text()) {
      out.problem = "has " + describe(feature);
      return;
    }
    if (!field.is_text()) {
      read_numbers(record, *entry, out);
      return;
    }
    read_texts(record, *entry, texts_);
    for (const std::string_view text : texts_) out.add_text(text);
  }

  const FieldChoice& fields_;
  std::vector<std::string_view> texts_;
  std::vector<KeyChoice> choices_;
  std::vector<FoundTarget> found_;
};

}  // namespace

void scan_tfrecord(BlobReader& blob, const FieldChoice& fields, SampleSink& out) {
  if (blob.size() == 0) blob.fail(0, "the file has no records");
  KeyChoice image_key("image", fields.image, kImageKeys);
  KeyChoice label_key("label", fields.label, kLabelKeys);
  TargetScan targets(fields);
  ExampleObjects objects(blob, fields.objects);
  std::vector<ExampleEntry> entries;
  int64_t at = 0;
  for (int64_t number = 0; at < blob.size(); ++number) {
    const ExampleRecord record = read_record(blob, number, at);
    read_entries(record, entries);
    const Bytes image = find_image(record, entries, image_key);
    FoundSample sample;
    sample.offset = record.offset_of(image.data());
    sample.length = std::ssize(image);
    if (!fields.no_labels()) sample.label = find_label(record, entries, label_key);
    sample.targets = targets.read(record, entries);
    sample.objects = objects.read(record, entries);
    out.add(sample);
    at += kHeaderBytes + std::ssize(record.data) + kTrailerBytes;
  }
  objects.finish(blob);
}

}  // namespace stoker
