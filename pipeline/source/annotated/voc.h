// Pascal VOC's XML files: one for each picture, under its name. Boxes are taken as the file has
// them, as torchvision takes them (VOC counts pixels from 1, and its last one belongs to the box:
// nobody's trainer corrects that). `difficult` becomes `is_crowd`: both say that an evaluation
// shall not count the object, and boxes and classes stay torchvision's.
//
// Classes are VOC's 20 in alphabetical order from 1, as torchvision's; if a file has another name,
// those that there are, sorted, from 1.
// Errors: std::runtime_error with the path. What is wrong in a file is its picture's problem.
#pragma once

#include <string>
#include <string_view>

#include "pipeline/source/annotated/annotation_set.h"

namespace stoker {

// Names of pictures are those of the files in `folder`, without extensions.
SharedAnnotations open_voc(const std::string& folder);

// Collects class names until all files were read.
class VocReader {
 public:
  void add(std::string name, std::string_view xml);
  AnnotationSetBuilder finish();

 private:
  struct Picture {
    std::string name;
    Annotations annotations{};
    std::vector<std::string> classes{};  // of the objects
    std::string problem{};
  };

  static void read(std::string_view xml, Picture& out);

  std::vector<Picture> pictures_;
};

}  // namespace stoker
