// A shard: a file of samples in a format that other software reads, written from front to back.
// Owner: `stoker pack`; a writer that is destroyed before finish() leaves no file. Threads: one at
// a time. Throws std::runtime_error with the path and the reason, a full disk included.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace stoker {

struct ShardSample {
  std::string_view key;        // as SampleKeys makes it
  std::string_view name;       // as Source::name(); of a file, its path
  std::string_view extension;  // of the image's format: "jpg"
  int label = 0;
  std::span<const uint8_t> image;  // the bytes of an image file
};

class ShardWriter {
 public:
  virtual ~ShardWriter() = default;
  // Returns how many bytes the file would have at most if it ended with this sample.
  virtual int64_t bytes_with(const ShardSample& sample) const = 0;
  virtual void add(const ShardSample& sample) = 0;
  virtual int64_t finish() = 0;  // returns the file's bytes; it is complete and on the disk then
};

}  // namespace stoker
