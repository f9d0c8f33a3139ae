// The objects in the records of a TFRecord file, as TensorFlow's Object Detection API writes them
// (research/object_detection/dataset_tools: create_coco_tf_record.py, create_pascal_tf_record.py):
// below a prefix, "image/object", the keys bbox/xmin, bbox/ymin, bbox/xmax and bbox/ymax, which are
// shares of image/width and image/height; class/label, or else class/text; is_crowd, area and
// mask (a PNG for each object, of the picture's size).
// Owner: one scan. Threads: one at a time. Errors: BlobError for a file none of whose records has
// such keys; what is wrong with a record's is a problem of that sample.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/source/format/found_objects.h"
#include "pipeline/source/format/tfrecord_example.h"

namespace stoker {

class ExampleObjects {
 public:
  // Throws for a format of boxes, which these files have of their own.
  ExampleObjects(const BlobReader& blob, const ObjectField& wanted);

  // Returns the objects of a record, valid until the next call; null if none are wanted. One
  // without keys of boxes has no objects, as TensorFlow has it.
  const FoundObjects* read(const ExampleRecord& record, const std::vector<ExampleEntry>& entries);
  // Throws if no record had boxes.
  void finish(const BlobReader& blob) const;

 private:
  // Sets `out` to the numbers of a key below the prefix; returns false if there is no such key.
  bool numbers_of(const char* key, FoundTarget& out) const;
  int64_t number_of(const char* key) const;
  void read_picture();
  void read_boxes();
  void read_classes();
  void read_column(const char* key, ObjectEntry entry);
  void read_masks();
  void set_problem(std::string problem);

  const std::string prefix_;  // "": none are wanted
  const ExampleRecord* record_ = nullptr;
  const std::vector<ExampleEntry>* entries_ = nullptr;
  FoundObjects found_;
  std::vector<std::string_view> texts_;
  bool any_ = false;
  std::string keys_of_first_;  // for a message
};

}  // namespace stoker
