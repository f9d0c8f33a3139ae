// The seek indexes of a Loader: opens their file, reads the index of each sample, and warns once if
// one does not fit. Neither the pixels nor the status of a sample depend on them. Owner: RowFiller.
// Threads: any.
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
  // `choice` is FeedOptions::seek_index. `source` must outlive this. Throws std::runtime_error if a
  // file at a given path does not exist; for an unreadable or damaged one it prints a warning and
  // uses no index.
  SeekIndexes(const Source& source, const std::string& choice);
  SeekIndexes(const SeekIndexes&) = delete;
  SeekIndexes& operator=(const SeekIndexes&) = delete;

  // Sets `index` to the sample's index, inside `buffer`; it is empty if there is none.
  void read(SampleId id, std::vector<uint8_t>& buffer, std::span<const uint8_t>& index) const;
  // Records what the decoder did with the sample's index.
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
