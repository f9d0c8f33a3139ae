#include "train/durable_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>

namespace stoker {
namespace {

[[noreturn]] void fail(const std::string& what, const std::string& path) {
  throw std::runtime_error(what + " " + path + ": " + std::strerror(errno));
}

// A file descriptor that closes itself.
class File {
 public:
  File(const std::string& path, int flags)
      : path_(path), handle_(::open(path.c_str(), flags, 0666)) {
    if (handle_ < 0) fail("cannot open", path);
  }
  ~File() {
    if (handle_ >= 0) ::close(handle_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::write(handle_, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail("cannot write", path_);
      bytes.remove_prefix(static_cast<size_t>(count));
    }
  }
  std::string read() {
    std::string content;
    char buffer[1 << 16];
    for (;;) {
      const ssize_t count = ::read(handle_, buffer, sizeof buffer);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail("cannot read", path_);
      if (count == 0) return content;
      content.append(buffer, static_cast<size_t>(count));
    }
  }
  void flush() {
    if (::fsync(handle_) != 0) fail("cannot flush", path_);
  }
  void close() {
    const int handle = handle_;
    handle_ = -1;
    if (::close(handle) != 0) fail("cannot close", path_);
  }

 private:
  const std::string path_;
  int handle_;
};

std::string parent(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace

void write_flushed(const std::string& path, std::span<const std::string_view> pieces) {
  File file(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC);
  for (const std::string_view piece : pieces) file.write(piece);
  file.flush();
  file.close();
}

void replace_file(const std::string& path, std::string_view content) {
  const std::string temporary = path + ".tmp";
  write_flushed(temporary, {&content, 1});
  publish(temporary, path);
}

void publish(const std::string& temporary, const std::string& path) {
  if (std::rename(temporary.c_str(), path.c_str()) != 0) fail("cannot rename to", path);
  flush_folder(parent(path));
}

void flush_folder(const std::string& path) {
  File(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC).flush();
}

std::string read_whole_file(const std::string& path) {
  return File(path, O_RDONLY | O_CLOEXEC).read();
}

}  // namespace stoker
