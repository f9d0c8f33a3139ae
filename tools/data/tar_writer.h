// Writes a shard as a tar archive in the layout of WebDataset: the members KEY.jpg (or the
// extension of another image format) and KEY.cls, the label as decimal text, one sample after the
// other. The same samples give the same bytes: a member has mode 0444, and its time, user and group
// are 0.
//
// Format: POSIX.1-2008, pax, "Interchange Format". A name is in the ustar header if it is ASCII
// and fits, else in an extended header, where it is UTF-8.
#pragma once

#include <string>

#include "pipeline/files/durable_file.h"
#include "tools/data/shard_writer.h"

namespace stoker {

class TarShardWriter final : public ShardWriter {
 public:
  explicit TarShardWriter(const std::string& path) : path_(path), file_(path, 0644) {}

  int64_t bytes_with(const ShardSample& sample) const override;
  void add(const ShardSample& sample) override;
  int64_t finish() override;

 private:
  void add_member(const std::string& name, std::span<const uint8_t> content);
  void write(std::string_view bytes);

  const std::string path_;
  ReplacedFile file_;
  int64_t bytes_ = 0;  // written so far
};

}  // namespace stoker
