#include "pipeline/source/annotated/files_below.h"

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "pipeline/source/format/known_names.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

// A link may lead back to a folder above it.
constexpr int kDeepestFolder = 16;

}  // namespace

std::vector<std::string> files_below(const std::string& folder, std::string_view extension) {
  std::vector<std::string> files;
  const auto options = fs::directory_options::follow_directory_symlink;
  for (fs::recursive_directory_iterator entry(folder, options), end; entry != end; ++entry) {
    const std::string name = entry->path().filename().string();
    const bool is_hidden = name.starts_with('.');
    if (is_hidden) entry.disable_recursion_pending();
    if (entry.depth() > kDeepestFolder) {
      throw std::runtime_error(entry->path().string() + ": too many folders in one another");
    }
    if (is_hidden || extension_of(name) != extension || !entry->is_regular_file()) continue;
    files.push_back(entry->path().string().substr(folder.size() + 1));
  }
  std::ranges::sort(files);
  return files;
}

std::string_view stem_of_path(std::string_view path) {
  const size_t base = path.rfind('/') + 1;  // npos + 1 is 0
  const size_t dot = path.rfind('.');
  return dot == path.npos || dot <= base ? path : path.substr(0, dot);
}

}  // namespace stoker
