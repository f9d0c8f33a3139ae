#include "pipeline/annotation/picture_checks.h"

#include <span>

#include "pipeline/annotation/run_lengths.h"

namespace stoker {
namespace {

std::string pixels_text(Size size) {
  return std::to_string(size.width) + " x " + std::to_string(size.height);
}

}  // namespace

std::string size_problem(const Annotations& annotations, Size picture) {
  if (annotations.size == Size{} || annotations.size == picture) return "";
  return "it is of a picture of " + pixels_text(annotations.size) + " pixels, this one has " +
         pixels_text(picture);
}

std::string runs_problem(const Annotations& annotations, const AnnotatedObject& object,
                         Size picture) {
  if (object.mask.kind != MaskKind::runs) return "";
  const auto runs = std::span(annotations.runs).subspan(object.mask.first, object.mask.count);
  const std::string problem = check_runs(runs, picture);
  return problem.empty() ? "" : "object " + std::to_string(object.id) + ": " + problem;
}

std::string read_labels(const Annotations& annotations, int label_bytes, int64_t max_pixels,
                        Size picture, LabelImage& out) {
  const std::string problem =
      read_label_image(annotations.label_file, label_bytes, max_pixels, out);
  if (!problem.empty()) return "label image: " + problem;
  if (out.size == picture) return "";
  return "the label image has " + pixels_text(out.size) + " pixels, the picture " +
         pixels_text(picture);
}

}  // namespace stoker
