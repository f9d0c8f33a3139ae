// The seek indexes of a Loader: opens their file, reads the index of each sample, and warns once if
// one does not fit. Takes the indexes that decoders make on their way, and adds them to the file at
// the end. Neither the pixels nor the status of a sample depend on them. Owner: RowFiller. Threads:
// any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "decode/image_decoder.h"
#include "pipeline/files/file_time.h"
#include "pipeline/seek_index/file.h"
#include "pipeline/seek_index/recorded.h"
#include "pipeline/source.h"

namespace stoker {

class SeekIndexes {
 public:
  // `choice` is FeedOptions::seek_index. `source` must outlive this. Throws std::runtime_error if a
  // file at a given path does not exist; for an unreadable or damaged one it prints a warning and
  // uses no index. `comes_again`: the feed takes samples more than once.
  SeekIndexes(const Source& source, const std::string& choice, bool comes_again);
  ~SeekIndexes();  // writes the file if something was recorded; prints why if it cannot
  SeekIndexes(const SeekIndexes&) = delete;
  SeekIndexes& operator=(const SeekIndexes&) = delete;

  // Returns the sample's index, inside `buffer`; an empty one if there is none.
  StoredIndex read(SampleId id, std::vector<uint8_t>& buffer) const;
  // Records what the decoder did with the sample's index.
  void note(SampleId id, const SeekUse& use);

  // Whether decoders shall note places for record().
  bool records() const { return recorded_ != nullptr; }
  // Keeps a new index of the sample, with the stamp that its file has now. The file must have been
  // read since this was made, so that its stamp is that of the bytes read.
  void record(SampleId id, std::span<const uint8_t> index);

  SeekUse use() const { return {used_, refused_, unread_bytes_}; }
  int64_t recorded() const { return recorded_ ? recorded_->count() : 0; }  // samples
  int64_t table_bytes() const;
  int64_t largest_index_bytes() const;

 private:
  void open_file(bool is_named);

  const Source& source_;
  std::string path_;
  std::unique_ptr<SeekIndexFile> file_;
  std::unique_ptr<RecordedIndexes> recorded_;
  const int64_t begun_ns_ = system_now_ns();
  std::atomic<bool> is_full_{false};  // recording has ended
  std::atomic<int64_t> used_{0}, refused_{0}, unread_bytes_{0};
};

}  // namespace stoker
