// Writing so that a reader finds the old file or the whole new one, whenever the power fails.
// Threads: any, on different paths. Errors: std::runtime_error with the path and errno's text, also
// for a pipe or a device (or a link to one), which is never waited for.
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
// Whether a new file is on the disk before it takes the old one's place. Without it a reader finds
// the old file or the whole new one all the same, but for a failure of power.
enum class Flush { yes, no };
// The same through `path`.tmp and a rename: atomic. For a file that one process writes.
void replace_file(const std::string& path, std::string_view content, Flush flush = Flush::yes);
// Renames a folder or file that is complete, and flushes the folder that holds it.
void publish(const std::string& temporary, const std::string& path);
void flush_folder(const std::string& path);
std::string read_whole_file(const std::string& path);
// Gives a file of any size to `take`, piece after piece, through one small buffer.
void read_pieces(const std::string& path, const std::function<void(std::string_view)>& take);
// Fills `bytes` from `offset` on. A file that ends before is an error.
void read_part(const std::string& path, uint64_t offset, std::span<char> bytes);

// A new file that takes the place of `path` at its end. Until then it lies beside it under a name
// that no other process has; one that was not finished is removed. For files that several processes
// may write, or that are too large for memory.
// Threads: one at a time. Errors: std::runtime_error, "cannot write " `path` and the reason.
class ReplacedFile {
 public:
  // Makes its folder. `mode`: who may read it.
  explicit ReplacedFile(const std::string& path, int mode = 0600);
  ~ReplacedFile();
  ReplacedFile(const ReplacedFile&) = delete;
  ReplacedFile& operator=(const ReplacedFile&) = delete;

  void write_at(uint64_t offset, std::string_view bytes);
  void finish();  // the file is there, and on the disk, when this returns

 private:
  [[noreturn]] void fail() const;

  const std::string path_;
  std::string temporary_;
  int handle_ = -1;
};

}  // namespace stoker
