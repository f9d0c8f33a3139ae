// The open files of a data set's blobs. Owner: BlobSource. Threads: const calls from any.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pipeline/source.h"
#include "pipeline/source/blob/blob_index.h"

namespace stoker {

class BlobFiles {
 public:
  // `paths` are relative to the root.
  BlobFiles(const std::string& root, const std::vector<std::string>& paths,
            const std::vector<FileStamp>& stamps);
  ~BlobFiles();
  BlobFiles(const BlobFiles&) = delete;
  BlobFiles& operator=(const BlobFiles&) = delete;

  // Fills `out` from `offset` on. Fails if the blob is not what it was when it was listed.
  ReadStatus read(int64_t blob, int64_t offset, std::span<uint8_t> out) const;
  // The same for bytes that are in memory already; false also for everything that read() reports.
  bool read_cached(int64_t blob, int64_t offset, std::span<uint8_t> out) const;
  int root() const { return root_; }  // the open folder

 private:
  class Opened;
  ReadStatus check(int descriptor, int64_t blob, uint64_t& device) const;

  const std::vector<std::string>& paths_;
  const std::vector<FileStamp>& stamps_;
  const int root_;
  const int64_t most_open_;
  mutable std::atomic<int64_t> open_{0};
  mutable std::vector<std::atomic<int>> descriptors_;  // by blob; -1: not open
};

}  // namespace stoker
