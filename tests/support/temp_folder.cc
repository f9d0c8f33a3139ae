#include "tests/support/temp_folder.h"

#include <stdlib.h>

#include <chrono>
#include <fstream>
#include <stdexcept>

namespace stoker {
namespace fs = std::filesystem;

TempFolder::TempFolder() {
  path_ = (fs::temp_directory_path() / "stoker-test-XXXXXX").string();
  if (!mkdtemp(path_.data())) throw std::runtime_error(path_ + ": mkdtemp failed");
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string TempFolder::write(const std::string& name, std::string_view content) const {
  const fs::path path = fs::path(path_) / name;
  fs::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  if (!file.flush()) throw std::runtime_error(path.string() + ": cannot be written");
  return path.string();
}

std::string TempFolder::make_folder(const std::string& name) const {
  fs::create_directories(fs::path(path_) / name);
  return (fs::path(path_) / name).string();
}

void TempFolder::link(const std::string& target, const std::string& name) const {
  fs::create_directories((fs::path(path_) / name).parent_path());
  fs::create_symlink(target, fs::path(path_) / name);
}

void damage_byte(const std::string& path, int64_t offset) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(offset);
  const int byte = file.get();
  file.seekp(offset);
  file.put(static_cast<char>(byte ^ 0x50));
  if (!file.flush()) throw std::runtime_error(path + ": cannot be damaged");
}

void settle(const std::string& path) {
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(5));
}

}  // namespace stoker
