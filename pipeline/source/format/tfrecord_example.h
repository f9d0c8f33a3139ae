// The message of a TFRecord file, tf.train.Example
// (tensorflow/core/example/{example,feature}.proto): a map from keys to lists of bytes, floats or
// integers, in protobuf's wire format (protobuf.dev/programming-guides/encoding). Values, whose
// views are valid as long as the record's bytes. Threads: any. Errors: BlobError with the record's
// number.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/source/format/blob_reader.h"
#include "pipeline/source/format/found_target.h"

namespace stoker {

// A record whose checksums are right.
struct ExampleRecord {
  const BlobReader& blob;
  int64_t number;
  int64_t offset;       // in the blob, of its header
  int64_t data_offset;  // in the blob
  std::span<const uint8_t> data;

  int64_t offset_of(const uint8_t* byte) const { return data_offset + (byte - data.data()); }
  [[noreturn]] void fail(int64_t at, const std::string& reason) const {
    blob.fail(at, "record " + std::to_string(number) + " " + reason);
  }
};

enum class FeatureKind : uint8_t { none = 0, bytes = 1, floats = 2, int64 = 3 };

struct ExampleFeature {
  FeatureKind kind = FeatureKind::none;
  int64_t values = 0;              // how many; floats are not counted
  std::span<const uint8_t> bytes;  // the last value
  int64_t number = 0;              // the last value
};

struct ExampleEntry {
  std::string_view key;
  std::span<const uint8_t> message;  // the whole entry
};

// Fills `entries` with the map of the Example, in the order of the record.
void read_entries(const ExampleRecord& record, std::vector<ExampleEntry>& entries);
// Returns the last entry with that key, which is the one that counts in a map, or null.
const ExampleEntry* find_entry(const std::vector<ExampleEntry>& entries, std::string_view key);
ExampleFeature read_feature(const ExampleRecord& record, const ExampleEntry& entry);
// Sets `out` to all numbers of an entry: one of them is a single number. Without a number, it stays
// empty.
void read_numbers(const ExampleRecord& record, const ExampleEntry& entry, FoundTarget& out);

// Sets `out` to all bytes values of an entry; it stays empty if the values are of another kind.
void read_texts(const ExampleRecord& record, const ExampleEntry& entry,
                std::vector<std::string_view>& out);

// For messages: "its keys are 'image', 'label'"; "2 int64 values".
std::string list_keys(const std::vector<ExampleEntry>& entries);
std::string describe(const ExampleFeature& feature);

}  // namespace stoker
