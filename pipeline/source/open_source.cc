#include <filesystem>
#include <stdexcept>

#include "pipeline/source/cifar_source.h"
#include "pipeline/source/folder_source.h"
#include "pipeline/source/source.h"

namespace stoker {

std::unique_ptr<Source> open_source(const std::string& path, Split split) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    throw std::runtime_error("open_source: " + path + ": " +
                             (error ? error.message() : "no such folder"));
  }
  if (!std::filesystem::is_directory(status)) {
    throw std::runtime_error("open_source: " + path + " is not a folder");
  }
  if (is_cifar_folder(path)) return make_cifar_source(path, split);
  return make_folder_source(path, {.split = split});
}

}  // namespace stoker
