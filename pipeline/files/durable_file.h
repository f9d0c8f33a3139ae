// Writes files so that a reader finds the complete old file or the complete new one, whenever the
// power fails. Threads: any, on different paths. Errors: std::runtime_error with the path and
// errno's text, also for a pipe or a device (or a link to one), which is never waited for.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace stoker {

// Creates or replaces `path` with the pieces one after another, and flushes it to the disk. Not
// atomic: for files in a folder that is renamed afterwards.
void write_flushed(const std::string& path, std::span<const std::string_view> pieces);
// Whether a new file is flushed to the disk before it replaces the old one. Without it a reader
// still finds the complete old or new file, except after a power failure.
enum class Flush { yes, no };
// Replaces a file through `path`.tmp and a rename: atomic, and no link is followed, neither there
// nor at `path`. What fails leaves the old file, and nothing else. For a file that only one process
// writes.
void replace_file(const std::string& path, std::string_view content, Flush flush = Flush::yes);
// Renames a complete folder or file, and flushes the folder that holds it.
void publish(const std::string& temporary, const std::string& path);
void flush_folder(const std::string& path);
std::string read_whole_file(const std::string& path);
// Passes a file of any size to `take`, piece after piece, through one small buffer.
void read_pieces(const std::string& path, const std::function<void(std::string_view)>& take);
// Fills `bytes` from `offset` on. Throws if the file ends before.
void read_part(const std::string& path, uint64_t offset, std::span<char> bytes);

// A new file that replaces `path` in finish(). Until then it is beside it under a name that no
// other process uses; the destructor removes an unfinished one. For files that several processes
// may write, or that are too large for memory. Threads: one at a time. Errors: std::runtime_error,
// "cannot write " `path` and the reason.
class ReplacedFile {
 public:
  // Makes the folder of `path` and opens the file. `mode`: its permissions.
  explicit ReplacedFile(const std::string& path, int mode = 0600);
  ~ReplacedFile();
  ReplacedFile(const ReplacedFile&) = delete;
  ReplacedFile& operator=(const ReplacedFile&) = delete;

  void write_at(uint64_t offset, std::string_view bytes);
  // Fills `bytes` with what has been written. Throws if that ends before.
  void read_at(uint64_t offset, std::span<char> bytes) const;
  void finish();  // when this returns, the file has replaced the old one and is on the disk

 private:
  [[noreturn]] void fail() const;

  const std::string path_;
  std::string temporary_;
  int handle_ = -1;
};

}  // namespace stoker
