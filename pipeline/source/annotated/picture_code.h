// A picture's annotations as one piece of bytes: what a set keeps of each picture, and what comes
// in front of a sample's bytes where annotations come with them. Threads: any.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "pipeline/annotation/annotations.h"
#include "pipeline/source/annotated/annotation_set.h"

namespace stoker {

// Appends the picture to `out`, without its name.
void append_picture(const AnnotationInfo& info, const PictureAnnotations& picture,
                    std::string& out);
// Sets `out` to the picture that append_picture() made these bytes of, with its label image, whose
// path is relative to `label_root`; "": it is what the bytes say. Returns "", or what is wrong with
// the picture, and with which object; nullopt: the bytes are no picture.
std::optional<std::string> read_picture(const AnnotationInfo& info, std::string_view bytes,
                                        const std::string& label_root, Annotations& out);
// Returns the size of the picture alone; {}: the bytes are no picture.
Size read_picture_size(std::string_view bytes);

}  // namespace stoker
