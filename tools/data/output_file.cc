#include "tools/data/output_file.h"

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace stoker {

OutputFile::OutputFile(const std::string& path)
    : path_(path), file_(std::fopen(path.c_str(), "wb")) {
  if (!file_) fail();
}

void OutputFile::append(std::span<const std::byte> bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) fail();
}

void OutputFile::close() {
  if (std::fclose(file_.release()) != 0) fail();
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

}  // namespace stoker
