#include "pipeline/source/annotated/label_folder.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "pipeline/files/durable_file.h"
#include "pipeline/source/annotated/files_below.h"

namespace stoker {
namespace {

// Cityscapes has four files for a picture; these have its classes.
constexpr std::array<std::string_view, 2> kCityscapesLabels = {"_gtFine_labelIds",
                                                               "_gtCoarse_labelIds"};
constexpr std::string_view kCityscapesPicture = "_leftImg8bit";

// Returns the picture's name; "": the file has another meaning.
std::string picture_of_labels(std::string_view label_file, bool is_cityscapes) {
  const std::string_view stem = stem_of_path(label_file);
  if (!is_cityscapes) return std::string(stem);
  for (const std::string_view suffix : kCityscapesLabels) {
    if (!stem.ends_with(suffix)) continue;
    std::string name(stem.substr(0, stem.size() - suffix.size()));
    return name.append(kCityscapesPicture);
  }
  return "";
}

// PNG, 11.2.2: the 25th byte is the number of bits of a value, the 26th says what they are.
int label_bytes_of(const std::string& path) {
  std::array<char, 26> head{};
  read_part(path, 0, head);
  const bool is_colour = (head[25] & 2) != 0 && (head[25] & 1) == 0;
  return is_colour || head[24] == 16 ? 4 : 1;
}

}  // namespace

SharedAnnotations open_label_folder(const std::string& folder) {
  std::vector<std::string> files = files_below(folder, ".png");
  const bool is_cityscapes = std::ranges::any_of(
      files, [](const std::string& file) { return !picture_of_labels(file, true).empty(); });
  std::erase_if(files,
                [&](const auto& file) { return picture_of_labels(file, is_cityscapes).empty(); });
  if (files.empty()) throw std::runtime_error(folder + ": no .png there");
  AnnotationInfo info{.label_image = true};
  info.label_bytes = label_bytes_of(folder + "/" + files[0]);
  AnnotationSetBuilder builder(std::move(info), folder);
  const Annotations none;
  for (const std::string& file : files) {
    const std::string name = picture_of_labels(file, is_cityscapes);
    builder.add({.name = name, .annotations = &none, .label_file = file});
  }
  return builder.finish();
}

}  // namespace stoker
