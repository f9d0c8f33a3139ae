// The table of formats: files that hold many samples (shards), and lists of files. Values that
// never change; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/source/format/sample_sink.h"

namespace stoker {

class BlobReader;

enum class BlobFormat : uint8_t { tar, parquet, tfrecord, mds, list };

struct FormatEntry {
  BlobFormat format{};
  const char* name;   // "tar"
  const char* words;  // in sentences: "tar shards"
  const char* files;  // for --help and errors: ".csv, .tsv, .jsonl"
  // Endings of the files' names. A compressed shard counts as its format, whose parser says what to
  // do.
  std::vector<std::string_view> endings;
  // Finds the samples of one file. Throws BlobError for what is wrong with its content.
  void (*scan)(BlobReader& blob, const FieldChoice& fields, SampleSink& out);
};

std::span<const FormatEntry> all_formats();
const FormatEntry& entry_of(BlobFormat format);
inline const char* to_string(BlobFormat format) { return entry_of(format).name; }

// Returns the format that a file's name stands for, by its ending; NAME-00000-of-00128 is a
// TFRecord file.
std::optional<BlobFormat> blob_format(const std::string& file_name);

}  // namespace stoker
