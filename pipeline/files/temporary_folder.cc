#include "pipeline/files/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>

namespace stoker {

TemporaryFolder::TemporaryFolder(const std::string& parent)
    : path_((parent.empty() ? std::filesystem::temp_directory_path().string() : parent) +
            "/stoker.XXXXXX") {
  if (::mkdtemp(path_.data()) != nullptr) return;
  throw std::runtime_error("cannot make a folder " + path_ + ": " + std::strerror(errno));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace stoker
