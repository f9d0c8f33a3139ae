#include "tools/output_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>

namespace stoker {
namespace {

[[noreturn]] void fail(const std::string& path, size_t bytes) {
  const int code = errno;
  throw std::runtime_error("cannot write " + std::to_string(bytes) + " bytes to " + path + ": " +
                           std::strerror(code));
}

}  // namespace

void write_file(const std::string& path, std::span<const std::byte> head,
                std::span<const std::byte> rest) {
  const size_t bytes = head.size() + rest.size();
  std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "wb"), std::fclose);
  if (!file) fail(path, bytes);
  if (std::fwrite(head.data(), 1, head.size(), file.get()) != head.size()) fail(path, bytes);
  if (std::fwrite(rest.data(), 1, rest.size(), file.get()) != rest.size()) fail(path, bytes);
  // Buffered bytes meet a full disk only here.
  if (std::fclose(file.release()) != 0) fail(path, bytes);
}

}  // namespace stoker
