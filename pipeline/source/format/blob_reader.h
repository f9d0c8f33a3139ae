// Reads a blob (a file that holds many samples) for the formats that look for samples in it: any
// range, most of them ascending, many of them small. What lies next to each other is read in large
// pieces, and a jump reads no more than it needs. Owner: one scan. Threads: one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace stoker {

// Something is wrong with the content of a blob: "PATH: at byte OFFSET: REASON".
class BlobError : public std::runtime_error {
 public:
  BlobError(const std::string& path, int64_t offset, const std::string& reason);
};

// Reads a blob that is no local file: fills at least `least` bytes of `out` from `offset` on, and
// returns how many. Throws what is wrong.
using ReadAt = std::function<int64_t(int64_t offset, int64_t least, std::span<uint8_t> out)>;

class BlobReader {
 public:
  // Opens a file. Throws std::runtime_error with the path and the system's reason; also for what is
  // not a regular file, which is never waited for.
  explicit BlobReader(const std::string& path);
  // Reads a blob of `size` bytes through a function; `name` stands in errors. Each call costs a
  // round to a server: a jump reads more, and so does whoever goes on.
  BlobReader(const std::string& name, int64_t size, ReadAt read_at);
  // Reads from memory that outlives this; `name` stands in errors.
  BlobReader(const std::string& name, std::span<const uint8_t> bytes);
  ~BlobReader();
  BlobReader(const BlobReader&) = delete;
  BlobReader& operator=(const BlobReader&) = delete;

  const std::string& path() const { return path_; }
  int64_t size() const { return size_; }
  // Returns the bytes [offset, offset + length), valid until the next call. Throws BlobError if the
  // blob ends before that (`what` says what was looked for: "a header"), or cannot be read.
  std::span<const uint8_t> read(int64_t offset, int64_t length, const char* what);
  [[noreturn]] void fail(int64_t offset, const std::string& reason) const;

  // Called with the offset of each piece that is read from the file. It may throw to end the scan.
  void set_progress(std::function<void(int64_t offset)> progress) {
    progress_ = std::move(progress);
  }

 private:
  std::span<const uint8_t> fill_window(int64_t offset, int64_t length);
  void read_file(int64_t wanted);

  const std::string path_;
  int descriptor_ = -1;
  const ReadAt read_at_;  // instead of a descriptor
  int64_t size_ = 0;
  std::span<const uint8_t> memory_;  // a blob in memory
  std::vector<uint8_t> window_;      // what was read last from a file
  int64_t window_at_ = 0, window_bytes_ = 0;
  std::function<void(int64_t)> progress_;
};

}  // namespace stoker
