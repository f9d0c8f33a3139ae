#include "pipeline/annotation/annotations.h"

#include <algorithm>

namespace stoker {

std::string describe(const AnnotationInfo& info) {
  std::string text;
  if (info.objects) {
    const auto classes = std::ranges::count_if(
        info.class_names, [](const std::string& name) { return !name.empty(); });
    text = "objects of " + std::to_string(classes) + " classes";
    if (info.rotated) text += ", rotated";
    if (info.masks) text += ", with masks";
    if (info.keypoints > 0) text += ", with " + std::to_string(info.keypoints) + " keypoints";
  }
  if (info.label_image) {
    text += (text.empty() ? "" : "; ") + std::string("label images of ") +
            std::to_string(info.label_bytes) + (info.label_bytes == 1 ? " byte" : " bytes");
  }
  return text.empty() ? "no annotations" : text;
}

}  // namespace stoker
