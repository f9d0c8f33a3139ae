// Writes files, with errors that name the path and the reason, a full disk included. Threads: one
// at a time per object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace stoker {

// A file that is written from front to back, beside `path` as `path`.tmp, and replaces `path` in
// close(). Links are not followed. A file that is not closed, because something failed, is removed,
// and the old one stays. A pipe or a device, /dev/stdout for example, is written itself. Throws
// std::runtime_error.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  void append(std::span<const std::byte> bytes);
  void append(std::string_view text) { append(std::as_bytes(std::span(text))); }
  void close();  // call it: a full disk may show only here

 private:
  struct Close {
    void operator()(FILE* file) const { std::fclose(file); }
  };
  [[noreturn]] void fail() const;

  const std::string path_;
  std::string temporary_;  // "": there is none
  std::unique_ptr<FILE, Close> file_;
};

// Writes the whole file at once. Throws std::runtime_error.
void write_file(const std::string& path, std::span<const std::byte> head,
                std::span<const std::byte> rest = {});
void write_file(const std::string& path, std::string_view text);

// Writes a file in NumPy's format, .npy 1.0. `descr` is NumPy's: "|u1", "<i4", "<f4". `data` is
// row-major. Throws std::runtime_error.
void write_npy(const std::string& path, const std::string& descr, std::span<const int64_t> shape,
               std::span<const std::byte> data);

// A folder that appears whole or not at all: files are written to a temporary folder beside it,
// which publish() renames. The destructor removes what was not published. Owner: the command.
// Threads: one at a time. Errors: std::runtime_error with the path and the reason.
class NewFolder {
 public:
  // `path` may be an empty folder; its parents are made. Throws std::invalid_argument if something
  // is there, and says what.
  explicit NewFolder(const std::string& path);
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  const std::string& temporary() const { return temporary_; }  // where to write the files
  void publish();  // when this returns, the folder is at its path and on the disk

 private:
  const std::string path_;
  std::string temporary_;  // "" when published
};

}  // namespace stoker
