// Says what is wrong with the annotations of a picture, wherever they come from: what nobody could
// use. Boxes without an area and boxes that reach beyond the picture are fine, because data have
// such, and a stage of the augmentation drops or clamps them. A pure function.
#pragma once

#include <string>

#include "pipeline/annotation/annotations.h"

namespace stoker {

// Returns "", or what is wrong, and with which object: "object 3 (id 1768): the box has a negative
// width: (3, 5, 1, 9)".
std::string annotation_problem(const AnnotationInfo& info, const Annotations& annotations);
// Returns "", or what is odd about annotations beside their picture, although a feed takes them:
// an object out of the picture by more than a pixel, or whose polygons cover no pixel of it.
std::string oddity_in_picture(const Annotations& annotations, Size picture);
// "object 3 (id 1768): "
std::string object_words(const AnnotatedObject& object);

}  // namespace stoker
