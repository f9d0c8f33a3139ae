#include "pipeline/files/durable_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <utility>

namespace stoker {
namespace {

[[noreturn]] void fail_file(const std::string& what, const std::string& path) {
  throw std::runtime_error(what + " " + path + ": " + std::strerror(errno));
}

// A file descriptor that closes itself. It accepts only files and folders: opening or reading a
// pipe would wait for ever, and /dev/full has no end.
class OpenFile {
 public:
  OpenFile(const std::string& path, int flags)
      : path_(path), handle_(::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, 0666)) {
    if (handle_ < 0) fail_file("cannot open", path);
    try {
      check_kind();
    } catch (...) {
      // The destructor does not run if the constructor throws.
      ::close(handle_);
      throw;
    }
  }
  ~OpenFile() {
    if (handle_ >= 0) ::close(handle_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::write(handle_, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail_file("cannot write", path_);
      bytes.remove_prefix(static_cast<size_t>(count));
    }
  }
  // Returns the number of bytes read; 0 at the end.
  size_t read(std::span<char> buffer) {
    for (;;) {
      const ssize_t count = ::read(handle_, buffer.data(), buffer.size());
      if (count >= 0) return static_cast<size_t>(count);
      if (errno != EINTR) fail_file("cannot read", path_);
    }
  }
  void seek(uint64_t offset) {
    if (::lseek(handle_, static_cast<off_t>(offset), SEEK_SET) < 0) fail_file("cannot read", path_);
  }
  void flush() {
    if (::fsync(handle_) != 0) fail_file("cannot flush", path_);
  }
  void close() {
    const int handle = handle_;
    handle_ = -1;
    if (::close(handle) != 0) fail_file("cannot close", path_);
  }

 private:
  void check_kind() const {
    struct stat status;
    if (::fstat(handle_, &status) != 0) fail_file("cannot look at", path_);
    if (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) return;
    throw std::runtime_error("cannot use " + path_ + ": not a regular file");
  }

  const std::string path_;
  int handle_;
};

std::string parent(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

void rename_to(const std::string& temporary, const std::string& path) {
  if (std::rename(temporary.c_str(), path.c_str()) != 0) fail_file("cannot rename to", path);
}

}  // namespace

void write_flushed(const std::string& path, std::span<const std::string_view> pieces) {
  OpenFile file(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW);
  for (const std::string_view piece : pieces) file.write(piece);
  file.flush();
  file.close();
}

void replace_file(const std::string& path, std::string_view content, Flush flush) {
  const std::string temporary = path + ".tmp";
  // A killed run's file, or a link that somebody has laid there, is removed: a new file is
  // made, and none is followed.
  ::unlink(temporary.c_str());
  OpenFile file(temporary, O_WRONLY | O_CREAT | O_EXCL);
  try {
    file.write(content);
    if (flush == Flush::yes) file.flush();
    file.close();
    rename_to(temporary, path);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  if (flush == Flush::yes) flush_folder(parent(path));
}

void publish(const std::string& temporary, const std::string& path) {
  rename_to(temporary, path);
  flush_folder(parent(path));
}

void flush_folder(const std::string& path) { OpenFile(path, O_RDONLY | O_DIRECTORY).flush(); }

void read_pieces(const std::string& path, const std::function<void(std::string_view)>& take) {
  OpenFile file(path, O_RDONLY);
  std::array<char, 1 << 16> buffer;
  while (const size_t count = file.read(buffer)) take({buffer.data(), count});
}

std::string read_whole_file(const std::string& path) {
  std::string content;
  read_pieces(path, [&](std::string_view piece) { content += piece; });
  return content;
}

void read_part(const std::string& path, uint64_t offset, std::span<char> bytes) {
  OpenFile file(path, O_RDONLY);
  file.seek(offset);
  while (!bytes.empty()) {
    const size_t count = file.read(bytes);
    if (count == 0) {
      throw std::runtime_error("cannot read " + path + ": it ends " + std::to_string(bytes.size()) +
                               " bytes too early");
    }
    bytes = bytes.subspan(count);
  }
}

ReplacedFile::ReplacedFile(const std::string& path, int mode)
    : path_(path), temporary_(path + ".XXXXXX") {
  // A failure shows when the file is made.
  std::error_code error;
  std::filesystem::create_directories(parent(path), error);
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error)) {
    throw std::runtime_error("cannot write " + path + ": it is no regular file");
  }
  handle_ = ::mkostemp(temporary_.data(), O_CLOEXEC);
  if (handle_ < 0) fail();
  ::fchmod(handle_, static_cast<mode_t>(mode));  // a failure costs only the mode
}

ReplacedFile::~ReplacedFile() {
  if (handle_ < 0) return;
  ::close(handle_);
  ::unlink(temporary_.c_str());
}

void ReplacedFile::fail() const {
  throw std::runtime_error("cannot write " + path_ + ": " + std::strerror(errno));
}

void ReplacedFile::write_at(uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(handle_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail();
    offset += static_cast<uint64_t>(count);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

void ReplacedFile::read_at(uint64_t offset, std::span<char> bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = ::pread(handle_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail();
    if (count == 0) throw std::runtime_error("cannot read " + temporary_ + ": it ends too early");
    offset += static_cast<uint64_t>(count);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
}

void ReplacedFile::finish() {
  if (::fsync(handle_) != 0 || std::rename(temporary_.c_str(), path_.c_str()) != 0) fail();
  ::close(std::exchange(handle_, -1));
  flush_folder(parent(path_));
}

}  // namespace stoker
