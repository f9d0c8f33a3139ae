#include "pipeline/source/format/formats.h"

#include <algorithm>
#include <stdexcept>

#include "pipeline/source/format/list.h"
#include "pipeline/source/format/mds.h"
#include "pipeline/source/format/parquet.h"
#include "pipeline/source/format/tar.h"
#include "pipeline/source/format/tfrecord.h"

namespace stoker {
namespace {

bool is_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// NAME-00000-of-00128, with any number of digits.
bool is_numbered_shard(const std::string& name) {
  const size_t of = name.rfind("-of-");
  if (of == std::string::npos || !is_digits(std::string_view(name).substr(of + 4))) return false;
  const size_t dash = name.rfind('-', of - 1);
  return of > 0 && dash != std::string::npos &&
         is_digits(std::string_view(name).substr(dash + 1, of - dash - 1));
}

}  // namespace

std::span<const FormatEntry> all_formats() {
  static const std::vector<FormatEntry> all = {
      {BlobFormat::tar,
       "tar",
       "tar shards",
       ".tar as WebDataset has them",
       {".tar", ".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst", ".tgz"},
       scan_tar},
      {BlobFormat::parquet, "parquet", "Parquet files", ".parquet", {".parquet"}, scan_parquet},
      {BlobFormat::tfrecord,
       "tfrecord",
       "TFRecord files",
       ".tfrecord",
       {".tfrecord", ".tfrecords", ".tfrecord.gz", ".tfrec"},
       scan_tfrecord},
      {BlobFormat::mds, "mds", "MDS shards", ".mds", {".mds", ".mds.zstd", ".mds.gz"}, scan_mds},
      {BlobFormat::list,
       "list",
       "a list of files (CSV, TSV or JSON lines)",
       ".csv, .tsv, .jsonl",
       {".csv", ".tsv", ".jsonl", ".ndjson"},
       scan_list},
  };
  return all;
}

const FormatEntry& entry_of(BlobFormat format) {
  for (const FormatEntry& entry : all_formats()) {
    if (entry.format == format) return entry;
  }
  throw std::logic_error("a format that is not in the table");
}

std::optional<BlobFormat> blob_format(const std::string& file_name) {
  for (const FormatEntry& entry : all_formats()) {
    for (const std::string_view ending : entry.endings) {
      if (file_name.ends_with(ending)) return entry.format;
    }
  }
  return is_numbered_shard(file_name) ? std::optional(BlobFormat::tfrecord) : std::nullopt;
}

}  // namespace stoker
