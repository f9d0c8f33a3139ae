// Writes shards of MosaicML Streaming's MDS format and their index. It shares no code with what
// reads them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stoker {

struct MadeMdsColumn {
  std::string name, encoding;
  int64_t size = 0;  // bytes of each value; 0: they differ
};

// Integers with the low byte first.
std::string mds_number(uint64_t value, int bytes);

// The writer's settings.
std::string mds_settings(const std::vector<MadeMdsColumn>& columns);
// A sample from its values, one for each column.
std::string mds_sample(const std::vector<MadeMdsColumn>& columns,
                       const std::vector<std::string>& values);
// A shard from settings and samples.
std::string mds_shard(const std::string& settings, const std::vector<std::string>& samples);

struct MadeShard {
  std::string basename;
  int64_t bytes = 0;
  std::string zip_basename = "";  // "": not compressed
};

// The content of an index.json.
std::string mds_index(const std::vector<MadeShard>& shards);

}  // namespace stoker
