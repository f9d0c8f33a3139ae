// YOLO's text files: one for each picture, under its name, as images/train/1.jpg has
// labels/train/1.txt. A row is `class cx cy w h`, or `class x1 y1 x2 y2 x3 y3 ...`, a polygon,
// whose box is the smallest one around it; numbers are shares of the picture's width and height. A
// picture with a file without rows, or with no file, has no objects. Names of classes are those of
// data.yaml or dataset.yaml in the folder or one of the three above it, or of classes.txt in the
// folder; else they have none. Errors: std::runtime_error with the path. What is wrong in a file is
// its picture's problem.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/source/annotated/annotation_set.h"

namespace stoker {

// Returns the names of the files in `folder` without extensions, which are those of the pictures.
std::vector<std::string> yolo_names(const std::string& folder);
// `size_of(i)`: the size of the picture names[i]; {}: it is not known. `backgrounds`: the names of
// pictures without a file.
SharedAnnotations open_yolo(const std::string& folder, const std::vector<std::string>& names,
                            const std::function<Size(size_t)>& size_of,
                            const std::vector<std::string>& backgrounds = {});

// Appends the objects of a file to `out`, whose size is the picture's. Returns "", or what is
// wrong.
std::string read_yolo_rows(std::string_view text, Annotations& out);
// Returns the names in a data.yaml: `names: [a, b]`, or one in each line behind it, as `- a` or
// `0: a`. Empty: there are none.
std::vector<std::string> read_yolo_classes(std::string_view yaml);

}  // namespace stoker
