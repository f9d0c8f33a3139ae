// The seek indexes that a Loader reads with: which file, its indexes beside the samples' bytes, and
// one warning if they do not fit. Neither pixels nor verdicts depend on any of it.
// Owner: RowFiller. Threads: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "decode/image_decoder.h"
#include "pipeline/seek_index/file.h"
#include "pipeline/source/source.h"

namespace stoker {

class SeekIndexes {
 public:
  // `choice` is FeedOptions::seek_index. `source` must outlive this. Throws std::runtime_error if
  // a file that was named cannot be read; one that is damaged is warned of and left alone.
  SeekIndexes(const Source& source, const std::string& choice);
  SeekIndexes(const SeekIndexes&) = delete;
  SeekIndexes& operator=(const SeekIndexes&) = delete;

  // Sets `index` to the sample's, inside `buffer`; it is empty if there is none.
  void read(SampleId id, std::vector<uint8_t>& buffer, std::span<const uint8_t>& index) const;
  // What the decoder did with it.
  void note(SampleId id, const SeekUse& use);

  SeekUse use() const { return {used_, refused_}; }
  int64_t table_bytes() const { return file_ ? file_->table_bytes() : 0; }
  int64_t largest_index_bytes() const { return file_ ? file_->largest_index_bytes() : 0; }

 private:
  const Source& source_;
  std::string path_;
  std::unique_ptr<SeekIndexFile> file_;
  std::atomic<int64_t> used_{0}, refused_{0};
};

}  // namespace stoker
