// A folder of label images: a PNG for each picture, under the picture's name (ADE20K's
// annotations/, VOC's SegmentationClass/), or under Cityscapes' (NAME_gtFine_labelIds.png of
// NAME_leftImg8bit.png). Labels have one byte, or four where the first file has colours or 16 bits
// (a panoptic PNG). Errors: std::runtime_error with the path.
#pragma once

#include <string>

#include "pipeline/source/annotated/annotation_set.h"

namespace stoker {

// Names are those of the pictures, without extensions. Pixels are read with each sample.
SharedAnnotations open_label_folder(const std::string& folder);

}  // namespace stoker
