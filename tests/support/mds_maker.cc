#include "tests/support/mds_maker.h"

namespace stoker {
namespace {

// "[A, B]" from the texts of A and B.
std::string list_of(const std::vector<std::string>& items) {
  std::string text = "[";
  for (const std::string& item : items) text += (text.size() > 1 ? ", " : "") + item;
  return text + "]";
}

std::string file_info(const std::string& basename, int64_t bytes) {
  return "{\"basename\": \"" + basename + "\", \"bytes\": " + std::to_string(bytes) +
         ", \"hashes\": {}}";
}

}  // namespace

std::string mds_number(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}

std::string mds_settings(const std::vector<MadeMdsColumn>& columns) {
  std::vector<std::string> names, encodings, sizes;
  for (const MadeMdsColumn& column : columns) {
    names.push_back('"' + column.name + '"');
    encodings.push_back('"' + column.encoding + '"');
    sizes.push_back(column.size == 0 ? "null" : std::to_string(column.size));
  }
  return "{\"column_encodings\": " + list_of(encodings) + ", \"column_names\": " + list_of(names) +
         ", \"column_sizes\": " + list_of(sizes) +
         ", \"compression\": null, \"format\": \"mds\", \"hashes\": [], \"size_limit\": 67108864, "
         "\"version\": 2}";
}

std::string mds_sample(const std::vector<MadeMdsColumn>& columns,
                       const std::vector<std::string>& values) {
  std::string sizes, data;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].size == 0) sizes += mds_number(values[i].size(), 4);
    data += values[i];
  }
  return sizes + data;
}

std::string mds_shard(const std::string& settings, const std::vector<std::string>& samples) {
  size_t at = 4 + 4 * (samples.size() + 1) + settings.size();
  std::string offsets = mds_number(at, 4), data;
  for (const std::string& sample : samples) {
    at += sample.size();
    offsets += mds_number(at, 4);
    data += sample;
  }
  return mds_number(samples.size(), 4) + offsets + settings + data;
}

std::string mds_index(const std::vector<MadeShard>& shards) {
  std::vector<std::string> entries;
  for (const MadeShard& shard : shards) {
    const std::string zip = shard.zip_basename.empty() ? "null" : file_info(shard.zip_basename, 10);
    entries.push_back("{\"column_names\": [\"image\"], \"format\": \"mds\", \"raw_data\": " +
                      file_info(shard.basename, shard.bytes) +
                      ", \"samples\": 1, \"version\": 2, \"zip_data\": " + zip + "}");
  }
  return "{\"shards\": " + list_of(entries) + ", \"version\": 2}";
}

}  // namespace stoker
