// Objects that lie in the records of shards, as the bytes that an index keeps of them, behind
// those of each sample. A piece is whole by itself; numbers of classes that are texts, and the
// kinds that all samples have, are known when the last record was read.
// Owner: one scan has an encoder. Threads: one at a time; read_record() any.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/annotation/annotations.h"
#include "pipeline/source/format/found_objects.h"

namespace stoker {

// The kinds of objects of several records.
struct RecordKinds {
  bool masks = false;
  int keypoints = 0;                    // the most of one object
  bool class_numbers = false;           // some have a class by its number,
  std::set<std::string> class_texts{};  // or by its name

  void add(const RecordKinds& others);
  // `names`: of classes that are numbers, if they are known. Throws std::runtime_error for classes
  // of both kinds.
  AnnotationInfo info(std::vector<std::string> names) const;
};

class RecordEncoder {
 public:
  explicit RecordEncoder(BoxFormat boxes);
  ~RecordEncoder();
  // Appends the piece. What is wrong with the objects is kept in it.
  void append(const FoundObjects& found, std::string& out);
  const RecordKinds& kinds() const { return kinds_; }

 private:
  class Picture;
  const std::unique_ptr<Picture> picture_;
  RecordKinds kinds_;
};

// Sets `out` to the objects of a piece. Returns "", or what is wrong with them, and with which
// object.
std::string read_record(const AnnotationInfo& info, std::string_view piece, Annotations& out);

}  // namespace stoker
