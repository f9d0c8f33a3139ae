// Tells whether annotations are of the picture that was found. Each returns "", or what is wrong.
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "decode/label_image.h"
#include "pipeline/annotation/annotations.h"

namespace stoker {

// The size that the annotations say, if they do.
std::string size_problem(const Annotations& annotations, Size picture);
// The run lengths of an object, if it has such a mask.
std::string runs_problem(const Annotations& annotations, const AnnotatedObject& object,
                         Size picture);
// Reads the label image, which must have the picture's size.
std::string read_labels(const Annotations& annotations, int label_bytes, int64_t max_pixels,
                        Size picture, LabelImage& out);

}  // namespace stoker
