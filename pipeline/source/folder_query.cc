#include "pipeline/source/folder_query.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <stdexcept>

#include "pipeline/files/printable_name.h"
#include "pipeline/source/format/known_names.h"

namespace stoker {
namespace {

// Returns text for messages: "found 3 entries: a.txt, b.txt, ...".
std::string what_is_in(const FolderContent& content) {
  std::vector<std::string> names = content.names;
  if (names.empty()) return "it is empty";
  std::sort(names.begin(), names.end());
  std::string text = "found " + std::to_string(names.size()) + " entries: ";
  for (size_t i = 0; i < std::min<size_t>(5, names.size()); ++i) {
    text += (i > 0 ? ", " : "") + printable_name(names[i]);
  }
  return text + (names.size() > 5 ? ", ..." : "");
}

}  // namespace

FolderQuery folder_query(const FolderContent& content, Split split) {
  const std::string& path = content.path;
  const auto find_part = [&](std::span<const std::string_view> names) -> std::string {
    for (const std::string_view name : names) {
      if (std::binary_search(content.folders.begin(), content.folders.end(), name)) {
        return std::string(name);
      }
    }
    return "";
  };
  const std::string train = find_part(kTrainNames), test = find_part(kTestNames);
  FolderQuery query{path, {}, {}};
  if (train.empty() && test.empty()) {
    const bool is_test =
        std::find(kTestNames.begin(), kTestNames.end(), content.own_name) != kTestNames.end();
    if (split == Split::test && !is_test) {
      throw std::runtime_error(path + ": no folder test, val or validation there; " +
                               what_is_in(content));
    }
    query.parts = query.class_parts = {""};
    return query;
  }
  for (const std::string& part : {train, test}) {
    if (!part.empty()) query.class_parts.push_back(part);
  }
  query.parts =
      split == Split::all ? query.class_parts : std::vector{split == Split::train ? train : test};
  if (query.parts[0].empty()) {
    throw std::runtime_error(path + ": no folder " + (split == Split::train ? "train" : "test") +
                             " there, but " + query.class_parts[0] + "; " + what_is_in(content));
  }
  return query;
}

std::string folder_of_part(const std::string& folder, Split split) {
  if (split == Split::all) return folder;
  FolderContent content{
      folder, std::filesystem::path(folder).filename().string(), list_subfolders(folder), {}};
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    content.names.push_back(entry.path().filename().string());
  }
  const std::string part = folder_query(content, split).parts[0];
  return part.empty() ? folder : folder + "/" + part;
}

void check_index(const FolderContent& content, const FolderIndex& index) {
  if (index.class_names.empty()) {
    throw std::runtime_error(content.path +
                             ": no class folders there (expected <class>/<image>); " +
                             what_is_in(content));
  }
  if (index.size() == 0) {
    throw std::runtime_error(
        content.path + ": no images (jpg, jpeg, png, bmp, webp, tif, tiff) in " +
        std::to_string(index.class_names.size()) + " class folders; " + what_is_in(content));
  }
}

}  // namespace stoker
