#include "tools/data/output_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "pipeline/files/durable_file.h"
#include "pipeline/files/printable_name.h"

namespace stoker {
namespace {

// Whether a new file may take the path's place. /dev/stdout may lead to a file, but is none.
bool is_replaceable(const std::string& path) {
  if (path.starts_with("/dev/") || path.starts_with("/proc/")) return false;
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  return !std::filesystem::exists(status) || std::filesystem::is_regular_file(status);
}

}  // namespace

OutputFile::OutputFile(const std::string& path) : path_(path) {
  if (is_replaceable(path)) {
    temporary_ = path + ".tmp";
    std::remove(temporary_.c_str());  // left by a run that was killed, or a link
    file_.reset(std::fopen(temporary_.c_str(), "wbxe"));
  } else {
    file_.reset(std::fopen(path.c_str(), "wbe"));
  }
  if (!file_) {
    temporary_.clear();
    fail();
  }
}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) std::remove(temporary_.c_str());
}

void OutputFile::append(std::span<const std::byte> bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) fail();
}

void OutputFile::close() {
  if (std::fclose(file_.release()) != 0) fail();
  if (temporary_.empty()) return;
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail();
  temporary_.clear();
}

void OutputFile::fail() const {
  throw std::runtime_error("cannot write " + path_ + ": " + std::strerror(errno));
}

void write_file(const std::string& path, std::span<const std::byte> head,
                std::span<const std::byte> rest) {
  OutputFile file(path);
  file.append(head);
  file.append(rest);
  file.close();
}

void write_file(const std::string& path, std::string_view text) {
  write_file(path, std::as_bytes(std::span(text)));
}

void write_npy(const std::string& path, const std::string& descr, std::span<const int64_t> shape,
               std::span<const std::byte> data) {
  std::string dict = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (";
  for (const int64_t extent : shape) dict += std::to_string(extent) + ", ";
  dict += "), }";
  // Magic, version and length take 10 bytes; the data begin at a multiple of 64 bytes.
  while ((10 + dict.size() + 1) % 64 != 0) dict += ' ';
  dict += '\n';
  std::string head("\x93NUMPY\x01\x00", 8);
  head += static_cast<char>(dict.size() & 0xff);
  head += static_cast<char>(dict.size() >> 8);
  head += dict;
  write_file(path, std::as_bytes(std::span(head)), data);
}

namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, const std::string& reason) {
  throw std::runtime_error("cannot make the folder " + path + ": " + reason);
}

// Follows links and removes slashes at the end, so that the path can be renamed to.
std::string resolved(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::weakly_canonical(fs::absolute(path, error), error);
  if (error) fail(path, error.message());
  return (absolute.has_filename() ? absolute : absolute.parent_path()).string();
}

void check_free(const std::string& path) {
  struct stat status, above;
  if (::lstat(path.c_str(), &status) != 0) return;
  if (!S_ISDIR(status.st_mode)) throw std::invalid_argument(path + " is there, and is no folder");
  std::error_code error;
  fs::directory_iterator entries(path, error);
  if (error) fail(path, error.message());
  if (entries != fs::directory_iterator()) {
    throw std::invalid_argument(path + " is not empty: it has " +
                                printable_name(entries->path().filename().string()));
  }
  // Nothing can be renamed to a place where another disk is mounted.
  if (::stat((path + "/..").c_str(), &above) == 0 && above.st_dev != status.st_dev) {
    throw std::invalid_argument(path + " is a mount point: name a folder inside it");
  }
}

}  // namespace

NewFolder::NewFolder(const std::string& path) : path_(resolved(path)) {
  check_free(path_);
  std::error_code error;
  fs::create_directories(fs::path(path_).parent_path(), error);
  if (error) fail(path_, error.message());
  temporary_ = path_ + ".tmp.XXXXXX";
  if (::mkdtemp(temporary_.data()) == nullptr) fail(path_, std::strerror(errno));
}

NewFolder::~NewFolder() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

void NewFolder::publish() {
  flush_folder(temporary_);
  fs::permissions(temporary_, static_cast<fs::perms>(0755));
  stoker::publish(temporary_, path_);
  temporary_.clear();
}

}  // namespace stoker
