#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "pipeline/source/blob/blob_source.h"
#include "pipeline/source/cifar_source.h"
#include "pipeline/source/folder_source.h"
#include "pipeline/source/known_names.h"
#include "pipeline/source/source.h"

namespace stoker {
namespace {

void refuse_fields(const std::string& path, const char* kind, const SourceOptions& options) {
  const std::string targets = options.targets_from.empty() ? "" : options.targets_from.front();
  for (const auto& [option, value] :
       {std::pair("image_from", options.image_from), std::pair("label_from", options.label_from),
        std::pair("targets_from", targets)}) {
    if (value.empty()) continue;
    throw std::invalid_argument(std::string(option) + " is \"" + value + "\", and " + path +
                                " is " + kind + ", which has no such choice");
  }
}

}  // namespace

std::unique_ptr<Source> open_source(const std::string& path, const SourceOptions& options) {
  std::error_code ignored;
  const bool is_cifar = std::filesystem::is_directory(path, ignored) && is_cifar_folder(path);
  if (is_cifar) {
    refuse_fields(path, "a folder of CIFAR's files", options);
    return make_cifar_source(path, options.split);
  }
  if (const auto blobs = find_blobs(path, options.split)) return make_blob_source(*blobs, options);
  refuse_fields(path, "an image folder", options);
  return make_folder_source(path, {.split = options.split, .cache_dir = options.cache_dir});
}

bool has_parts(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return has_blob_parts(path);
  const auto is_there = [&](std::string_view name) {
    return std::filesystem::is_directory(std::filesystem::path(path) / name, ignored);
  };
  return is_cifar_folder(path) || has_blob_parts(path) ||
         std::any_of(kTrainNames.begin(), kTrainNames.end(), is_there) ||
         std::any_of(kTestNames.begin(), kTestNames.end(), is_there);
}

std::unique_ptr<Source> open_source(const std::string& path, Split split) {
  return open_source(path, SourceOptions{.split = split});
}

}  // namespace stoker
