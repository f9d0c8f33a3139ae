#include "tools/data/output_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>

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

}  // namespace stoker
