// COCO's JSON (cocodataset.org/#format-data): instances, person_keypoints and panoptic. Boxes are
// kept as XYXY; a class is a category's id, as torchvision gives it; a polygon stays a polygon, and
// run lengths, compressed or not, stay run lengths. A field that is not known is passed over.
//
// An object that is wrong is the problem of its picture. A file that is no such JSON is an error.
// Pure functions but for the files. Errors: std::runtime_error with the path, and the byte.
#pragma once

#include <string>

#include "pipeline/source/annotated/annotation_set.h"
#include "pipeline/source/annotated/json_scanner.h"

namespace stoker {

// Reads the JSON once. The memory that it takes is in proportion to what it keeps of it.
// `label_root`: the folder of the segments' PNGs, if it is a panoptic one. Throws JsonError.
AnnotationSetBuilder read_coco(ByteSupply json, const std::string& label_root = {});
// Opens the file at `path`. The set is kept in `cache_dir` ("": nowhere) and used as long as the
// file has its size and time. Segments' PNGs are in the folder of the file's name, without ".json".
SharedAnnotations open_coco(const std::string& path, const std::string& cache_dir);

}  // namespace stoker
